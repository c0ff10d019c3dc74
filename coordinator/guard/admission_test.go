package guard

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Ten thousand agents whose replica has died connect to another, 64 at once. All of them follow
// instructions, and all are served in little more than the time that this takes, even if it takes
// longer in the beginning, while all of them arrive.
//
// proves SAFE-11
func TestAllOfACrowdAreLetInAtThePaceThereIs(t *testing.T) {
	const agents = 10_000
	told := Patience{PatienceFor(30 * time.Second), func(time.Duration) error { return nil }}
	for _, c := range []struct {
		takes, first time.Duration
		waits        Patience
		most         float64 // of what it takes at the least
		hellos       int     // of each at the most, on average
	}{
		{100 * time.Millisecond, 100 * time.Millisecond, Impatient, 2, 3},
		{20 * time.Millisecond, 20 * time.Millisecond, Impatient, 2, 2},
		{20 * time.Millisecond, 100 * time.Millisecond, Impatient, 2.5, 2},
		{20 * time.Millisecond, 20 * time.Millisecond, told, 1.01, 1}, // none is sent away
		{20 * time.Millisecond, 100 * time.Millisecond, told, 1.3, 1},
		{100 * time.Millisecond, 100 * time.Millisecond, told, 1.5, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := NewAdmission()
			var all sync.WaitGroup
			var mu sync.Mutex
			began, last, hellos, atOnce, most := time.Now(), time.Duration(0), 0, 0, 0
			for range agents {
				all.Go(func() {
					for {
						mu.Lock()
						hellos++
						mu.Unlock()
						leave, err := a.Enter(t.Context(), c.waits, 30*time.Second)
						var many *Crowded
						if errors.As(err, &many) {
							<-time.After(many.After + rand.N(many.After/8)) // as agents do
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
						atOnce-- // before the next one is admitted
						last = max(last, time.Since(began))
						mu.Unlock()
						leave()
						return
					}
				})
			}
			all.Wait()
			least := agents * c.takes / admitAtOnce
			if last.Seconds() > c.most*least.Seconds() || most != admitAtOnce || hellos > c.hellos*agents {
				t.Errorf("where each takes %s: the last is served after %s, with %d at once and %d hellos; "+
					"it takes %s at the least", c.takes, last, most, hellos, least)
			}
			t.Logf("where each takes %s: the last is served after %s, with %d hellos; at the least %s", c.takes, last,
				hellos, least)
		})
	}
}

// Renewals come first: while they are late fewer sessions begin, and as many as before later.
func TestFewerAreLetInWhileRenewalsAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAdmission()
		for range 10 {
			a.Slower(time.Now())
			<-time.After(slowAgain)
		}
		if a.most != minAdmit {
			t.Errorf("%d are let in at once", a.most)
		}
		for range admitAtOnce {
			<-time.After(time.Second)
			leave, err := a.Enter(t.Context(), Impatient, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		if a.most != admitAtOnce {
			t.Errorf("%d are let in at once, long after", a.most)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var leaves []func()
		for range admitAtOnce {
			leave, err := a.Enter(ctx, Impatient, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		cancel()
		if _, err := a.Enter(ctx, Impatient, time.Minute); !errors.Is(err, context.Canceled) || a.queue.Len() != 0 {
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

// A client that can wait in the queue learns after a second that it waits, and stays as long as a
// leader allows for; others wait no longer than their own timeout. All share one queue, and a
// replica that stops sends them away at once.
//
// proves SAFE-11, SAFE-1
func TestWaitingAgentsAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAdmission()
		a.most, a.slowed = 1, time.Now().Add(time.Hour)
		leave, err := a.Enter(t.Context(), Impatient, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		type answer struct {
			after, told, most time.Duration
			err               error
		}
		begun := time.Now()
		come := func(most time.Duration, understands bool) <-chan answer {
			out := make(chan answer, 1)
			var got answer
			p := Patience{Most: most}
			if understands {
				p.Tell = func(most time.Duration) error {
					got.told, got.most = time.Since(begun), most
					return nil
				}
			}
			go func() {
				leave, err := a.Enter(t.Context(), p, time.Minute)
				got.after, got.err = time.Since(begun), err
				out <- got
				if err == nil {
					<-time.After(time.Millisecond)
					leave()
				}
			}()
			synctest.Wait()
			return out
		}
		hasty := come(silentWait, false)
		late := come(6*time.Second, true)
		inTime := come(9*time.Second, true)
		next := come(9*time.Second, true)
		<-time.After(8 * time.Second)
		leave()
		var many *Crowded
		if got := <-hasty; !errors.As(got.err, &many) || got.after != silentWait || got.told != 0 {
			t.Errorf("who is not told: %+v", got)
		}
		if got := <-late; !errors.As(got.err, &many) || got.after != 6*time.Second || got.told != tellAfter ||
			got.most != 5*time.Second+waitSpare {
			t.Errorf("who waits for 6s: %+v", got)
		}
		if got := <-inTime; got.err != nil || got.after != 8*time.Second || got.told != tellAfter ||
			got.most != 8*time.Second+waitSpare {
			t.Errorf("who waits for 9s: %+v", got)
		}
		if got := <-next; got.err != nil || got.after != 8*time.Second+time.Millisecond {
			t.Errorf("the next one: %+v", got)
		}
		synctest.Wait()
		<-time.After(time.Second)

		if _, err := a.Enter(t.Context(), Impatient, time.Minute); err != nil {
			t.Fatal(err)
		}
		waits := come(9*time.Second, true)
		a.End()
		if got := <-waits; !errors.Is(got.err, ErrStopping) {
			t.Errorf("who waits at a replica that stops: %+v", got)
		}
		if _, err := a.Enter(t.Context(), Impatient, time.Minute); !errors.Is(err, ErrStopping) || a.queue.Len() != 0 {
			t.Errorf("who comes then: %v, and %d wait", err, a.queue.Len())
		}
	})
}

// The time that a leader gives agents to return allows for one replica that does not answer and one
// that lets them wait.
//
// proves SAFE-1
func TestNobodyWaitsForLongerThanALeaderCountsWith(t *testing.T) {
	for _, longest := range []time.Duration{
		time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
		2 * time.Minute,
	} {
		grace := max(longest/2, 2*protocol.AnswerTimeout) // beside the longest back-off: see evidence
		if most := PatienceFor(longest); most <= silentWait || protocol.AnswerTimeout+most+waitSpare > grace {
			t.Errorf("with a back-off of %s agents wait for %s", longest, most)
		}
	}
}
