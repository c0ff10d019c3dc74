package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
)

// quickly are the flags of a bench that is over at once.
var quickly = []string{"--each", "100ms", "--agents", "50", "--pace", "200", "--records", "150"}

// Without --endpoints the bench has an etcd of its own, and leaves nothing of it.
func TestEtcdOfItsOwn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := newDesk(t)
	d.open = program.OpenEtcd
	code, stdout, stderr := d.run(append([]string{"etcd", "-o", "json"}, quickly...)...)
	if code != program.Done {
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
	if len(res.Measured) < 10 || res.Measured[0].PerSecond <= 0 || res.Memory == 0 || len(res.Limits) == 0 ||
		res.Carries <= 0 {
		t.Errorf("measured: %s", stdout)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "leasehold-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestEtcdRefusesOneInUse(t *testing.T) {
	d := newDesk(t)
	bench := append([]string{"etcd", "--endpoints", "db:2379"}, quickly...)
	code, stdout, stderr := d.run(bench...)
	if code != program.Done || !strings.Contains(stdout, "This etcd carries about") {
		t.Fatalf("an empty etcd: exit %d: %s%s", code, stdout, stderr)
	}
	d.put("/registry/pods", "")
	code, _, stderr = d.run(bench...)
	if code != program.Conflict || !strings.Contains(stderr, "is in use: it holds 1 key") ||
		!strings.Contains(stderr, "--used-etcd") {
		t.Errorf("a used etcd: exit %d: %s", code, stderr)
	}
	d.put(store.KeysOf("default").Shard(), "{}")
	code, _, stderr = d.run(bench...)
	if code != program.Conflict || !strings.Contains(stderr, "holds a shard of Leasehold") {
		t.Errorf("an etcd with a shard: exit %d: %s", code, stderr)
	}
	before, err := d.st.List(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr = d.run(append(bench, "--used-etcd")...); code != program.Done {
		t.Errorf("with --used-etcd: exit %d: %s", code, stderr)
	}
	after, err := d.st.List(t.Context(), "", 0)
	if err != nil || len(after.KVs) != len(before.KVs) {
		t.Errorf("%d keys were there, %d are: %v", len(before.KVs), len(after.KVs), err)
	}
}

func TestEtcdRefusesNonsense(t *testing.T) {
	for _, flags := range []string{"--interval=0s", "--each=1ms", "--agents=0", "--pace=0", "--records=0"} {
		if code, _, stderr := newDesk(t).run("etcd", flags); code != program.Usage ||
			!strings.Contains(stderr, strings.SplitN(flags, "=", 2)[0]) {
			t.Errorf("%s: exit %d: %s", flags, code, stderr)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int]string{
		0: "0", 99: "99", 100: "100", 1234: "1,200", 98_765: "98,000",
		1_234_567: "1,200,000",
	} {
		if got := output.Thousands(twoDigits(n)); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
