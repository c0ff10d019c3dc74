package gateway

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Ten thousand agents whose replica has died come to another, which takes 0.1 s of each, 64 at once. Every one of them does what it is told, and all are
// served in little more than the time that this takes.
//
// proves SAFE-11
func TestAllOfACrowdAreLetInAtThePaceThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission()
		const agents, takes = 10_000, 100 * time.Millisecond
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
						<-time.After(many.after)
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
		least := agents * takes / openingAtOnce
		if last > 3*least || most != openingAtOnce || hellos > 3*agents {
			t.Errorf("the last is served after %s, with %d at once and %d hellos; it takes %s at the least", last, most, hellos, least)
		}
	})
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
