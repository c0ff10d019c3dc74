package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// quickly are the flags of a bench that is over at once.
var quickly = []string{"--each", "100ms", "--agents", "50", "--pace", "200", "--records", "150"}

// benchPart is what this test program is when a bench starts it again.
func benchPart() Code {
	return Run(context.Background(), Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, os.Args[1:])
}

func openReal(ctx context.Context, c Connection) (store.Store, func() error, error) {
	st, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: c.Endpoints})
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}

// Without --endpoints the bench has an etcd of its own, of which nothing is left.
func TestBenchEtcdOfItsOwn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("LEASEHOLD_ENDPOINTS", "127.0.0.1:1") // what one works with every day is no place for a bench
	w := newWorld(t)
	w.open = openReal
	code, stdout, stderr := w.run(append([]string{"bench", "etcd", "-o", "json"}, quickly...)...)
	if code != Done {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var res struct {
		Measured []struct {
			Name      string  `json:"name"`
			PerSecond float64 `json:"per_second"`
		}
		Memory  uint64 `json:"store_bytes"`
		Limits  []struct{ Agents int }
		Carries int `json:"carries_agents"`
	}
	if err := json.Unmarshal([]byte(stdout), &res); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if len(res.Measured) < 10 || res.Measured[0].PerSecond <= 0 || res.Memory == 0 || len(res.Limits) == 0 || res.Carries <= 0 {
		t.Errorf("measured: %s", stdout)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "leasehold-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchEtcdRefusesOneInUse(t *testing.T) {
	w := newWorld(t)
	bench := append([]string{"bench", "etcd", "--endpoints", "db:2379"}, quickly...)
	code, stdout, stderr := w.run(bench...)
	if code != Done || !strings.Contains(stdout, "This etcd carries about") {
		t.Fatalf("an empty etcd: exit %d: %s%s", code, stdout, stderr)
	}
	if _, err := w.st.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put("/registry/pods", nil)}}); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = w.run(bench...)
	if code != Conflict || !strings.Contains(stderr, "is in use: it holds 1 key") || !strings.Contains(stderr, "--used-etcd") {
		t.Errorf("an etcd of somebody: exit %d: %s", code, stderr)
	}
	w.serve()
	code, _, stderr = w.run(bench...)
	if code != Conflict || !strings.Contains(stderr, "holds a shard of Leasehold") {
		t.Errorf("an etcd with a shard: exit %d: %s", code, stderr)
	}
	before, err := w.st.List(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr = w.run(append(bench, "--used-etcd")...); code != Done {
		t.Errorf("with --used-etcd: exit %d: %s", code, stderr)
	}
	after, err := w.st.List(t.Context(), "", 0)
	if err != nil || len(after.KVs) != len(before.KVs) {
		t.Errorf("%d keys were there, %d are: %v", len(before.KVs), len(after.KVs), err)
	}
}

func TestBenchEtcdRefusesNonsense(t *testing.T) {
	for _, flags := range []string{"--interval=0s", "--each=1ms", "--agents=0", "--pace=0", "--records=0"} {
		if code, _, stderr := newWorld(t).run("bench", "etcd", flags); code != Usage || !strings.Contains(stderr, strings.SplitN(flags, "=", 2)[0]) {
			t.Errorf("%s: exit %d: %s", flags, code, stderr)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int]string{0: "0", 99: "99", 100: "100", 1234: "1,200", 98_765: "98,000", 1_234_567: "1,200,000"} {
		if got := output.Thousands(twoDigits(n)); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
