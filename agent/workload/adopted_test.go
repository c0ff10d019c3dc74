package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// released returns a runner that has released its workload, which runs, and the workload's process.
func released(t *testing.T, workload string) (first runnerTest, pid int) {
	t.Helper()
	first = begin(t, workload, nil)
	first.start()
	first.says("ready")
	pid = first.State().PID
	first.Release()
	return first, pid
}

func TestTakenUpAgainByTheNextAgent(t *testing.T) {
	first := begin(t, "serve", nil)
	first.start()
	first.says("ready")
	pid := first.State().PID
	first.Release()
	if !lives(pid) {
		t.Fatal("workload ended when it was released")
	}
	second := again(t, first.cfg)
	second.start()
	if s := second.State(); !s.Running || s.PID != pid {
		t.Fatalf("state is %+v, want process %d taken up again", s, pid)
	}
	kill(t, pid)
	if e := second.exit(); e.Code != -1 || string(e.Output) != "ready\n" {
		t.Errorf("exit is %+v", e)
	}
}

// An upgraded agent is the same process as the one before, and its workload still a child: how a
// task ends is known, so it is not run again.
//
// proves REC-12, PROV-7
func TestTheEndOfWhatThisProcessStartedIsKnown(t *testing.T) {
	first, pid := released(t, "orderly")
	second := again(t, first.cfg)
	second.start()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := second.exit(); e.Code != 0 || e.Why != "ended with exit code 0" {
		t.Errorf("exit is %+v", e)
	}
	if s, err := readStat(pid); err == nil {
		t.Errorf("it is not reaped: %+v", s)
	}
}

// Where the workload's first process ends while no agent runs, the next agent ends the rest of it,
// whether it is to run the workload or to stop it: nothing else would, and a workload that is
// started later would run beside it.
//
// proves DET-18, SAFE-9
func TestWhatTheWorkloadLeftWhileNoAgentRanIsEnded(t *testing.T) {
	for name, next := range map[string]func(r runnerTest){
		"started": func(r runnerTest) { r.start() },
		"stopped": func(r runnerTest) { r.Stop(r.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			first := begin(t, "family", nil)
			first.start()
			first.says("ready")
			first.says("child ")
			var child int
			_, number, _ := strings.Cut(first.output(), "child ")
			if _, err := fmt.Sscanf(number, "%d", &child); err != nil {
				t.Fatalf("output %q: %v", first.output(), err)
			}
			pid := first.State().PID
			first.Release()
			kill(t, pid)
			first.eventually("the first process ends", func() bool { return !lives(pid) })
			if !lives(child) {
				t.Fatal("its child has ended too")
			}
			second := again(t, first.cfg)
			next(second)
			second.eventually("its child ends", func() bool { return !lives(child) })
		})
	}
}

func TestTakenUpAgainAndStopped(t *testing.T) {
	first, pid := released(t, "orderly")
	second := again(t, first.cfg)
	second.start()
	second.Stop(t.Context())
	if lives(pid) || !strings.HasSuffix(second.output(), "ended in order\n") {
		t.Errorf("workload lives: %t, output %q", lives(pid), second.output())
	}
}

// If an agent is killed while it stops the workload, the next agent, which only wants it stopped,
// completes that.
//
// proves DET-18
func TestStopOfWhatAnEarlierAgentLeft(t *testing.T) {
	first, pid := released(t, "orderly")
	second := again(t, first.cfg)
	second.Stop(t.Context())
	if lives(pid) || !strings.HasSuffix(second.output(), "ended in order\n") {
		t.Errorf("workload lives: %t, output %q", lives(pid), second.output())
	}
}

// What another agent has started in place of what was released is ended, too, and its record stays
// until then.
//
// proves SAFE-9, PROV-7
func TestStopOfWhatAnotherAgentRestarted(t *testing.T) {
	for name, restarted := range map[string]bool{"restarted": true, "as it was": false} {
		t.Run(name, func(t *testing.T) {
			first := begin(t, "orderly", nil)
			first.start()
			first.says("ready")
			first.Release()
			second := again(t, first.cfg)
			if restarted {
				second.Stop(t.Context())
			}
			second.start()
			second.says("ready")
			pid := second.State().PID
			second.Release() // it hangs from now on
			first.StopReleased(t.Context())
			if lives(pid) || !strings.HasSuffix(first.output(), "ended in order\n") {
				t.Errorf("workload lives: %t, output %q", lives(pid), first.output())
			}
			if _, err := os.Stat(first.records.path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("record: %v", err)
			}
		})
	}
}

// What was released is ended though the disk does not say what another agent has made of it.
//
// proves SAFE-9
func TestStopOfWhatWasReleasedThoughTheDiskHangs(t *testing.T) {
	r := begin(t, "serve", nil)
	r.start()
	r.says("ready")
	pid := r.State().PID
	if !r.Release() {
		t.Error("the record is said not to be on disk")
	}
	hung := filepath.Join(t.TempDir(), "pipe")
	err := errors.Join(syscall.Mkfifo(hung, 0o600), os.Remove(r.records.path), os.Link(hung, r.records.path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f, err := os.OpenFile(hung, os.O_WRONLY, 0); err == nil {
			_ = f.Close()
		}
	})
	if err := r.StopReleased(t.Context()); err != nil || lives(pid) {
		t.Errorf("workload lives: %t, %v", lives(pid), err)
	}
}

// The agent learns whether the next one would find the workload.
//
// proves SAFE-5
func TestReleaseOfWhatIsNotRecorded(t *testing.T) {
	r := begin(t, "serve", nil)
	full := errors.New("no space left")
	r.records.save = func(string, *record) error { return full }
	r.start()
	pid := r.State().PID
	if r.Release() {
		t.Error("a record that was not written is said to be on disk")
	}
	kill(t, pid)
}

func TestNextAgentOfTheSameBootStartsNothingThatEnded(t *testing.T) {
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched %t", watched), func(t *testing.T) {
			first := begin(t, "serve", nil)
			first.start()
			first.says("ready")
			pid := first.State().PID
			if !watched {
				first.Release()
			}
			kill(t, pid)
			if watched {
				first.exit()
				first.Release()
			} else {
				first.eventually("workload ends", func() bool { return !lives(pid) })
			}
			second := again(t, first.cfg)
			second.start()
			e := second.exit()
			if string(e.Output) != "ready\n" || e.Code != -1 || watched != (e.Signal == "killed") {
				t.Errorf("exit is %+v", e)
			}
		})
	}
}

func TestNextBootStartsAnewAndLeavesNothingOfTheFormer(t *testing.T) {
	first := begin(t, "stubborn", nil)
	first.start()
	first.says("ready")
	pid := first.State().PID
	first.Release()
	cfg := first.cfg
	cfg.Boot = "boot-2"
	second := again(t, cfg)
	second.start()
	if s := second.State(); !s.Running || s.PID == pid {
		t.Errorf("state is %+v, want a new process", s)
	}
	second.eventually("workload of the former boot ends", func() bool { return !lives(pid) })
}
