package gateway

import "testing"

// An etcd that has lost its data counts its revisions from 1 again. What a session writes there replaces what it knows of the lost one: no report could be
// written before etcd had caught up with revisions of long ago, and healthy instances would be judged as if they never reported.
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
