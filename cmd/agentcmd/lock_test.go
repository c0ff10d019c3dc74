package agentcmd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/agent/upgrade"
	"github.com/leasehold/leasehold/provider/durable"
)

// A second agent in one state directory waits a while for the end of the first, and then names it.
// An order to end ends the wait. Where there are no locks it runs all the same.
func TestOneAgentUsesAStateDirectory(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	unlock, err := lockState(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	holder := "another agent (process " + strconv.Itoa(os.Getpid()) + ") uses " + dir
	if _, err := lockState(t.Context(), dir, log); err == nil || !strings.Contains(err.Error(), holder) {
		t.Fatalf("a second agent: %v", err)
	}
	asked, stop := context.WithCancel(t.Context())
	stop()
	if _, err := lockState(asked, dir, log); !errors.Is(err, context.Canceled) {
		t.Errorf("one that is asked to end: %v", err)
	}

	second := make(chan error, 1)
	waits := &waiter{text: "waiting for its end", found: make(chan struct{})}
	go func() {
		unlock, err := lockState(t.Context(), dir, newJSONLogger(waits, slog.LevelInfo))
		if err == nil {
			unlock()
		}
		second <- err
	}()
	<-waits.found
	unlock()
	if err := <-second; err != nil {
		t.Errorf("after the first has ended: %v", err)
	}

	warned := &waiter{text: "cannot be locked", found: make(chan struct{})}
	unlock, err = lockState(t.Context(), dir+"/none", newJSONLogger(warned, slog.LevelInfo))
	if err != nil {
		t.Fatalf("a directory that cannot be written: %v", err)
	}
	unlock()
	<-warned.found
}

// A lock that a disk grants too late is held until the agent ends, and freed even if it comes only
// after that.
func TestALockThatComesLate(t *testing.T) {
	for _, endsBefore := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), lockFile)
		answers, taken := make(chan struct{}), make(chan struct{})
		var late *os.File
		unlock, err := inTime(0, func() (*os.File, error) {
			defer close(taken)
			<-answers
			var err error
			late, err = durable.Lock(path)
			return late, err
		})
		if err == nil {
			t.Fatal("there is no lock yet")
		}
		if endsBefore {
			unlock()
		}
		close(answers)
		<-taken
		if !endsBefore {
			if f, err := durable.Lock(path); err == nil {
				_ = f.Close()
				t.Error("the late lock does not hold")
			}
			unlock()
		}
		for { // until the late lock is freed
			f, err := durable.Lock(path)
			if err == nil {
				_ = f.Close()
				break
			}
			runtime.Gosched()
		}
		runtime.KeepAlive(late) // else the garbage collector might free it
	}
}

// An agent on trial works in the directory of the one that tries it: that one keeps the lock, so
// that no other agent comes between.
func TestAnAgentOnTrialTakesNoLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockState(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	path := filepath.Join(dir, "bootstrap.json")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(upgrade.EnvTrial, filepath.Join(dir, "acknowledged"))
	runsUntilSignalled(t, path)
}
