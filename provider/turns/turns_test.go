package turns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Calls for one machine never overlap, calls for different ones do; a call whose time ends while it
// waits does nothing; and nothing is kept of machines without calls.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns[string]
		hold, held, done := make(chan struct{}), 0, make(chan error, 3)
		for _, name := range []string{"a", "a", "b"} {
			go func() {
				done <- turns.Take(t.Context(), name, func() error {
					held++ // the others wait by then, or have not come
					<-hold
					return nil
				})
			}()
			synctest.Wait()
		}
		if held != 2 || !turns.Taken("a") || turns.Taken("c") {
			t.Errorf("%d calls run, want one for each machine", held)
		}
		ctx, cancel := context.WithCancel(t.Context())
		late := make(chan error)
		go func() { late <- turns.Take(ctx, "a", func() error { return errors.New("it had no turn") }) }()
		synctest.Wait()
		cancel()
		if err := <-late; !errors.Is(err, context.Canceled) {
			t.Errorf("a call that ended while it waited: %v", err)
		}
		if err := turns.Take(ctx, "c", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a call that ended before it came: %v", err)
		}
		close(hold)
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if held != 3 || len(turns.calls) != 0 {
			t.Errorf("%d calls have run, and %d machines are kept", held, len(turns.calls))
		}
	})
}
