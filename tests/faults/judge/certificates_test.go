package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// certified is a certificate that is seen on a machine.
func (s *story) certified(id, serial string, left time.Duration) {
	s.add(history.Event{Certificate: &history.Certificate{Instance: id, Path: "tls.crt", Serial: serial, Left: left}})
	s.pass(beat)
}

func TestCertificatesAreRenewed(t *testing.T) {
	s := web(t)
	s.certified(one, "1", time.Minute)
	s.pass(41 * time.Second)
	s.certified(one, "2", time.Minute)
	s.certified(one, "2", time.Minute-beat) // told again by an agent that started again
	s.pass(41 * time.Second)
	s.certified(one, "3", -time.Hour)
	s.broken("FILE-2") // it had ended
}

// outlasts is a web in which a certificate is not renewed, and what happens meanwhile.
func outlasts(t *testing.T, happens func(*story), then time.Duration) *story {
	s := web(t)
	s.certified(one, "1", time.Minute)
	s.pass(50 * time.Second)
	happens(s)
	s.pass(then)
	s.mark(history.Mark{What: history.Begun}) // so long is the history
	return s
}

func TestACertificateEnds(t *testing.T) {
	nothing := func(*story) {}
	outlasts(t, nothing, 10*time.Second).innocent() // it ends within the slack
	outlasts(t, nothing, 20*time.Second).broken("FILE-2")
	outlasts(t, func(s *story) { s.certified("web-1-aaaaaa", "2", time.Minute) }, 20*time.Second).broken("FILE-2")
	outlasts(t, func(s *story) { // one that makes no coordinator act otherwise
		s.add(history.Event{Trouble: &history.Trouble{ID: 1, Kind: "balancer-fails"}})
	}, 20*time.Second).broken("FILE-2")
	for what, happens := range map[string]func(*story){
		"no leader can act": func(s *story) { s.add(history.Event{Trouble: &history.Trouble{ID: 1, Kind: "quorum-lost"}}) },
		"its disk is full": func(s *story) {
			s.add(history.Event{Trouble: &history.Trouble{ID: 1, Kind: "file-edited-on-full-disk"}})
		},
		"a fault of its own": func(s *story) { s.harm(one, history.Cut) },
		"it leaves": func(s *story) {
			s.step(one, store.Running, func(r *store.Instance) { r.Condemned = &store.Condemned{} })
			s.step(one, store.Draining)
		},
		"it is down": func(s *story) {
			s.machine(one, history.Ended, history.ByFault)
			s.harm(one, history.Crashed)
		},
	} {
		t.Run(what, func(t *testing.T) { outlasts(t, happens, 20*time.Second).innocent() })
	}
}

func TestAKeyIsSeenElsewhere(t *testing.T) {
	s := web(t)
	s.add(history.Event{Leaked: &history.Leaked{Instance: one, Where: "replica-a.log", As: "key 0, as plain"}})
	s.broken("FILE-2")
}
