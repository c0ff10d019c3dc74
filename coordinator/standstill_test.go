package coordinator

import (
	"testing"
	"testing/synctest"
	"time"
)

// A process that stood still says so, and an etcd that was silent meanwhile is not blamed for it.
//
// proves SAFE-1
func TestAStandstillIsOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		began := time.Now()
		for range 8 {
			p.beat()
			<-time.After(pulseEvery)
		}
		if still := p.stoodStill(began); still != 0 {
			t.Errorf("with a steady pulse it stood still for %s", still)
		}
		<-time.After(5 * time.Second) // no pulse comes
		if still := p.stoodStill(began); still < 5*time.Second {
			t.Errorf("before its pulse comes it stood still for %s", still)
		}
		p.beat()
		if still := p.stoodStill(began); still < 5*time.Second {
			t.Errorf("once it has come it stood still for %s", still)
		}
		p.beat()
		if still := p.stoodStill(time.Now().Add(time.Nanosecond)); still != 0 {
			t.Errorf("since then it stood still for %s", still)
		}
	})
}
