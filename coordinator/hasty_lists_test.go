package coordinator_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// stream writes into an agent's alive key what its gateway writes when the state of its stream
// changes.
func (w *world) stream(instance string, state store.StreamState) {
	w.t.Helper()
	found := w.list(w.keys.Alive(instance))
	if len(found) != 1 {
		w.t.Fatalf("%s has no alive key any more\n%s", instance, w.describe())
	}
	kv := found[0]
	v, err := store.Decode[store.Alive](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	v.Record.State = state
	_, err = w.store.Commit(w.t.Context(), store.Txn{
		Conditions: []store.Condition{store.Unchanged(kv)},
		Writes:     []store.Write{store.PutLeased(kv.Key, store.Encode(v.Record), kv.Lease)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// lies are answers of a provider that are wrong for a time, and what the streams of those they
// concern are like.
var lies = map[string]struct {
	state  store.StreamState
	answer func(provider.Machine) (m provider.Machine, listed bool)
}{
	"not listed, stream lost": {
		store.StreamLost,
		func(m provider.Machine) (provider.Machine, bool) { return m, false },
	},
	"down, stream open": {store.StreamOpen, func(m provider.Machine) (provider.Machine, bool) {
		m.State = provider.StateStopped
		return m, true
	}},
}

// liar is a shard of three whose provider lies about the last two. The first, of whom it tells the
// truth, can make the leader ask.
type liar struct {
	*world
	three []string     // their IDs
	told  atomic.Int64 // wrong answers
	mend  func()
}

func inLiarsWorld(t *testing.T, lie string, test func(*liar)) {
	t.Helper()
	inWorld(t, callsOf(50*time.Millisecond), func(w *world) {
		w.start("one")
		w.apply(w.group("web", 3))
		l := &liar{world: w, three: w.up(3)}
		w.pass(10 * time.Minute) // all grace is over
		w.untilListed()
		l.mend = w.provider.Inject(fake.Fault{
			Call: fake.CallList,
			Answer: func(all []provider.Machine) []provider.Machine {
				l.told.Add(1)
				var out []provider.Machine
				for _, m := range all {
					listed := true
					if slices.Contains(l.three[1:], m.Instance) {
						m, listed = lies[lie].answer(m)
					}
					if listed {
						out = append(out, m)
					}
				}
				return out
			},
		})
		for _, id := range l.three[1:] {
			if lies[lie].state != store.StreamOpen {
				w.stream(id, lies[lie].state)
			}
		}
		test(l)
	})
}

// suspect makes the leader look at the machines now.
func (l *liar) suspect() {
	l.t.Helper()
	l.stream(l.three[0], store.StreamLost)
	l.pass(time.Millisecond)
	l.stream(l.three[0], store.StreamOpen)
}

// Lists that follow one another within a moment, because suspicions came in between, are one glitch
// of the provider's.
//
// proves DET-4
func TestHastyListsDestroyNothing(t *testing.T) {
	for lie := range lies {
		t.Run(lie, func(t *testing.T) {
			inLiarsWorld(t, lie, func(l *liar) {
				for end := time.Now().Add(4 * time.Second); time.Now().Before(end); l.pass(50 * time.Millisecond) {
					l.suspect()
				}
				l.mend()
				if n := l.told.Load(); n < 3 {
					t.Fatalf("the leader asked %d times only while the provider lied", n)
				}
				for _, id := range l.three[1:] {
					l.stream(id, store.StreamOpen)
				}
				l.always(time.Minute, "nothing is made or removed",
					func() bool { return l.made() == 3 && l.settled(3) })
				l.unchanged(l.three)
			})
		})
	}
}

// What the provider says twice, provider_poll apart, is true.
//
// proves DET-4
// proves DET-12
func TestListsThatAreApartCount(t *testing.T) {
	for lie := range lies {
		t.Run(lie, func(t *testing.T) {
			inLiarsWorld(t, lie, func(l *liar) {
				poll := store.DefaultShardSettings().ProviderPoll.D()
				l.suspect()
				l.always(poll-200*time.Millisecond, "nothing is made or removed", func() bool {
					l.suspect()
					return l.made() == 3 && len(l.provider.Existing()) == 3
				})
				l.until(2*poll, "those of whom the provider said it twice are being replaced", func() bool {
					gone := 0
					for _, in := range l.instances() {
						if in.Record.Phase == store.Deleting && slices.Contains(l.three[1:], in.Record.ID) {
							gone++
						}
					}
					return gone == 2
				})
				l.until(time.Minute, "the group is as it was wanted", func() bool { return l.settled(3) })
				if !slices.Contains(l.ids(), l.three[0]) || l.made() != 5 {
					t.Errorf("%d machines were made, instances are %v", l.made(), l.ids())
				}
			})
		})
	}
}

// A provider that wants to be left alone is, whatever is suspected meanwhile.
//
// proves DET-12
// proves REC-9
func TestThrottledListIsNotAskedAgainBefore(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		w.pass(time.Minute)
		const after = 90 * time.Second
		w.provider.Inject(fake.Fault{
			Call: fake.CallList, Times: 1,
			Err: provider.ThrottledFor(after),
		})
		before := w.provider.Lists()
		w.until(10*time.Second, "it is asked, and refuses", func() bool { return w.provider.Lists() > before })
		w.pass(time.Second)
		lists := w.provider.Lists()
		w.always(after-2*time.Second, "it is left alone", func() bool {
			w.stream(ids[0], store.StreamLost)
			w.pass(time.Second)
			w.stream(ids[0], store.StreamOpen)
			return w.provider.Lists() == lists
		})
		w.until(10*time.Second, "it is asked again", func() bool { return w.provider.Lists() > lists })
		w.unchanged(ids)
	})
}

// The first of a thousand suspicions has the machines listed at once, and the others share one
// List.
//
// proves DET-3, DET-12
func TestSuspicionsShareAList(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		w.pass(time.Minute)
		w.untilListed()
		w.pass(2 * time.Second)
		lists := w.provider.Lists()
		w.stream(ids[0], store.StreamLost)
		w.pass(10 * time.Millisecond)
		if n := w.provider.Lists() - lists; n != 1 {
			t.Errorf("%d lists after the first suspicion, want one at once", n)
		}
		for range 450 {
			w.stream(ids[0], store.StreamOpen)
			w.stream(ids[0], store.StreamLost)
			w.pass(2 * time.Millisecond)
		}
		w.stream(ids[0], store.StreamOpen)
		w.pass(time.Second)
		if n := w.provider.Lists() - lists; n != 2 {
			t.Errorf("%d lists in a second of suspicions, want two", n)
		}
		w.unchanged(ids)
	})
}

// What stays as it is is told once, however often it is seen.
//
// proves REC-15
func TestUnlistedMachineDoesNotFloodTheJournal(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 3))
		ids := w.up(3)
		w.pass(10 * time.Minute)
		before := len(w.journal())
		w.provider.Inject(fake.Fault{
			Call: fake.CallList,
			Answer: func(all []provider.Machine) []provider.Machine {
				return slices.DeleteFunc(slices.Clone(all),
					func(m provider.Machine) bool { return m.Instance == ids[0] })
			},
		})
		w.pass(10 * time.Minute)
		var told []string
		for _, e := range w.journal()[before:] {
			told = append(told,
				e.Record.Rule+" "+e.Record.Instance+" "+e.Record.What+" "+strings.Join(e.Record.Evidence, ", "))
		}
		if len(told) == 0 || len(told) > 4 {
			t.Errorf("%d entries in ten minutes:\n%s", len(told), strings.Join(told, "\n"))
		}
		for _, line := range told {
			if !strings.Contains(line, ids[0]) {
				t.Errorf("told though nothing is wrong with it: %s", line)
			}
		}
		w.unchanged(ids)
	})
}

// A provider that still calls a machine running whose stream has just broken is asked again within
// a second, not at its next poll.
//
// proves DET-3
func TestProviderIsBehindTheStream(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 3))
		ids := w.up(3)
		w.pass(time.Minute)
		w.untilListed()
		w.pass(2 * time.Second)
		w.provider.Inject(fake.Fault{
			Call: fake.CallList, Times: 1,
			Answer: func(all []provider.Machine) []provider.Machine {
				for i := range all {
					all[i].State = provider.StateRunning
				}
				return all
			},
		})
		before := w.provider.Lists()
		w.provider.Crash(ids[0], "killed")
		w.until(2*time.Second, "the dead machine's replacement is recorded", func() bool {
			return slices.ContainsFunc(w.instances(),
				func(in store.Versioned[store.Instance]) bool { return in.Record.Replaces == ids[0] })
		})
		if n := w.provider.Lists() - before; n != 2 {
			t.Errorf("%d lists were needed, want two: one that was behind and one that was not", n)
		}
	})
}

// untilListed waits until a List has just been answered.
func (w *world) untilListed() {
	w.t.Helper()
	w.until(10*time.Second, "a List has just been answered", func() bool {
		n := w.provider.Lists()
		w.pass(100 * time.Millisecond)
		return w.provider.Lists() > n
	})
}
