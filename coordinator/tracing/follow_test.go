package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// names is a collector that notes the names of spans.
type names struct {
	mu  sync.Mutex
	got []string
}

func (n *names) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range spans {
		n.got = append(n.got, s.Name())
	}
	return nil
}

func (*names) Shutdown(context.Context) error { return nil }

// take returns the names that have come since the last call.
func (n *names) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	got := n.got
	n.got = nil
	return got
}

// What a leader finds when it begins is sent by its time; what is written later is sent once,
// whatever its writer's clock shows.
//
// proves OBS-3, SAFE-13
func TestTracesGoOnWhenAClockIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New(memstore.Config{})
		defer db.Close()
		st, keys := db.Connect(), store.KeysOf("shop")
		n := 0
		heals := func(instance string, at time.Time) {
			t.Helper()
			txn := store.Txn{}
			for i, change := range []func(*store.JournalEntry){
				fails(store.Unhealthy, store.Stopping, ""), goes(store.Checking, store.Running),
			} {
				n++
				e := entryAt(0, instance, n, change)
				e.Schema, e.At = store.Schema, at.Add(time.Duration(i)*time.Second)
				txn.Writes = append(txn.Writes, store.Put(keys.Event(e.At, fmt.Sprint(n)), store.Encode(*e)))
			}
			if _, err := st.Commit(t.Context(), txn); err != nil {
				t.Fatal(err)
			}
		}
		heals("long-ago", time.Now().Add(-30*time.Minute))
		heals("just-before", time.Now().Add(-5*time.Second))

		got := &names{}
		s := NewSender(got, About{Shard: "shop", Replica: "one"}, slog.New(slog.DiscardHandler))
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { (&Follower{Store: st, Keys: keys, ShardID: "5e4d", Sender: s}).Run(ctx) })
		defer following.Wait()
		defer cancel()
		sent := func(when string, want ...string) {
			t.Helper()
			<-time.After(2 * sendEvery)
			synctest.Wait()
			if names := got.take(); !slices.Equal(names, want) {
				t.Errorf("%s: the spans are %v, want %v", when, names, want)
			}
		}
		whole := []string{stepDetect, stepDecide, stepHealthy, stepHeal}
		sent("at the beginning", whole...)
		heals("put-back", time.Now().Add(-20*time.Minute))
		sent("with a clock that was put back", whole...)
		st.Faults().Cut()
		<-time.After(time.Minute)
		st.Faults().Mend()
		<-time.After(time.Minute)
		sent("after the watch has failed")
		heals("ahead", time.Now().Add(20*time.Minute))
		sent("with a clock that is ahead", whole...)
	})
}
