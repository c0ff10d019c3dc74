package guard

import (
	"testing"
	"testing/synctest"
)

// Strangers who wait in masses make nobody of another address wait for more than one of them each, and nobody whose handshake has begun for any that has not.
//
// proves SEC-5
func TestTurnsGoRoundTheAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, came := newTurns(1), make(chan string, 300)
		left := make(chan struct{})
		if !turns.take("busy", false, left) {
			t.Fatal("no turn although all are free")
		}
		waits := func(place string, begun bool) {
			go func() {
				if turns.take(place, begun, left) {
					came <- place
				}
			}()
			synctest.Wait()
		}
		for range 100 {
			waits("stranger 1", false)
			waits("stranger 2", false)
		}
		waits("agent", false)
		waits("agent that has begun", true)
		waits("stranger that has begun", true)
		for _, want := range []string{"agent that has begun", "stranger that has begun", "stranger 1", "stranger 2", "agent", "stranger 1", "stranger 2", "stranger 1"} {
			turns.give()
			synctest.Wait()
			if got := <-came; got != want {
				t.Fatalf("the turn was had by %s, want %s", got, want)
			}
		}
		close(left)
		synctest.Wait()
		if n := len(turns.fresh.places) + len(turns.begun.places); n != 0 || turns.fresh.ring.Len() != 0 || turns.begun.ring.Len() != 0 {
			t.Errorf("%d addresses still wait after all have left", n)
		}
		turns.give()
		if turns.free != 1 {
			t.Errorf("%d turns are free in the end, want 1", turns.free)
		}
	})
}

// A turn that comes just as its caller leaves is not lost.
//
// proves SEC-5
func TestTurnOfWhoHasLeftIsPassedOn(t *testing.T) {
	for range 200 {
		turns, left, done := newTurns(1), make(chan struct{}), make(chan bool, 1)
		turns.take("busy", false, nil)
		go func() { done <- turns.take("agent", false, left) }()
		go close(left)
		turns.give()
		if <-done {
			turns.give()
		}
		if turns.free != 1 {
			t.Fatalf("%d turns are free in the end, want 1", turns.free)
		}
	}
}
