package guard

import (
	"testing"
	"testing/synctest"
)

// However many handshakes of a source wait, another source waits for only one of them, and a
// handshake that has begun does not wait for one that has not.
//
// proves SEC-5
func TestSourcesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		permits, came := newHandshakes(1), make(chan string, 300)
		left := make(chan struct{})
		if !permits.acquire("busy", false, left) {
			t.Fatal("no permit although all are free")
		}
		waits := func(source string, begun bool) {
			go func() {
				if permits.acquire(source, begun, left) {
					came <- source
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
		for _, want := range []string{
			"agent that has begun", "stranger that has begun", "stranger 1", "stranger 2",
			"agent", "stranger 1", "stranger 2", "stranger 1",
		} {
			permits.release()
			synctest.Wait()
			if got := <-came; got != want {
				t.Fatalf("the permit went to %s, want %s", got, want)
			}
		}
		close(left)
		synctest.Wait()
		if n := len(permits.fresh.sources) + len(permits.begun.sources); n != 0 || permits.fresh.ring.Len() != 0 ||
			permits.begun.ring.Len() != 0 {
			t.Errorf("%d addresses still wait after all have left", n)
		}
		permits.release()
		if permits.free != 1 {
			t.Errorf("%d permits are free in the end, want 1", permits.free)
		}
	})
}

// A permit that is granted just as its connection is closed is not lost.
//
// proves SEC-5
func TestPermitOfAClosedConnectionIsPassedOn(t *testing.T) {
	for range 200 {
		permits, left, done := newHandshakes(1), make(chan struct{}), make(chan bool, 1)
		permits.acquire("busy", false, nil)
		go func() { done <- permits.acquire("agent", false, left) }()
		go close(left)
		permits.release()
		if <-done {
			permits.release()
		}
		if permits.free != 1 {
			t.Fatalf("%d permits are free in the end, want 1", permits.free)
		}
	}
}
