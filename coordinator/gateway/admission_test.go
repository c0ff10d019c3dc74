package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Ten thousand agents whose replica has died come to another, 64 at once. Every one of them does what it is told, and all are served in little more than the
// time that this takes, also where it takes longer in the beginning, while all of them come.
//
// proves SAFE-11
func TestAllOfACrowdAreLetInAtThePaceThereIs(t *testing.T) {
	const agents = 10_000
	for _, c := range []struct {
		takes, first time.Duration
		most         float64 // of what it takes at the least
		hellos       int     // of each at the most, on average
	}{
		{100 * time.Millisecond, 100 * time.Millisecond, 2, 3},
		{20 * time.Millisecond, 20 * time.Millisecond, 2, 2},
		{20 * time.Millisecond, 100 * time.Millisecond, 2.5, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAdmission()
			var all sync.WaitGroup
			var mu sync.Mutex
			began, last, hellos, atOnce, most := time.Now(), time.Duration(0), 0, 0, 0
			for range agents {
				all.Go(func() {
					for {
						mu.Lock()
						hellos++
						mu.Unlock()
						leave, err := a.enter(t.Context(), 30*time.Second)
						var many *crowded
						if errors.As(err, &many) {
							<-time.After(many.after + rand.N(many.after/8)) // as agents do
							continue
						}
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						atOnce++
						most = max(most, atOnce)
						mu.Unlock()
						takes := c.takes
						if time.Since(began) < time.Second {
							takes = c.first
						}
						<-time.After(takes)
						mu.Lock()
						atOnce-- // before the next one is let in
						last = max(last, time.Since(began))
						mu.Unlock()
						leave()
						return
					}
				})
			}
			all.Wait()
			least := agents * c.takes / openingAtOnce
			if last.Seconds() > c.most*least.Seconds() || most != openingAtOnce || hellos > c.hellos*agents {
				t.Errorf("where each takes %s: the last is served after %s, with %d at once and %d hellos; it takes %s at the least", c.takes, last, most, hellos, least)
			}
			t.Logf("where each takes %s: the last is served after %s, with %d hellos; at the least %s", c.takes, last, hellos, least)
		})
	}
}

// Renewals come first: while they are late fewer sessions begin, and as many as before later.
func TestFewerAreLetInWhileRenewalsAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission()
		for range 10 {
			a.slower(time.Now())
			<-time.After(slowAgain)
		}
		if a.most != openingLeast {
			t.Errorf("%d are let in at once", a.most)
		}
		for range openingAtOnce {
			<-time.After(time.Second)
			leave, err := a.enter(t.Context(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		if a.most != openingAtOnce {
			t.Errorf("%d are let in at once, long after", a.most)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var leaves []func()
		for range openingAtOnce {
			leave, err := a.enter(ctx, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		cancel()
		if _, err := a.enter(ctx, time.Minute); !errors.Is(err, context.Canceled) || a.queue.Len() != 0 {
			t.Errorf("%v, and %d wait", err, a.queue.Len())
		}
		for _, leave := range leaves {
			leave()
		}
		if a.running != 0 {
			t.Errorf("%d are under way", a.running)
		}
	})
}
