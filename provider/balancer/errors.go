package balancer

import (
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/provider"
)

// problem is an error with a kind of package provider, worded for a balancer.
type problem struct {
	text string
	kind *provider.Error
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// Errorf returns an error of a kind. The scope is its subject: a backend, a setting, an account.
func Errorf(kind provider.Kind, scope, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return &problem{
		text: scope + ": " + message,
		kind: &provider.Error{Kind: kind, Scope: scope, Message: message},
	}
}

// Reword words an error of package provider for a balancer.
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
