package program

import (
	"fmt"
	"log/slog"

	"github.com/leasehold/leasehold/provider"
)

// Program is a checked program.
type Program struct {
	config  Config
	command command
	api     int           // version of its protocol
	places  chan struct{} // calls in progress
	aside   chan struct{}
	lookup  func(name string) (string, error)
}

// New checks the configuration of a program that speaks this version of its protocol. It runs
// nothing.
func New(c Config, api int) (*Program, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	command, err := c.check()
	if err != nil {
		return nil, err
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	return &Program{
		config: c, command: command, api: api, places: make(chan struct{}, c.Concurrency), aside: make(chan struct{}, 1),
		lookup: func(name string) (string, error) {
			return "", fmt.Errorf("secret %q is not known: only a coordinator of the shard can open its secrets", name)
		},
	}, nil
}

// UseSecrets sets the lookup of the shard's secrets.
func (p *Program) UseSecrets(lookup func(name string) (string, error)) { p.lookup = lookup }

// Logger is the configuration's.
func (p *Program) Logger() *slog.Logger { return p.config.Logger }

// secrets returns the program's secrets.
func (p *Program) secrets() (map[string]string, error) {
	out := map[string]string{}
	for as, name := range p.config.Secrets {
		value, err := p.lookup(name)
		if err != nil {
			return nil, &provider.Error{Kind: provider.Credentials, Scope: name, Message: err.Error()}
		}
		out[as] = value
	}
	return out, nil
}
