package release

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/leasehold/leasehold/provider/clip"
)

// MaxSigned bounds a signed statement, in bytes.
const MaxSigned = 4 << 10

// built are the public keys that were set when the program was built, separated by spaces:
//
//	go build -ldflags '-X github.com/leasehold/leasehold/agent/release.built=KEY'
var built string

// Keys are the public keys whose signatures count. The zero value has none.
type Keys struct {
	verifiers []note.Verifier
}

// BuiltIn returns the keys that were built into the program.
func BuiltIn() (Keys, error) { return ReadKeys(strings.ReplaceAll(built, " ", "\n")) }

// ReadKeys reads public keys, one per line. It ignores empty lines and lines that begin with #.
func ReadKeys(text string) (Keys, error) {
	var k Keys
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "PRIVATE+KEY+") {
			return Keys{}, errors.New("this is the private key: it belongs on no machine; name the public key")
		}
		v, err := note.NewVerifier(line)
		if err != nil {
			return Keys{}, fmt.Errorf("release key %q: %w", clip.Start(line, 40), err)
		}
		k.verifiers = append(k.verifiers, v)
	}
	return k, nil
}

// Known reports whether there is any key.
func (k Keys) Known() bool { return len(k.verifiers) > 0 }

// With returns these keys and others.
func (k Keys) With(others Keys) Keys {
	return Keys{verifiers: append(k.verifiers[:len(k.verifiers):len(k.verifiers)], others.verifiers...)}
}

// ErrNoKey means that there is no key to verify with.
var ErrNoKey = errors.New("no release key is known: name one with --release-key or LEASEHOLD_RELEASE_KEY")

// Open verifies a signed statement.
func (k Keys) Open(signed string) (Statement, error) {
	if !k.Known() {
		return Statement{}, ErrNoKey
	}
	if len(signed) > MaxSigned {
		return Statement{}, fmt.Errorf("the signed statement has %d bytes: at most %d are read", len(signed), MaxSigned)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(k.verifiers...))
	if err != nil {
		var unverified *note.UnverifiedNoteError
		if errors.As(err, &unverified) {
			return Statement{}, errors.New("the statement is not signed by any of this machine's release keys")
		}
		return Statement{}, fmt.Errorf("the signed statement does not verify: %w", err)
	}
	return parse(n.Text)
}

// Peek reads a signed statement without verifying it.
func Peek(signed string) (Statement, error) {
	if len(signed) > MaxSigned {
		return Statement{}, fmt.Errorf("the signed statement has %d bytes: at most %d are read", len(signed), MaxSigned)
	}
	_, err := note.Open([]byte(signed), note.VerifierList())
	var unverified *note.UnverifiedNoteError
	if !errors.As(err, &unverified) {
		return Statement{}, fmt.Errorf("this is not a signed statement: %w", err)
	}
	return parse(unverified.Note.Text)
}

// NewKey makes a key pair. The name is part of both keys and of each signature.
func NewKey(name string) (private, public string, err error) {
	return note.GenerateKey(rand.Reader, name)
}

// Sign signs a statement.
func Sign(s Statement, private string) (string, error) {
	if err := s.Validate(); err != nil {
		return "", err
	}
	signer, err := note.NewSigner(strings.TrimSpace(private))
	if err != nil {
		return "", errors.New("this is not a private release key, as leasehold upgrade key writes it")
	}
	signed, err := note.Sign(&note.Note{Text: s.text()}, signer)
	return string(signed), err
}
