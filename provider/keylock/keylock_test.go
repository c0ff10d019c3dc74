package keylock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Calls with one key never overlap, calls with different ones do; a call whose time ends while it
// waits does nothing; and nothing is kept of keys that no call uses.
func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks Locks[string]
		hold, held, done := make(chan struct{}), 0, make(chan error, 3)
		for _, name := range []string{"a", "a", "b"} {
			go func() {
				done <- locks.With(t.Context(), name, func() error {
					held++ // the others wait by then, or have not come
					<-hold
					return nil
				})
			}()
			synctest.Wait()
		}
		if held != 2 || !locks.Held("a") || locks.Held("c") {
			t.Errorf("%d calls run, want one for each key", held)
		}
		ctx, cancel := context.WithCancel(t.Context())
		late := make(chan error)
		go func() { late <- locks.With(ctx, "a", func() error { return errors.New("it ran without the lock") }) }()
		synctest.Wait()
		cancel()
		if err := <-late; !errors.Is(err, context.Canceled) {
			t.Errorf("a call that ended while it waited: %v", err)
		}
		if err := locks.With(ctx, "c", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a call that ended before it came: %v", err)
		}
		close(hold)
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if held != 3 || len(locks.used) != 0 {
			t.Errorf("%d calls have run, and %d keys are kept", held, len(locks.used))
		}
	})
}
