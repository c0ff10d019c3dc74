package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// consoles are the journal's entries with console output.
func (w *world) consoles() (kept []store.JournalEntry) {
	w.t.Helper()
	for _, e := range w.story() {
		if e.Console != "" {
			kept = append(kept, e)
		}
	}
	return kept
}

// proves DET-19
func TestConsoleOfADeadMachineIsKept(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		w.apply(g)
		ids := w.up(2)
		// it is removed twice
		w.provider.Inject(fake.Fault{Call: fake.CallDelete, Times: 1, Err: errors.New("try again")})
		w.provider.Print(ids[0], "kernel panic")
		w.provider.Print(ids[1], "all is well")
		w.provider.Crash(ids[0], "exit 1")
		w.until(2*time.Minute, "it is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
		kept := w.consoles()
		if len(kept) != 1 || kept[0].Instance != ids[0] || kept[0].Console != "kernel panic" ||
			kept[0].Rule != "DET-19" {
			t.Errorf("kept are %+v", kept)
		}
		g.Size = 1
		w.apply(g)
		w.until(2*time.Minute, "one is left", func() bool { return w.settled(1) && len(w.provider.Existing()) == 1 })
		if n := len(w.consoles()); n != 1 {
			t.Errorf("%d consoles are kept, of one dead machine", n)
		}
	})
}

// proves DET-19
func TestConsoleThatIsNotShownDelaysNothing(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		w.provider.Inject(fake.Fault{Call: fake.CallConsole, Hang: true})
		w.provider.Print(ids[0], "kernel panic")
		w.provider.Crash(ids[0], "exit 1")
		took := w.until(2*time.Minute, "it is replaced", func() bool {
			return w.settled(2) && !slices.Contains(w.ids(), ids[0]) && len(w.provider.Existing()) == 2
		})
		if calls := w.provider.Life(ids[0]).Calls[fake.CallConsole]; calls != 1 || took > 30*time.Second {
			t.Errorf("it took %s, and the console was asked for %d times", took, calls)
		}
		if n := len(w.consoles()); n != 0 {
			t.Errorf("%d consoles are kept", n)
		}
	})
}

// slow is a store whose transactions take some time.
type slow struct{ store.Store }

func (s slow) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(400 * time.Millisecond):
		return s.Store.Commit(ctx, txn)
	}
}

// A console that answers at the last moment is kept; what could not be written is asked for again
// when the removal is repeated.
//
// proves DET-19
func TestConsoleThatIsSlowIsKept(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one", func(_ *coordinator.Config, deps *coordinator.Deps) { deps.Store = slow{deps.Store} })
		w.apply(w.group("web", 2))
		ids := w.up(2)
		w.provider.Inject(fake.Fault{Call: fake.CallConsole, Delay: 2500 * time.Millisecond})
		w.provider.Print(ids[0], "kernel panic")
		w.provider.Crash(ids[0], "exit 1")
		w.until(2*time.Minute, "it is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
		if kept := w.consoles(); len(kept) != 1 || kept[0].Console != "kernel panic" {
			t.Errorf("kept are %+v", kept)
		}
	})
}
