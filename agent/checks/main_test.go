package checks

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// playVar has the test program be a command that a check runs.
const playVar = "LEASEHOLD_TEST_PLAY"

func TestMain(m *testing.M) {
	if role := os.Getenv(playVar); role != "" {
		play(role)
	}
	goleak.VerifyTestMain(m)
}

// play is a command that does not end, alone or with a child that keeps its output open.
func play(role string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if role == "fork" {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), playVar+"=stay")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	if err := os.WriteFile(os.Getenv("MARK"), []byte("here"), 0o600); err != nil {
		panic(err)
	}
	<-time.After(time.Hour)
}
