package gateway

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// An etcd that has lost its data counts its revisions from 1 again. What a session writes there
// replaces what it knows of the lost one: no report could be written before etcd had caught up with
// revisions of long ago, and healthy instances would be judged as if they never reported.
//
// proves SAFE-17
func TestRevisionsOfALostEtcdAreForgotten(t *testing.T) {
	var s session
	s.wanted.record = 1100
	s.forgetRevision(1101)
	if s.recordedAt() != 1100 {
		t.Errorf("recorded at %d after a newer record, want 1100 until it is taken over", s.recordedAt())
	}
	s.forgetRevision(40)
	if s.recordedAt() != 0 {
		t.Errorf("recorded at %d after a record of another etcd, want 0", s.recordedAt())
	}
	s.noteWritten(1000)
	s.noteWritten(1200)
	if s.openedAt() != 1000 || s.wroteAt() != 1200 {
		t.Fatalf("opened at %d, wrote at %d", s.openedAt(), s.wroteAt())
	}
	s.noteWritten(30)
	if s.openedAt() != 30 || s.wroteAt() != 30 {
		t.Errorf("after the loss: opened at %d, wrote at %d, want 30 for both", s.openedAt(), s.wroteAt())
	}
}

// Of two streams of an agent the one that was registered later counts. A stream that began when the
// other was already registered is the later one, even if etcd has lost its data in between.
//
// proves DET-18, SAFE-17
func TestTheLaterOfTwoStreamsCounts(t *testing.T) {
	now := time.Now()
	at := func(began, entered time.Duration, opened store.Revision) *session {
		s := &session{instance: "web-0", began: now.Add(began), entered: now.Add(entered)}
		s.noteWritten(opened)
		return s
	}
	for name, c := range map[string]struct {
		first, second *session // in the order in which they enter
		wins          int
	}{
		"one after the other":                  {at(0, 1, 1000), at(2, 3, 1001), 2},
		"after the loss":                       {at(0, 1, 1000), at(2, 3, 30), 2},
		"at once":                              {at(0, 3, 1000), at(1, 3, 1001), 2},
		"at once, and the second was sooner":   {at(0, 3, 1001), at(1, 3, 1000), 1},
		"within one tick of the clock, sooner": {at(0, 0, 1001), at(0, 0, 1000), 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Gateway{sessions: map[string]*session{}}
			g.enter(c.first)
			older, _ := g.enter(c.second)
			stays := []*session{c.first, c.second}[c.wins-1]
			ends := []*session{c.first, c.second}[2-c.wins]
			if g.sessions["web-0"] != stays || older != ends {
				t.Errorf("the session of revision %d stays, and the one of %d ends", g.sessions["web-0"].openedAt(),
					older.openedAt())
			}
		})
	}
}
