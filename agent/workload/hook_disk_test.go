package workload

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// disk takes a hook's records. It hangs while it is locked.
type disk struct {
	sync.RWMutex
	asked chan struct{} // a write has begun
}

// slow has the records of a hook written to a disk that may hang.
func (h hookTest) slow() *disk {
	d := &disk{asked: make(chan struct{}, 100)}
	h.records.save = func(path string, r *hookRecord) error {
		d.asked <- struct{}{}
		d.RLock()
		defer d.RUnlock()
		return saveRecord(path, r)
	}
	return d
}

// A disk that hangs delays neither the kill of a hook nor the report that it ended.
//
// proves DRAIN-1, SAFE-9
func TestADiskThatHangsDelaysNoHook(t *testing.T) {
	h := newHookTest(t)
	disk := h.slow()
	h.Want(order(t, "d1", "stubborn"))
	pid := h.says("ready")
	disk.Lock()
	h.Want(nil)
	h.idle()
	if lives(pid) {
		t.Error("the hook lives")
	}
	disk.Unlock()

	h.Want(order(t, "d2", "stubborn"))
	pid = h.says("ready")
	disk.Lock()
	answer := hang(t, h.out.path)
	kill(t, pid)
	select {
	case <-h.Changed():
	case <-time.After(patience):
		t.Fatal("the end is not told")
	}
	if h.Ended() != "d2" || !strings.Contains(h.log.String(), "was not read") {
		t.Errorf("ended: %q; log:\n%s", h.Ended(), h.log)
	}
	disk.Unlock()
	answer()
}

// What a disk lets through only when its drain was called off, or when the agent has ended, is not
// run; and it is once the drain is wanted again.
//
// proves DRAIN-1, SAFE-9
func TestAHookThatADiskHoldsUp(t *testing.T) {
	for name, hold := range map[string]func(h hookTest) (answer func()){
		"its record": func(h hookTest) func() {
			disk := h.slow()
			disk.Lock()
			h.Want(order(h.T, "d1", "stubborn"))
			<-disk.asked
			return disk.Unlock
		},
		"its output": func(h hookTest) func() {
			if err := os.WriteFile(h.out.path, nil, 0o600); err != nil {
				h.Fatal(err)
			}
			answer := hang(h.T, h.out.path)
			h.Want(order(h.T, "d1", "stubborn"))
			h.eventually("its output is being opened", h.out.busy)
			return answer
		},
	} {
		for what, end := range map[string]func(h hookTest){
			"called off": func(h hookTest) { h.Want(nil) },
			"left": func(h hookTest) {
				go h.Close(true)
				h.eventually("it is closed", func() bool {
					h.mu.Lock()
					defer h.mu.Unlock()
					return h.closed
				})
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				h := newHookTest(t)
				answer := hold(h)
				end(h)
				answer()
				h.idle()
				if !inTime(patience, h.records.written) {
					t.Fatal("the records are not written")
				}
				if strings.Contains(h.log.String(), "drain hook started") || h.Ended() != "" {
					t.Errorf("ended: %q; log:\n%s", h.Ended(), h.log)
				}
				next := nextHook(t, h.cfg)
				next.Want(order(t, "d1", "fail"))
				next.ends("d1")
				if next.output() == "" {
					t.Error("it was not run when it was wanted again")
				}
			})
		}
	}
}

// An agent that is killed as it starts a hook is followed by none that runs it again. Whether it
// runs cannot be known then, so its time passes.
//
// proves DRAIN-1
func TestAHookThatMayHaveBeenStarted(t *testing.T) {
	first := newHookTest(t)
	d := order(t, "d1", "stubborn")
	first.Want(d)
	first.says("ready")
	first.Close(true)
	r, known, err := first.records.read()
	if err != nil || !known || r.PID == 0 {
		t.Fatalf("record: %+v, %t, %v", r, known, err)
	}
	r.record = record{Boot: r.Boot} // as it was until the process was recorded
	r.Begun = time.Now()
	if err := writeRecord(first.records.path, r); err != nil {
		t.Fatal(err)
	}
	next, short := nextHook(t, first.cfg), *d
	short.Timeout = 100 * time.Millisecond
	next.Want(&short)
	next.ends("d1")
	if passed := time.Since(r.Begun); passed < short.Timeout {
		t.Errorf("it is told to have ended after %s", passed)
	}
	log := next.log.String()
	if !strings.Contains(log, "drain hook may run") || strings.Contains(log, "drain hook started") {
		t.Errorf("log:\n%s", log)
	}
}

// A hook is started only when the disk has it that it is: else the next agent would start it again.
//
// proves DRAIN-1
func TestTheRecordOfAHookComesFirst(t *testing.T) {
	h := newHookTest(t)
	var first sync.Once
	h.records.save = func(path string, r *hookRecord) error {
		first.Do(func() {
			if r == nil || r.Token != "d1" || r.PID != 0 || strings.Contains(h.log.String(), "drain hook started") {
				t.Errorf("first record: %+v; log:\n%s", r, h.log)
			}
		})
		return saveRecord(path, r)
	}
	h.Want(order(t, "d1", "fail"))
	h.ends("d1")
}

// A cut of the output that hangs until another drain's hook is wanted takes away nothing of that
// hook's output.
//
// proves DRAIN-1
func TestACutThatHangsTakesAwayNothingOfTheNextHook(t *testing.T) {
	h := newHookTest(t)
	h.out.limit = 100
	if err := os.WriteFile(h.out.path, bytes.Repeat([]byte("x"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.out.earlier(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answer := hang(t, h.out.earlier())
	cut := make(chan error, 1)
	go func() { cut <- h.out.cut() }()
	h.eventually("it is being cut", h.out.busy)
	if got := string(h.out.saidSoon(nil)); got != lateOutput {
		t.Errorf("half cut, the output is %q", got)
	}
	h.Want(order(t, "d1", "stubborn"))
	answer()
	if err := <-cut; err != nil {
		t.Error(err)
	}
	h.says("ready")
	if h.output() != "ready\n" {
		t.Errorf("output is %q", h.output())
	}
}

// busy reports whether the disk holds up who cuts, opens or reads the output.
func (o *output) busy() bool {
	if !o.mu.TryLock() {
		return true
	}
	o.mu.Unlock()
	return false
}

// While the record cannot be read, no hook is run: the one of an earlier agent may run.
//
// proves DRAIN-1
func TestAHookWaitsForARecordThatCannotBeRead(t *testing.T) {
	first := newHookTest(t)
	d := order(t, "d1", "stubborn")
	first.Want(d)
	pid := first.says("ready")
	first.Close(true)
	path := first.records.path
	if err := errors.Join(os.Rename(path, path+".kept"), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	next := nextHook(t, first.cfg)
	next.Want(d)
	next.eventually("it is tried", func() bool { return strings.Contains(next.log.String(), "is not known, and may run") })
	if err := errors.Join(os.Remove(path), os.Rename(path+".kept", path)); err != nil {
		t.Fatal(err)
	}
	next.eventually("it is taken up", func() bool { return strings.Contains(next.log.String(), "adopted") })
	if strings.Contains(next.log.String(), "drain hook started") || !lives(pid) {
		t.Errorf("lives: %t, log:\n%s", lives(pid), next.log)
	}
}
