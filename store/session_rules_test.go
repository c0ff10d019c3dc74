package store_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// renewals records when a lease is renewed and how long each attempt may take; from a call on, all
// fail.
type renewals struct {
	store.Store
	begun time.Time

	mu       sync.Mutex
	at       []time.Duration
	deadline []time.Duration // after the attempt's begin
	err      error
}

func (s *renewals) Renew(ctx context.Context, id store.LeaseID) (store.Lease, error) {
	s.mu.Lock()
	s.at = append(s.at, time.Since(s.begun))
	until, _ := ctx.Deadline()
	s.deadline = append(s.deadline, time.Until(until))
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return store.Lease{}, err
	}
	return s.Store.Renew(ctx, id)
}

// A lease is renewed each third of its time. An attempt may take a sixth of it, and none reaches
// beyond the lease's end, when the session is lost for the reason of the last failure.
//
// proves SAFE-7
func TestWhenALeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const third, sixth = sessionTTL / 3, sessionTTL / 6
		s := &renewals{Store: newMemory(t).Connect(), begun: time.Now()}
		failed := errors.New("out of order")
		err := store.NewSessions(s, sessionTTL).Run(t.Context(), func(ctx context.Context, _ store.Lease) error {
			pass(3*third + time.Millisecond)
			s.mu.Lock()
			if want := []time.Duration{third, 2 * third, 3 * third}; !slices.Equal(s.at, want) {
				t.Errorf("renewed after %v, want %v", s.at, want)
			}
			for _, d := range s.deadline {
				if d != sixth {
					t.Errorf("an attempt may take %s, want %s", d, sixth)
				}
			}
			s.err = failed
			s.mu.Unlock()
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, store.ErrSessionLost) || !errors.Is(err, failed) {
			t.Errorf("lost with %v", err)
		}
		if got := time.Since(s.begun); got != 3*third+sessionTTL {
			t.Errorf("lost after %s, want a lease after the last renewal, %s", got, 3*third+sessionTTL)
		}
		attempts := 0
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, at := range s.at {
			if at <= 3*third {
				continue
			}
			attempts++
			if at+s.deadline[i] > 3*third+sessionTTL {
				t.Errorf("an attempt after %s may take %s, which is beyond the lease's end", at, s.deadline[i])
			}
			if at+sixth <= 3*third+sessionTTL && s.deadline[i] != sixth {
				t.Errorf("an attempt after %s may take %s, want %s", at, s.deadline[i], sixth)
			}
		}
		if attempts < 5 {
			t.Errorf("%d attempts in the last two thirds of a lease", attempts)
		}
	})
}
