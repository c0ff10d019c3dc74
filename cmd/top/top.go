package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/leasehold/leasehold/store"
)

// Config has what the program needs from its process.
type Config struct {
	Shard  string
	Place  string // the group or instance to open first; "": the shard
	Now    func() time.Time
	Colour bool
	In     io.Reader // a terminal
	Out    io.Writer // a terminal
	// Members asks etcd's members for their state; nil: they are not asked.
	Members func(context.Context) (store.Members, error)
}

// Run shows a shard until the operator leaves or ctx ends.
func Run(ctx context.Context, cfg Config, st store.Store) error {
	following, stop := context.WithCancel(ctx)
	f, wait := follow(following, cfg, st)
	defer wait()
	defer stop()
	options := []tea.ProgramOption{
		tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithoutSignalHandler(), // signals end ctx
	}
	if !cfg.Colour {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	program := tea.NewProgram(newModel(cfg, f), options...)
	defer context.AfterFunc(ctx, program.Quit)() // in order, so that the terminal is restored
	_, err := program.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, tea.ErrInterrupted):
		return nil
	case err != nil:
		return fmt.Errorf("show the shard in this terminal: %w", err)
	}
	return nil
}
