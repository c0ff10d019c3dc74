package rights

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// switchable is an etcd of which only authentication matters.
type switchable struct {
	Etcd
	on bool
}

func (s *switchable) AddUser(context.Context, string, string) error { return nil }
func (s *switchable) RemoveUser(context.Context, string) error      { return nil }
func (s *switchable) Give(context.Context, string, string) error    { return nil }
func (s *switchable) Enable(context.Context) error                  { s.on = true; return nil }
func (s *switchable) Disable(context.Context) error                 { s.on = false; return nil }

// An etcd that is slow to let anyone in is asked again until authentication is off.
//
// proves SEC-4: no user is locked out by turning authentication on
func TestEnableTurnsBackOnASlowEtcd(t *testing.T) {
	for _, c := range []struct {
		name     string
		slow     time.Duration // how long the spare root cannot log in
		on       bool          // authentication, in the end
		lockedUp bool
	}{
		{"at once", 0, false, false},
		{"slow for two minutes", 2 * time.Minute, false, false},
		{"without end", time.Hour, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				etcd, told := &switchable{}, false
				began := time.Now()
				never := func(context.Context) (Etcd, func() error, error) { return nil, nil, store.ErrLogin }
				spareRoot := func(string, string) Entry {
					return func(ctx context.Context) (Etcd, func() error, error) {
						if time.Since(began) < c.slow {
							<-ctx.Done()
							return nil, nil, ctx.Err()
						}
						return etcd, func() error { return nil }, nil
					}
				}
				err := Enable(t.Context(), etcd, never, spareRoot, "forgotten", func() { told = true })
				if etcd.on != c.on || errors.Is(err, ErrLockedOut) == c.lockedUp || err == nil || !told {
					t.Errorf("authentication is on: %t; announced: %t; %v", etcd.on, told, err)
				}
			})
		})
	}
}
