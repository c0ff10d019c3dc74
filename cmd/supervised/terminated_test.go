package supervised

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// envBecomes has this program act as a process that becomes another program.
const envBecomes = "LEASEHOLD_TEST_BECOMES"

// Exit codes of that process.
const (
	notBecome = 2 // it could not be tried
	heard     = 3 // it was told to end before
)

func TestMain(m *testing.M) {
	if os.Getenv(envBecomes) != "" {
		os.Exit(becomes())
	}
	os.Exit(m.Run())
}

// becomes is told to end just before it becomes another program.
func becomes() int {
	ctx, stop := UntilTerminated(syscall.SIGTERM)
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		return notBecome
	}
	if _, err := BeforeExec(ctx); err != nil {
		return heard
	}
	_ = syscall.Exec("/bin/true", []string{"true"}, os.Environ())
	return notBecome
}

// A context that a signal has ended was canceled, to those that ask, and says by which signal.
func TestASignalIsACancellation(t *testing.T) {
	ctx, stop := UntilTerminated(syscall.SIGUSR1)
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	err := context.Cause(ctx)
	if !errors.Is(err, context.Canceled) || err.Error() != "user defined signal 1 signal received" {
		t.Errorf("the cause is %v", err)
	}
}

// With one processor nothing but the runtime's handler runs between the signal and exec: no
// goroutine knows of the signal yet. It has its effect: the process does not become the other
// program, or ends by the signal.
//
// proves PROV-7
func TestASignalJustBeforeExecIsNotLost(t *testing.T) {
	for range 20 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), envBecomes+"=1", "GOMAXPROCS=1")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("the signal was lost: the process became the other program: %v", err)
		}
		status, _ := exit.Sys().(syscall.WaitStatus)
		if exit.ExitCode() != heard && !(status.Signaled() && status.Signal() == syscall.SIGTERM) {
			t.Fatalf("ended by %v\n%s", err, out)
		}
	}
}

// Where the other program does not start, this one goes on and listens as before. The end of the
// context is told, also to one that asks later.
func TestListensAgain(t *testing.T) {
	ctx, stop := UntilTerminated(syscall.SIGUSR1)
	defer stop()
	again, err := BeforeExec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if _, err := BeforeExec(ctx); err == nil {
		t.Error("it may become another program though it was told to end")
	}
	stop()
	if _, err := BeforeExec(ctx); err == nil {
		t.Error("it may become another program though it has ended")
	}
}
