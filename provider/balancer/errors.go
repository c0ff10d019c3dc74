package balancer

import (
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/provider"
)

// problem is an error with a kind of package provider, in words that fit a balancer.
type problem struct {
	text string
	kind *provider.Error
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// Errorf returns an error of a kind. The scope is what it is about: a backend, a setting, an
// account.
func Errorf(kind provider.Kind, scope, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return &problem{
		text: scope + ": " + message,
		kind: &provider.Error{Kind: kind, Scope: scope, Message: message},
	}
}

// Reword gives an error of package provider the words of a balancer.
func Reword(err error) error {
	var e *provider.Error
	if !errors.As(err, &e) || e.Kind == provider.Throttled {
		return err
	}
	text := string(e.Kind)
	for _, part := range []string{e.Scope, e.Message} {
		if part != "" {
			text += ": " + part
		}
	}
	return &problem{text: text, kind: e}
}
