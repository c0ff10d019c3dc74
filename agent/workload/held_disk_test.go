package workload

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hangingProgram is a program that no process can execute until go on is called: a lease on its
// file holds up who opens it, for as long as the kernel waits for that (limit). reached is
// signalled when a process waits.
func hangingProgram(t *testing.T) (path string, reached <-chan os.Signal, limit time.Duration, goOn func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho it ran\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGIO)
	f, err := os.Open(path)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/sys/fs/lease-break-time")
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	goOn = func() {
		signal.Stop(signals)
		_ = f.Close() // and the lease with it
	}
	t.Cleanup(goOn)
	return path, signals, time.Duration(seconds) * time.Second, goOn
}

// While the disk holds up a program that is to be executed the agent goes on: all of its threads
// can still be stopped for a collection. A command that is given up runs when the disk answers, or
// is killed before.
//
// proves SAFE-5, DET-9
func TestAProgramOnADiskThatHangsHoldsUpNothing(t *testing.T) {
	r := begin(t, "serve", nil)
	program, reached, limit, goOn := hangingProgram(t)
	type result struct {
		exit *Exit
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		exit, err := r.cfg.RunOnce(t.Context(), []string{program}, nil)
		ended <- result{exit, err}
	}()
	<-reached
	began := time.Now()
	runtime.GC()
	if took := time.Since(began); took >= limit/2 {
		t.Errorf("the agent stood still for %s", took)
	}
	goOn()
	if got := <-ended; got.err != nil || got.exit.Code != 0 || string(got.exit.Output) != "it ran\n" {
		t.Errorf("got %+v, %v", got.exit, got.err)
	}
}

// proves SAFE-9: a command that the disk holds up is killed when its time is over
func TestACommandOnADiskThatHangsIsGivenUp(t *testing.T) {
	r := begin(t, "serve", nil)
	program, reached, _, _ := hangingProgram(t)
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Command(ctx, r.cfg, Deps{Logger: r.log}, []string{program}, nil)
	}()
	<-reached
	giveUp()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v", err)
	}
}
