package coordinator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// When the agents' authority has ended, no agent can come to any replica: that is no reason to
// replace healthy machines by some that could not come either. Two are too few for a storm.
//
// proves SAFE-1, SEC-3
func TestTheEndOfTheAuthorityCostsNoInstance(t *testing.T) {
	inWorld(t, fake.Config{Boot: time.Second, Consistency: time.Second}, func(w *world) {
		w.start("one", w.securedFor(30*time.Minute))
		w.leads(time.Second, "one")
		w.apply(w.group("web", 2))
		w.until(time.Minute, "they are healthy", func() bool { return w.settled(2) })
		before := w.ids()
		w.pass(40 * time.Minute)
		if after := w.ids(); !slices.Equal(before, after) {
			t.Errorf("there are %v, want still %v", after, before)
		}
		r, err := store.Decode[store.Replica](w.list(w.keys.Of(store.KindReplicas))[0])
		if last := r.Record.Last; err != nil || last == nil ||
			!strings.HasPrefix(last.What, "agents cannot be served") || r.Record.IssuerEnds.After(time.Now()) {
			t.Errorf("the replica says %+v (%v), want that it can serve nobody", r.Record, err)
		}
	})
}
