package guard_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// recorded runs refusals in a bubble, and returns a function for the journal entries so far.
func recorded(t *testing.T, test func(r *guard.Refusals, journal func() []store.JournalEntry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var entries []store.JournalEntry
		r := guard.NewRefusals(slog.New(slog.NewTextHandler(t.Output(), nil)),
			func(_ context.Context, e store.JournalEntry) {
				mu.Lock()
				defer mu.Unlock()
				entries = append(entries, e)
			})
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { r.Run(ctx) })
		test(r, func() []store.JournalEntry {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			out := entries
			entries = nil
			return out
		})
		cancel()
		parts.Wait()
	})
}

func tried(address, claimed string) guard.Refusal {
	return guard.Refusal{
		Rule: "SEC-2", What: "join refused", Why: "token unknown or expired", Address: address,
		Claimed: claimed,
	}
}

// proves SEC-5
func TestFirstRefusalIsReportedAtOnceAndTheRestAsASum(t *testing.T) {
	recorded(t, func(r *guard.Refusals, journal func() []store.JournalEntry) {
		for port := range 500 {
			r.Add(tried(fmt.Sprintf("10.0.0.9:%d", port), "web-0"))
		}
		r.Add(tried("10.0.0.10:1", "web-1"))
		got := journal()
		if len(got) != 2 || got[0].Rule != "SEC-2" || got[0].Instance != "web-0" ||
			got[0].Facts[0].Name != "10.0.0.9:0" || got[1].Instance != "web-1" {
			t.Fatalf("the journal has %+v, want one entry for each address", got)
		}
		pass(time.Minute)
		got = journal()
		if len(got) != 1 || got[0].What != "join refused: 499 more" ||
			!strings.HasPrefix(reason.Line(&got[0].Facts[0]), "499 from 10.0.0.9") {
			t.Fatalf("after a minute the journal has %+v, want one sum", got)
		}
		pass(2 * time.Minute)
		if got := journal(); len(got) != 0 {
			t.Errorf("nothing was refused, and the journal has %+v", got)
		}
		r.Add(tried("10.0.0.9:1", "web-0"))
		if got := journal(); len(got) != 1 {
			t.Errorf("it comes again after it was quiet: the journal has %+v, want one entry", got)
		}
	})
}

// A client with an IPv6 network has any number of addresses. It counts as one, so that it does not
// take the place of others in the journal.
//
// proves SEC-5
func TestANetworkOfAddressesIsOneRefuser(t *testing.T) {
	recorded(t, func(r *guard.Refusals, journal func() []store.JournalEntry) {
		for i := range 2000 {
			r.Add(tried(fmt.Sprintf("[2001:db8:0:1::%x]:7", i), "web-0"))
		}
		r.Add(tried("[2001:db8:0:2::1]:7", "web-1"))
		if got := journal(); len(got) != 2 || got[0].Instance != "web-0" || got[1].Instance != "web-1" {
			t.Errorf("the journal has %+v, want one entry for each network", got)
		}
	})
}

// proves SEC-5
func TestRefusalsFromEverywhereFillNeitherMemoryNorJournal(t *testing.T) {
	recorded(t, func(r *guard.Refusals, journal func() []store.JournalEntry) {
		entries, told := 0, 0
		const minutes, each = 10, 5000
		for m := range minutes {
			for i := range each {
				r.Add(tried(fmt.Sprintf("10.%d.%d.%d:1", m, i/250, i%250), fmt.Sprintf("../%d\x1b[2J", i)))
			}
			pass(time.Minute)
			for _, e := range journal() {
				entries++
				n := 1
				if _, err := fmt.Sscanf(e.What, "join refused: %d more", &n); err != nil {
					n = 1
				}
				told += n
				if text := fmt.Sprint(e); e.Instance != "" || strings.Contains(text, "\x1b") || len(e.Facts) > 10 {
					t.Fatalf("entry %+v", e)
				}
			}
		}
		if told != minutes*each {
			t.Errorf("the journal tells of %d, want all %d", told, minutes*each)
		}
		if most := 32 + minutes*(2+1); entries > most {
			t.Errorf("%d entries, want %d at most", entries, most)
		}
	})
}

// proves SEC-5
func TestRefusalsHoldNobodyUpWhileTheJournalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := guard.NewRefusals(slog.New(slog.DiscardHandler),
			func(ctx context.Context, _ store.JournalEntry) { <-ctx.Done() })
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { r.Run(ctx) })
		began := time.Now()
		for i := range 1000 {
			r.Add(tried(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250), ""))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("a thousand took %s", took)
		}
		cancel()
		parts.Wait()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
}

// A replica shows the last refusal for each reason, once a minute, and only of clients that name an
// instance.
//
// proves SEC-1, DAY-3
func TestRecentRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := guard.NewRefusals(slog.New(slog.DiscardHandler), func(context.Context, store.JournalEntry) {})
		if got := r.Recent(); len(got) != 0 {
			t.Errorf("nothing was refused: %+v", got)
		}
		r.Add(tried("10.0.0.9:1", "web-0"))
		r.Add(tried("10.0.0.9:2", "web-1")) // in the same minute
		r.Add(guard.Refusal{Rule: "SEC-1", What: "connection refused", Why: "not TLS", Address: "10.0.0.9:3"})
		want := tried("10.0.0.9:1", "web-0")
		got := r.Recent()
		if len(got) != 1 || got[0].Instance != "web-0" || got[0].From != want.Address || got[0].Why != want.Why {
			t.Fatalf("refusals %+v", got)
		}
		<-time.After(time.Minute)
		r.Add(tried("10.0.0.9:4", "web-2"))
		if got := r.Recent(); len(got) != 1 || got[0].Instance != "web-2" {
			t.Errorf("a minute later: %+v", got)
		}
		for i := range 200 {
			f := tried("10.0.0.9:5", "web-3")
			f.Why = fmt.Sprint("reason ", i)
			r.Add(f)
		}
		if got := r.Recent(); len(got) != store.MaxRefused {
			t.Errorf("%d reasons are shown", len(got))
		}
		<-time.After(store.RefusedFor)
		if got := r.Recent(); len(got) != 0 {
			t.Errorf("after %s: %+v", store.RefusedFor, got)
		}
	})
}
