package source

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/program"
)

// API is the version of the protocol that programs speak.
const API = 1

// ProgramConfig is a source that is a program of the user's.
type ProgramConfig struct {
	program.Config
	Pace
}

type byProgram struct {
	settings query.Settings
	program  *program.Program
}

// measured is what a program answers to measure.
type measured struct {
	Value *float64 `json:"value"`
}

type measureParams struct {
	Group string `json:"group"`
}

// NewProgram checks the configuration. It runs nothing.
func NewProgram(c ProgramConfig) (Source, error) {
	settings, err := c.settings(true)
	if err != nil {
		return nil, err
	}
	run, err := program.New(c.Config, API)
	if err != nil {
		return nil, err
	}
	return &byProgram{settings: settings, program: run}, nil
}

func (p *byProgram) Settings() query.Settings { return p.settings }

// UseSecrets says where the values of the shard's secrets are.
func (p *byProgram) UseSecrets(lookup func(name string) (string, error)) {
	p.program.UseSecrets(lookup)
}

func (p *byProgram) ask(ctx context.Context, group string) (float64, error) {
	var m measured
	err := p.program.Call(ctx, program.Call{Method: "measure", Params: measureParams{Group: group}}, &m)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return 0, &query.Error{Kind: query.Unreachable, Message: "the program was killed, since its time was up"}
	case provider.KindOf(err) == provider.Credentials:
		return 0, &query.Error{Kind: query.Refused, Message: err.Error()}
	case err != nil:
		return 0, &query.Error{Kind: query.Failed, Message: err.Error()}
	case m.Value == nil:
		return 0, &query.Error{Kind: query.NoValue, Message: "the program's result has no value"}
	}
	return *m.Value, nil
}
