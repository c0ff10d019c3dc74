package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/rivals"
	"github.com/leasehold/leasehold/cmd/program"
)

func TestCompareRefusesNonsense(t *testing.T) {
	for flags, want := range map[string]string{
		"--agents=0": "--agents", "--agents=15001": "--shared", "--steady=0s": "--steady", "--stall=-1s": "--stall",
		"--interval=0s": "--interval", "--endpoints=a:1": "--endpoints",
	} {
		if code, _, stderr := newDesk(t).run("compare", flags); code != program.Usage ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d: %s", flags, code, stderr)
		}
	}
}

// A process is paused for longer than a lease by default: otherwise nothing could be compared.
func TestCompareStallsForLongerThanALease(t *testing.T) {
	c := Compare{Interval: 5 * time.Second}
	if c.lease() != 17*time.Second || c.stall() <= c.lease() {
		t.Errorf("lease %s, stall %s", c.lease(), c.stall())
	}
}

func TestComparisonIsShown(t *testing.T) {
	d := newDesk(t)
	var out strings.Builder
	env := d.env(&out, &out)
	inv := &Invocation{env: env, flags: &Globals{Output: "table"}}
	r := comparison{Agents: 2000, Interval: "5s", Lease: "17s"}
	for i, name := range []string{"keepalive", "keepalive-once", "leasehold"} {
		stall := rivals.Stall{Seconds: 20, Back: new(2.0)}
		if name != "leasehold" {
			stall.Declared.AtOnce = 1999
		}
		cost := rivals.Cost{Cores: 0.6 / float64(i+1), Memory: 1 << 20}
		r.Contenders = append(r.Contenders, rivals.Named{Name: name, Figures: rivals.Figures{
			Everyday: &rivals.Everyday{Seconds: 60, Etcd: cost, Agents: cost}, EtcdStall: &stall,
			JudgeStall: &rivals.Stall{Seconds: 20},
		}})
	}
	show := func() string {
		out.Reset()
		r.Rows, r.Verdict = rivals.Rows(r.Contenders), rivals.Verdict(r.Agents, r.Contenders)
		if err := (&Compare{}).show(inv, &r); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, want := range []string{
		"WHAT\tKEEPALIVE\tRATIO\tKEEPALIVE-ONCE\tRATIO\tLEASEHOLD\n", "CPU of etcd\t0.60\t3.00×\t0.30\t1.50×\t0.20\n",
		"CPU of agents\t0.60\t-\t0.30\t-\t0.20\n",
		"memory of etcd\t1.0 MiB\t1.00×", "declared dead wrongly\t1999\t-\t1999\t-\t0\n", "2,000 agents report every 5s",
		"use TLS", "etcd 3.00× less",
	} {
		if !strings.Contains(show(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	r.Contenders[0].Figures = rivals.Figures{}
	r.Contenders[0].Problem = "agents begin: not finished within 2m0s: 3 of 2000"
	for _, want := range []string{
		"CPU of etcd\t-\t-\t0.30\t1.50×\t0.20\n",
		"keepalive was given up: agents begin: not finished within 2m0s",
	} {
		if !strings.Contains(show(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if r.whole() || strings.Contains(out.String(), "leasehold takes") {
		t.Errorf("a verdict without one of them:\n%s", out.String())
	}
}

// The defaults are meant to take about ten minutes.
func TestCompareExpectsTenMinutes(t *testing.T) {
	c := Compare{Agents: 1000, Interval: 5 * time.Second, Steady: time.Minute}
	if got := c.expected(rampOwn); got != "9 minutes" {
		t.Errorf("about %s", got)
	}
}
