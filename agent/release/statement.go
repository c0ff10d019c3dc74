package release

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxSize bounds the size of an agent program.
const MaxSize = 256 << 20

// Statement is what the key signs about one program.
type Statement struct {
	Version  string
	Platform string // operating system and architecture as Go names them: linux/amd64
	Size     int64
	SHA256   string // of the program, in hexadecimal
	// Downgrade allows the program to replace a later version.
	Downgrade bool
}

// title is the first line, so that a key that also signs other things cannot sign an agent by
// accident.
const title = "leasehold-agent"

// text returns the text to be signed.
func (s Statement) text() string {
	downgrade := "refused"
	if s.Downgrade {
		downgrade = "allowed"
	}
	return fmt.Sprintf("%s\nversion %s\nplatform %s\nsize %d\nsha256 %s\ndowngrade %s\n",
		title, s.Version, s.Platform, s.Size, s.SHA256, downgrade)
}

// Validate checks a statement before it is signed and after it is verified.
func (s Statement) Validate() error {
	sum, err := hex.DecodeString(s.SHA256)
	switch {
	case s.Version == "" || len(s.Version) > 100 || strings.ContainsFunc(s.Version, notPrintable):
		return fmt.Errorf("version: %q: must be 1 to 100 printable characters without spaces", s.Version)
	case strings.Count(s.Platform, "/") != 1 || strings.ContainsFunc(s.Platform, notPrintable):
		return fmt.Errorf("platform: %q: must be like linux/amd64", s.Platform)
	case s.Size < 1 || s.Size > MaxSize:
		return fmt.Errorf("size: %d: must be 1 to %d bytes", s.Size, MaxSize)
	case err != nil || len(sum) != 32 || strings.ToLower(s.SHA256) != s.SHA256:
		return fmt.Errorf("sha256: %q: must be 64 lower-case hexadecimal digits", s.SHA256)
	}
	return nil
}

func notPrintable(r rune) bool { return r <= ' ' || r > '~' }

// errNoStatement means that something else was signed.
var errNoStatement = errors.New("the signed text is not a statement about an agent that this version understands")

// parse reads a statement. It accepts only the exact text that text makes.
func parse(signed string) (Statement, error) {
	lines := strings.Split(signed, "\n")
	if len(lines) != 7 || lines[0] != title {
		return Statement{}, errNoStatement
	}
	value := func(line int, name string) string {
		of, v, _ := strings.Cut(lines[line], " ")
		if of != name {
			return ""
		}
		return v
	}
	size, err := strconv.ParseInt(value(3, "size"), 10, 64)
	if err != nil {
		return Statement{}, errNoStatement
	}
	s := Statement{
		Version: value(1, "version"), Platform: value(2, "platform"), Size: size, SHA256: value(4, "sha256"),
		Downgrade: value(5, "downgrade") == "allowed",
	}
	if s.text() != signed {
		return Statement{}, errNoStatement
	}
	if err := s.Validate(); err != nil {
		return Statement{}, err
	}
	return s, nil
}
