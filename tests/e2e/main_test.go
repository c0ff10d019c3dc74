package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/tests/machines"
	"github.com/leasehold/leasehold/tests/programs"
	"github.com/leasehold/leasehold/tests/tier"
)

// The environment of this binary when it is started as another program than the tests.
const (
	envEtcd       = "LEASEHOLD_E2E_ETCD"       // <data directory>=<address>: be an etcd
	envUndertaker = "LEASEHOLD_E2E_UNDERTAKER" // be the process that kills what the tests left behind
)

// atOnce is how many tests run at the same time: they wait for most of their time.
const atOnce = "6"

// built is the directory with the programs under test.
var built string

// undertaker is told of everything that must not outlive this process.
var undertaker io.WriteCloser

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envEtcd) != "":
		if err := serveEtcd(os.Getenv(envEtcd)); err != nil {
			panic(err)
		}
		return
	case os.Getenv(envUndertaker) != "":
		bury(os.Stdin)
		return
	}
	tier.AtOnce(atOnce)
	dir, err := os.MkdirTemp("", "leasehold-e2e-bin-")
	if err != nil {
		panic(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	built = dir
	end, err := prepare(dir)
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := errors.Join(end(), os.RemoveAll(dir)); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// prepare builds the programs.
func prepare(dir string) (end func() error, err error) {
	if err := programs.Build(dir, programs.Leasehold, programs.Agent); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	u := exec.Command(self)
	u.Env = append(os.Environ(), envUndertaker+"=yes")
	u.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only the tests
	if undertaker, err = u.StdinPipe(); err != nil {
		return nil, err
	}
	if err := u.Start(); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(undertaker.Close(), u.Wait()) }, nil
}

// serveEtcd runs an etcd until it is told to end.
func serveEtcd(what string) error {
	dir, listen, _ := strings.Cut(what, "=")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	etcd, err := embedetcd.Start(ctx, embedetcd.Config{DataDir: dir, Listen: listen, Logger: log})
	if err != nil {
		return err
	}
	fmt.Println("ready", etcd.Endpoint())
	select {
	case <-ctx.Done():
	case <-etcd.Stopped():
	}
	return etcd.Close()
}

// bury reads what the tests have started and ended and, when the tests end in any way, kills what
// is left.
func bury(said io.Reader) {
	text, err := io.ReadAll(said)
	if err != nil {
		fmt.Fprintln(os.Stderr, "undertaker:", err)
	}
	left := map[string]bool{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if what, ok := strings.CutPrefix(line, "ended "); ok {
			delete(left, what)
		} else if line != "" {
			left[line] = true
		}
	}
	for what := range left { // programs first: they would create new machines
		var pid int
		if _, err := fmt.Sscanf(what, "program %d", &pid); err == nil && pid > 1 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
	for what := range left {
		if dir, ok := strings.CutPrefix(what, "machines "); ok {
			machines.Kill(dir, machines.Shards(dir))
		}
	}
}
