package coordinator

import (
	"testing"
	"time"
)

// A disturbance of etcd may fail the very entry that tells of it: it is written again. While
// the disturbance goes on, an entry follows only when the end that the last one names is reached.
//
// proves SAFE-1
func TestGraceIsWrittenAgain(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var g journaledGrace
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	g.retry = at(10)
	if g.due(at(9), at(40)) || !g.due(at(10), at(40)) {
		t.Error("a failed entry is not written again after its pause")
	}
	g = journaledGrace{}
	entries := 0
	const length = 30
	for s := range 3600 {
		if end := at(s + length); g.due(at(s), end) {
			g.end, g.times = end, g.times+1
			entries++
		}
		if g.end.Before(at(s)) {
			t.Fatalf("%ds: the journal says that the grace is over", s)
		}
	}
	if entries > 3600/length+2 {
		t.Errorf("%d entries in an hour", entries)
	}
}
