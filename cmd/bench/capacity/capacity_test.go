package capacity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

func small() Config {
	return Config{
		Prefix: store.KeysOf("bench-x").Prefix(), Each: 50 * time.Millisecond, Agents: 130, Pace: 1000, News: 500,
		Records: 250, Size: 100, TTL: time.Minute,
	}
}

func database(t *testing.T) *memstore.Database {
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	return db
}

func below(t *testing.T, st store.Store, prefix string) int {
	t.Helper()
	l, err := st.List(context.Background(), prefix, 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(l.KVs)
}

// Everything is measured, and nothing is left of it but what was there before.
func TestRunMeasuresAllAndLeavesNothing(t *testing.T) {
	db := database(t)
	st := db.Connect()
	if _, err := st.Commit(t.Context(),
		store.Txn{Writes: []store.Write{store.Put("/leasehold/other/shard", nil)}}); err != nil {
		t.Fatal(err)
	}
	var told []string
	res, err := Run(t.Context(), small(),
		Deps{Store: st, Watcher: db.Connect(), Progress: func(what string, step, of int) {
			told = append(told, what)
			if step != len(told) || of < step {
				t.Errorf("step %d of %d is told as the %d.", step, of, len(told))
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range res.Measured {
		if m.Count == 0 || m.PerSecond <= 0 || m.P99 < m.P50 || m.Most < m.P99 || m.What != told[i] {
			t.Errorf("%+v (told as %q)", m, told[i])
		}
	}
	for _, name := range []string{Granted, TakenUp} {
		if got := res.Get(name).Count; got != 130 {
			t.Errorf("%s: %d, want 130", name, got)
		}
	}
	if got := res.Get(Listed).Count; got != 750 {
		t.Errorf("%d records listed, want 250 three times", got)
	}
	if n := below(t, st, ""); n != 1 {
		t.Errorf("%d keys are left, of 1 before", n)
	}
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	db := database(t)
	st := db.Connect()
	for stop := range 13 { // in each measurement once
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Run(ctx, small(), Deps{Store: st, Watcher: db.Connect(), Progress: func(_ string, step, _ int) {
			if step == stop+1 {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cut off in measurement %d: %v", stop+1, err)
		}
		if n := below(t, st, ""); n != 0 {
			t.Fatalf("cut off in measurement %d it leaves %d keys", stop+1, n)
		}
	}
}

// One that waits for its turn is not told as if it had been quick: ten a second are asked for, and
// one worker does two.
func TestPacedCountsFromWhenItWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := paced(t.Context(), 1, 10, time.Second, func(context.Context, int, int) error {
			<-time.After(500 * time.Millisecond)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if d.times.N != 10 || d.times.Most < 4*time.Second {
			t.Errorf("%d done, the longest in %s: want 10, the last of which waited for nine others", d.times.N,
				d.times.Most)
		}
	})
}

func TestPacedKeepsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := paced(t.Context(), 300, 1000, 2*time.Second, func(context.Context, int, int) error {
			<-time.After(100 * time.Millisecond)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.times.N; got < 1990 || got > 2010 {
			t.Errorf("%d done in 2 s, want 2,000", got)
		}
		if p := d.times.Quantile(0.99); p > 110*time.Millisecond {
			t.Errorf("99 %% took up to %s, want about 100ms", p)
		}
	})
}

func TestFirstErrorEndsDriving(t *testing.T) {
	broken := errors.New("broken")
	fails := func(ctx context.Context, _, turn int) error {
		if turn == 7 {
			return broken
		}
		if turn > 7 {
			<-ctx.Done() // as a store does
			return ctx.Err()
		}
		return nil
	}
	if _, err := flatOut(t.Context(), 4, until{after: time.Hour}, fails); !errors.Is(err, broken) {
		t.Errorf("flat out: %v", err)
	}
	if _, err := paced(t.Context(), 4, 1e5, time.Hour, fails); !errors.Is(err, broken) {
		t.Errorf("paced: %v", err)
	}
}

func TestLimits(t *testing.T) {
	r := &Result{Measured: []Measured{
		{Name: Renewed, PerSecond: 60_000},
		{Name: Noted, PerSecond: 7_000},
		{Name: TakenUp, PerSecond: 3_000},
		{Name: Listed, PerSecond: 100_000},
		{Name: RenewPaced, P99: 7},
		{Name: Seen, P99: 900},
	}}
	limits := Limits(r, 10*time.Second)
	want := map[string]int{
		"renewals": 300_000, "storing reports": 210_000, "registering agents": 96_000,
		"a leader's start": 333_333,
	}
	for _, l := range limits {
		if l.Agents != want[l.By] {
			t.Errorf("%s: %d agents, want %d", l.By, l.Agents, want[l.By])
		}
	}
	if !slices.IsSortedFunc(limits, func(a, b Limit) int { return a.Agents - b.Agents }) ||
		!strings.Contains(limits[0].Why, "32s") {
		t.Errorf("limits: %+v", limits)
	}
	if slow := Slow(r); len(slow) != 1 || slow[0].Name != Seen {
		t.Errorf("slow: %+v", slow)
	}
}

// The result has what a store and this side use for each operation.
func TestCostIsReportedForEach(t *testing.T) {
	db := database(t)
	used := time.Duration(0)
	res, err := Run(t.Context(), small(),
		Deps{Store: db.Connect(), Watcher: db.Connect(), Usage: func() (theirs, ours measure.Usage, err error) {
			used += 130 * time.Millisecond
			return measure.Usage{CPU: used, Memory: 7}, measure.Usage{CPU: 2 * used}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if m := res.Get(Granted); m.CPU != 1000 || m.OwnCPU != 2000 || res.Memory != 7 {
		t.Errorf("cost of a lease: %v and %v µs, memory %d: want 1000, 2000 and 7", m.CPU, m.OwnCPU, res.Memory)
	}
}
