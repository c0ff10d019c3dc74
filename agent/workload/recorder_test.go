package workload

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A disk that hangs delays neither the kill of a workload nor the report of its end, and a late
// write writes the latest state.
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
		if err := r.Start(t.Context()); err != nil {
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
	rec, known, err := newRecorder[record](r.records.path, nil).read()
	if err != nil || !known || rec.PID != pid || rec.Exit != nil {
		t.Errorf("record is %+v, %t, %v; want process %d", rec, known, err, pid)
	}
}

// A record that a full disk refused is written when the disk has room: otherwise the next agent
// would start a second workload beside the first, days later.
//
// proves DET-8
func TestARecordIsWrittenOnceTheDiskHasRoom(t *testing.T) {
	r := begin(t, "serve", nil)
	r.records.pause = time.Millisecond
	var full atomic.Bool
	full.Store(true)
	tried, logged := make(chan struct{}, 1), 0
	r.records.failed = func(*record, error) { logged++ }
	r.records.save = func(path string, rec *record) error {
		if full.Load() {
			select {
			case tried <- struct{}{}:
			default:
			}
			return syscall.ENOSPC
		}
		return saveRecord(path, rec)
	}
	r.start()
	for range 3 {
		<-tried
	}
	pid := r.State().PID
	full.Store(false)
	r.eventually("the record is written", r.records.kept)
	if logged != 1 {
		t.Errorf("the failure was logged %d times", logged)
	}
	if !r.Release() {
		t.Error("the next agent does not know of the workload")
	}
	next := again(t, r.cfg)
	next.start()
	if got := next.State().PID; got != pid {
		t.Errorf("process %d is started beside %d", got, pid)
	}
}

// Nor does it delay the report of an end that the output cannot be read.
//
// proves DET-1, DET-19
func TestAnEndIsReportedWithoutOutput(t *testing.T) {
	r := begin(t, "serve", nil)
	r.start()
	r.says("ready")
	answer := hang(t, r.out.path)
	kill(t, r.State().PID)
	select {
	case <-r.Changed():
	case <-time.After(patience):
		t.Fatal("the end is not told")
	}
	if e := r.State().Exit; e == nil || e.Signal != "killed" || string(e.Output) != lateOutput {
		t.Errorf("exit is %+v", e)
	}
	answer()
	r.recorded()
}

// A start that the disk delayed until the workload must no longer run starts nothing.
//
// proves SAFE-9
func TestAStartThatIsCalledOff(t *testing.T) {
	r := begin(t, "serve", nil)
	if err := os.WriteFile(r.out.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answer := hang(t, r.out.path)
	ctx, callOff := context.WithCancel(t.Context())
	started := make(chan error, 1)
	go func() { started <- r.Start(ctx) }()
	r.eventually("its output is being opened", r.out.busy)
	callOff()
	answer()
	if err := <-started; !errors.Is(err, ErrWaits) {
		t.Errorf("start: %v", err)
	}
	if s := r.State(); s.Running || s.Exit != nil {
		t.Errorf("state is %+v", s)
	}
	r.start()
	if !r.State().Running {
		t.Error("it does not run")
	}
}

// While the record of an earlier agent's workload cannot be read, that may run: no second one is
// started beside it, and a stop does not forget it.
//
// proves SAFE-9
func TestARecordThatCannotBeReadIsNoProof(t *testing.T) {
	first, pid := released(t, "orderly")
	path := first.records.path
	unreadable := func() (readable func()) {
		t.Helper()
		if err := errors.Join(os.Rename(path, path+".kept"), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		return func() {
			t.Helper()
			if err := errors.Join(os.Remove(path), os.Rename(path+".kept", path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := again(t, first.cfg)
	readable := unreadable()
	if err := next.Start(t.Context()); !errors.Is(err, ErrWaits) {
		t.Errorf("start: %v", err)
	}
	if s := next.State(); s.Running || !s.Unread || !strings.Contains(s.Waits, path) {
		t.Errorf("started: %+v", s)
	}
	next.Stop(t.Context())
	if s := next.State(); !s.Unread || !lives(pid) {
		t.Errorf("stopped: %+v, lives: %t", s, lives(pid))
	}
	readable()
	next.start()
	if s := next.State(); s.PID != pid || s.Unread {
		t.Errorf("readable: %+v", s)
	}
	next.Release()

	last := again(t, first.cfg)
	readable = unreadable()
	last.Stop(t.Context())
	last.recorded()
	readable() // nothing has removed it
	last.Stop(t.Context())
	if lives(pid) || last.State().Unread {
		t.Errorf("lives: %t, state %+v", lives(pid), last.State())
	}
}
