package workload

import (
	"context"
	"os"
	"testing"
)

// A disk that hangs delays neither the kill of a workload nor the report that it ended, and what
// is written late is what counts then.
//
// proves SAFE-9, DET-1
func TestADiskThatHangsDelaysNothing(t *testing.T) {
	r := begin(t, "stubborn", nil)
	hung, works := context.WithCancel(t.Context())
	t.Cleanup(works)
	r.records.save = func(path string, rec *record) error {
		<-hung.Done()
		return saveRecord(path, rec)
	}
	start := func() int {
		t.Helper()
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		s := r.State()
		if !s.Running || s.Exit != nil {
			t.Fatalf("state is %+v, want it to run", s)
		}
		return s.PID
	}
	kill(t, start())
	if e := r.told(); e.Signal != "killed" {
		t.Errorf("exit is %+v", e)
	}
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	r.Stop(soon)
	pid := start() // not what an outdated record says
	r.Stop(soon)
	if lives(pid) {
		t.Error("workload lives")
	}
	pid = start()
	if _, err := os.Stat(r.records.path); err == nil {
		t.Fatal("the disk does not hang")
	}
	works()
	r.recorded()
	if rec, known, err := readRecord(r.records.path); err != nil || !known || rec.PID != pid || rec.Exit != nil {
		t.Errorf("record is %+v, %t, %v; want process %d", rec, known, err, pid)
	}
}
