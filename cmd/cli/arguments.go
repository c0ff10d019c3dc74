package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Ago is how far back an operator wants to look: a duration, optionally in days.
type Ago time.Duration

// Length is how long something lasts: a duration above 0, optionally in days.
type Length time.Duration

var (
	errAgo    = errors.New("must be a time such as 90s, 30m, 24h or 7d")
	errLength = errors.New("must be a duration above 0, such as 30m, 8h or 7d")
	days      = regexp.MustCompile(`^([0-9]{1,5})d(.*)$`)
)

// UnmarshalText parses the argument.
func (a *Ago) UnmarshalText(text []byte) error {
	d, ok := duration(string(text))
	if !ok {
		return fmt.Errorf("%q: %w", text, errAgo)
	}
	*a = Ago(d)
	return nil
}

// UnmarshalText parses the argument.
func (l *Length) UnmarshalText(text []byte) error {
	d, ok := duration(string(text))
	if !ok || d == 0 {
		return fmt.Errorf("%q: %w", text, errLength)
	}
	*l = Length(d)
	return nil
}

// duration parses a duration that may begin with days; false if it is none, or negative.
func duration(word string) (sum time.Duration, ok bool) {
	m := days.FindStringSubmatch(word)
	if m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return 0, false
		}
		sum, word = time.Duration(n)*24*time.Hour, m[2]
	}
	if m != nil && word == "" {
		return sum, true
	}
	d, err := time.ParseDuration(word)
	return sum + d, err == nil && d >= 0
}

// checkEndpoints refuses invalid addresses of etcd before the command waits for an answer.
func checkEndpoints(endpoints []string) error {
	if wrong, found := program.NoAddress(endpoints); found {
		return failure(Usage, "leasehold status --endpoints 127.0.0.1:2379",
			"--endpoints: %q: must be HOST:PORT, or several separated by commas", wrong)
	}
	return nil
}

// misparsed explains what the parser reports in its own words: a size that is no number or looks
// like a flag ("scale NAME -1"), and a file without -f.
func misparsed(err error, args []string) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	help := helpCommand(parse)
	if help == "leasehold group scale --help" {
		for _, word := range args {
			if number.MatchString(word) || strings.HasSuffix(err.Error(), fmt.Sprintf("64 bit int but got %q", word)) {
				return failure(Usage, help, "size: %s: must be 0 to %d", word, store.MaxSize)
			}
		}
	}
	if word, found := strings.CutPrefix(err.Error(), "unexpected argument "); found && takesFile(parse) &&
		!strings.Contains(word, " ") {
		return failure(Usage, strings.TrimSuffix(help, "--help")+"-f "+reason.ShellWord(word),
			"unexpected argument %s: a file is named with -f", word)
	}
	return err
}

var number = regexp.MustCompile(`^-[0-9]`)

// takesFile reports whether the command that was understood requires --file, and no flag gave it.
func takesFile(parse *kong.ParseError) bool {
	if parse.Context == nil || parse.Context.Selected() == nil {
		return false
	}
	for _, f := range parse.Context.Selected().Flags {
		if f.Name == "file" {
			return f.Required && !f.Set
		}
	}
	return false
}
