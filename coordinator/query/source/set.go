package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/query"
)

// Source answers one question. Its methods can be called at any time.
type Source interface {
	Settings() query.Settings
	// ask returns the number for a group, or a *query.Error.
	ask(ctx context.Context, group string) (float64, error)
}

// SecretUser is a source that takes secrets of the shard.
type SecretUser interface {
	UseSecrets(lookup func(name string) (string, error))
}

// atOnce is how many requests to one source run at the same time. The rest wait, within their
// timeout.
const atOnce = 4

// Set is the sources of a replica, by name. A nil one has none.
type Set struct{ by map[string]place }

// place is a source with places for its questions.
type place struct {
	Source
	places chan struct{}
}

// NewSet returns the set of some sources.
func NewSet(by map[string]Source) *Set {
	s := &Set{by: map[string]place{}}
	for name, of := range by {
		s.by[name] = place{of, make(chan struct{}, atOnce)}
	}
	return s
}

// Names returns the names of the sources, in order.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.by))
}

// Settings returns how each source is asked.
func (s *Set) Settings() map[string]query.Settings {
	all := map[string]query.Settings{}
	for _, name := range s.Names() {
		all[name] = s.by[name].Settings()
	}
	return all
}

// UseSecrets sets where the values of the shard's secrets are.
func (s *Set) UseSecrets(lookup func(name string) (string, error)) {
	for _, name := range s.Names() {
		if user, ok := s.by[name].Source.(SecretUser); ok {
			user.UseSecrets(lookup)
		}
	}
}

// Missing returns why a source cannot be asked, or nil.
func (s *Set) Missing(name string) error {
	names := s.Names()
	if slices.Contains(names, name) {
		return nil
	}
	have := "it has none"
	if len(names) > 0 {
		have = "it has " + strings.Join(names, ", ")
	}
	return &query.Error{Kind: query.Unknown, Message: fmt.Sprintf(
		"metric %q is not one of this coordinator's, %s: name it in the file of --providers", name, have)}
}

// Ask asks for a number, within the time of its source. The error is a *query.Error.
func (s *Set) Ask(ctx context.Context, key query.Key) (float64, error) {
	if err := s.Missing(key.Source); err != nil {
		return 0, err
	}
	p := s.by[key.Source]
	ctx, cancel := context.WithTimeout(ctx, p.Settings().Timeout)
	defer cancel()
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-ctx.Done():
		return 0, &query.Error{Kind: query.Unreachable, Message: "questions before it took all of its time"}
	}
	value, err := p.ask(ctx, key.Group)
	switch {
	case err != nil && query.KindOf(err) != "":
		return 0, err
	case err != nil:
		return 0, &query.Error{Kind: query.Failed, Message: err.Error()}
	case math.IsNaN(value) || math.IsInf(value, 0):
		return 0, &query.Error{Kind: query.NoValue, Message: fmt.Sprintf("%v is no number to go by", value)}
	}
	return value, nil
}

// unreachable returns the error of a request that got no answer. Its cause holds no URL.
func unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &query.Error{Kind: query.Unreachable, Message: "no answer within its time"}
	}
	return &query.Error{Kind: query.Unreachable, Message: err.Error()}
}
