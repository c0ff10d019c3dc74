package bench

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/cmd/bench"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/tests/harness"
)

// TestMain is also the program that a bench starts again for its parts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "part" {
		os.Exit(int(bench.Run(context.Background(), environment(os.Stdout, os.Stderr), os.Args[1:])))
	}
	goleak.VerifyTestMain(m)
}

func environment(out, aside interface{ Write([]byte) (int, error) }) bench.Env {
	return bench.Env{
		Stdin: os.Stdin, Stdout: out, Stderr: aside, Now: time.Now, Version: "test",
		RandomID: func() string { return strings.ToLower(rand.Text()) },
		Open:     program.OpenEtcd,
	}
}

// quick makes a bench as short as it can be: agents return within moments, so that no grace is
// long.
var quick = []string{"--interval", "1s", "--lease-ttl", "6s", "--reconnect-max", "1s"}

// longest is until something must have happened, on the slowest machine.
const longest = 5 * time.Minute

// run runs a bench to its end.
func run(ctx context.Context, t *testing.T, args ...string) (code program.Code, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var out, aside harness.Output
	code = bench.Run(ctx, environment(&out, &aside), args)
	return code, out.String(), aside.String()
}

// nothingLeft fails if files of a bench are left.
func nothingLeft(t *testing.T) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "leasehold-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
