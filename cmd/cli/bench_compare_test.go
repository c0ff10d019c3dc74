package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/rivals"
)

func TestBenchCompareRefusesNonsense(t *testing.T) {
	for flags, want := range map[string]string{
		"--agents=1": "--agents", "--agents=15001": "--shared", "--steady=0s": "--steady", "--stall=-1s": "--stall", "--interval=0s": "--interval", "--endpoints=a:1": "--endpoints",
	} {
		if code, _, stderr := newWorld(t).run("bench", "compare", flags); code != Usage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d: %s", flags, code, stderr)
		}
	}
}

// Something stands still for longer than a lease, unless told otherwise: or nothing could be compared.
func TestBenchCompareStallsForLongerThanALease(t *testing.T) {
	c := BenchCompare{Interval: 5 * time.Second}
	if c.lease() != 17*time.Second || c.stall() <= c.lease() {
		t.Errorf("lease %s, stall %s", c.lease(), c.stall())
	}
}

func TestComparisonIsShown(t *testing.T) {
	w := newWorld(t)
	var out strings.Builder
	env := w.env(&out, &out)
	s := &Session{env: env, flags: &Globals{Output: "table"}}
	r := comparison{Agents: 2000, Interval: "5s", Lease: "17s"}
	var all []rivals.Figures
	for i, name := range []string{"keepalive", "keepalive-once", "leasehold"} {
		f := rivals.Figures{EtcdCores: 0.6 / float64(i+1), EtcdMemory: 1 << 20}
		if name != "leasehold" {
			f.EtcdStall = rivals.Stall{Seconds: 20, Agents: 2000, Declared: 1999}
		}
		r.Contenders, all = append(r.Contenders, compared{Name: name, What: name, Figures: f}), append(all, f)
	}
	r.Rows = rivals.Rows(all...)
	if err := (&BenchCompare{}).show(s, &r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"WHAT\tKEEPALIVE\tRATIO\tKEEPALIVE-ONCE\tRATIO\tLEASEHOLD\n", "CPU of etcd\t0.60\t3.00×\t0.30\t1.50×\t0.20\n", "memory of etcd\t1.0 MiB\t1.00×",
		"living declared dead\t1999\t-\t1999\t-\t0\n", "2,000 agents that report every 5s", "1999 of 2000 living agents declared dead", "over TLS",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
