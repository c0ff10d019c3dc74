package agentcmd

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A second agent in one state directory does not begin: it names the first one. It begins once the
// first has ended, and where there are no locks at all.
func TestOneAgentUsesAStateDirectory(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	unlock, err := lockState(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	asked, stop := context.WithCancel(t.Context())
	stop()
	holder := "another agent (process " + strconv.Itoa(os.Getpid()) + ") uses " + dir
	if _, err := lockState(asked, dir, log); err == nil || !strings.Contains(err.Error(), holder) {
		t.Fatalf("a second agent: %v", err)
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
