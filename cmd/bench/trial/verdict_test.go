package trial

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/cmd/bench/seed"
)

// carried returns a trial in which all went as promised, on a machine that could carry four times
// as many by its processors, and forty times by its memory.
func carried() Agents {
	const agents, failures = 1000, 10
	return Agents{
		Setting: Setting{
			Agents: agents, Interval: 10, LeaseTTL: 32, Connections: SharedConnections, Shared: 5,
			Machine: measure.Machine{Processors: 2, Memory: 16 << 30},
		},
		Registered: agents - failures, Reports: 99,
		Detection: Detection{
			Failed: failures, Seen: failures, Bound: 33_500,
			Lag: Times{Count: failures, P50: 32_100, P99: 33_500, Max: 33_500},
		},
		CoresOfTheShard: 0.35, MemoryPerAgent: 0.8 * (16 << 30) / 40_000,
	}
}

func TestAgentsVerdict(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Agents)
		want   string // the whole sentence
	}{
		{
			"by processors", func(*Agents) {},
			"this shard can carry about 4000 agents at 10s, limited by its 2 processors, " +
				"with 70% of them for replica and etcd; estimated from 1000: measure with more",
		},
		{
			"by memory", func(r *Agents) { r.MemoryPerAgent = 0.8 * (16 << 30) / 1999 },
			"this shard can carry about 1900 agents at 10s, limited by its memory",
		},
		{
			"fewer than were there", func(r *Agents) { r.CoresOfTheShard = 1.9 },
			"this shard can carry about 1000 agents at 10s, limited by its 2 processors, with 70% of them for replica and etcd",
		},
		{
			"false positives", func(r *Agents) { r.FalsePositives = 2 },
			"2 instances were judged failed that had not failed",
		},
		{"leases", func(r *Agents) { r.LeasesLost = 3 }, "3 leases ended though their agents reported"},
		{"not seen", func(r *Agents) { r.Detection.Seen = 7 }, "3 of 10 failures were not noticed"},
		{
			"late", func(r *Agents) { r.Detection.Lag.P99 = 33_600 },
			"failures were noticed after 33.6s at p99, the bound is 33.5s",
		},
		{"not served", func(r *Agents) { r.Registered = 989 }, "989 of 990 agents were served at the end"},
		{"too few reports", func(r *Agents) { r.Reports = 88 }, "88 reports came in a second, 99 were due"},
		{
			"enough reports", func(r *Agents) { r.Reports, r.CoresOfTheShard = 90, 0.7 },
			"this shard can carry about 2000 agents at 10s, limited by its 2 processors, with 70% of them for replica and etcd",
		},
		{
			"much at once", func(r *Agents) { r.LeasesLost, r.Registered = 3, 980 },
			"3 leases ended though their agents reported; 980 of 990 agents were served at the end",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := carried()
			c.change(&r)
			v := r.judge()
			want := c.want
			if v.Carries != strings.HasPrefix(want, "this shard can carry") || v.Carries != (len(v.Failed) == 0) {
				t.Errorf("%+v", v)
			}
			if !v.Carries {
				want = "this shard cannot carry 1000 agents at 10s: " + want
			}
			if v.Text != want {
				t.Errorf("%s\nwant %s", v.Text, want)
			}
		})
	}
}

// Agents with a connection each use up the descriptors.
func TestDescriptorsLimit(t *testing.T) {
	r := carried()
	r.Connections, r.Shared, r.CoresOfTheShard, r.MemoryPerAgent = OwnConnections, 0, 1e-6, 1
	if v := r.judge(); !v.Carries || !strings.Contains(v.Limit, "descriptors") || v.About < r.Agents {
		t.Errorf("%+v, want descriptors as the limit", v)
	}
}

func TestStormAndFailoverVerdicts(t *testing.T) {
	kept := Storm{Lost: 100, Healthy: 10, Away: 34, AsBefore: 2.3}
	for _, c := range []struct {
		got  Verdict
		want string
	}{
		{
			kept.judge(),
			"100 agents were lost at once for 34s: nothing was replaced, everything was as before 2.3s " +
				"after their return, and none of 10 other healthy agents lost its lease",
		},
		{
			(&Storm{Lost: 100, Replaced: 1, Made: 2, HealthyLost: 3, HealthyHurt: 4}).judge(),
			"losing 100 agents at once has consequences: 1 of the lost agents were given up; 2 machines were created; " +
				"3 leases of healthy agents ended; 4 healthy instances were judged failed",
		},
		{
			(&Failover{Served: 50, Last: 6.1, Cold: 4.2, Ratio: 1.45}).judge(),
			"all 50 agents of a killed replica were served by another within 6.1s, and no lease was lost; " +
				"as many new connections take 4.2s (1.45 of that)",
		},
		{
			(&Failover{Served: 50, LeasesLost: 1, Judged: 2}).judge(),
			"a replica with 50 agents does not fail without consequences: 1 leases ended; 2 instances were judged failed",
		},
	} {
		if c.got.Text != c.want || c.got.Carries != (len(c.got.Failed) == 0) {
			t.Errorf("%+v\nwant %s", c.got, c.want)
		}
	}
}

func TestRoundedDown(t *testing.T) {
	for n, want := range map[int]int{0: 0, 7: 7, 99: 99, 100: 100, 109: 100, 1999: 1900, 123_456: 120_000} {
		if got := rounded(n); got != want {
			t.Errorf("%d is rounded to %d, want %d", n, got, want)
		}
	}
}

func TestSomeOfManyAreNamedInOrder(t *testing.T) {
	wrongly := map[string]string{}
	for i := range 3 * maxNamed {
		wrongly[fmt.Sprintf("g-%02d", i)] = "given up"
	}
	got := named(wrongly)
	if len(got) != maxNamed || got[0] != "g-00 given up" || !slices.IsSorted(got) {
		t.Errorf("%q", got)
	}
}

// A failure's lag is the time from when it failed until the instance was given up; its earlier
// states are shown beside it.
func TestDetectionLag(t *testing.T) {
	o := observing(t, "a", "b", "c", "d", "e")
	h := &harm{
		t:      &Trial{seen: o.observer, shard: seed.Shard{LeaseTTL: 32 * time.Second}},
		failed: map[string]crowd.How{"a": crowd.Cut, "b": crowd.Mute, "c": crowd.Cut, "d": crowd.Mute},
		known:  map[string]crowd.Silenced{},
	}
	at := time.Now()
	for i, id := range []string{"a", "b", "d"} { // the failure of c was not seen; d was never acknowledged
		o.acted[id] = at
		if id != "d" {
			failed := at.Add(-time.Duration(10*(i+1)) * time.Second)
			h.known[id] = crowd.Silenced{At: failed, Sent: failed.Add(-5 * time.Second)}
		} else {
			h.known[id] = crowd.Silenced{}
		}
	}
	o.acted["e"] = at // which was never harmed
	d := h.detection()
	if d.Failed != 4 || d.Seen != 2 || d.Lag.Count != 2 || d.Bound != 33_500 {
		t.Errorf("%+v, want 2 of 4 seen, bound 33.5s", d)
	}
	if d.Lag.Max != 20_000 || d.Lag.P50 < 19_000 {
		t.Errorf("lag %+v, want 10s and 20s", d.Lag)
	}
	if d.Silent.Count != 2 || d.Silent.Max != 25_000 || d.Silent.P50 < 14_000 {
		t.Errorf("since the last report %+v, want 15s and 25s", d.Silent)
	}
	if harmed := h.harmed(); len(harmed) != 4 || harmed["e"] {
		t.Errorf("harmed are %v", harmed)
	}
}

// What is told is what was done between the two readings, of replica and etcd together where it
// says so.
func TestFiguresAreThoseBetweenTheReadings(t *testing.T) {
	begun := time.Now()
	reading := func(after time.Duration, reports uint64, renewals float64, troubles map[string]uint64) reading {
		at := begun.Add(after)
		use := func(share float64, memory uint64) measure.Usage {
			return measure.Usage{At: at, CPU: time.Duration(share * float64(after)), Memory: memory}
		}
		return reading{
			at: at, stats: crowd.Stats{Registered: 5, Reports: reports, Nacks: reports / 10, Troubles: troubles},
			revision: int64(reports) * 2,
			numbers: measure.Metrics{
				`leasehold_etcd_requests_total{operation="renew"}`:      renewals,
				`leasehold_etcd_requests_total{operation="commit"}`:     12345,
				`leasehold_etcd_request_seconds_sum{operation="renew"}`: renewals / 500,
			},
			usage: map[string]measure.Usage{
				"etcd": use(0.25, 100), "replica-1": use(0.5, 1000), "agents-1": use(1, 7),
				"bench": use(0.1, 7),
			},
		}
	}
	trial := &Trial{usage: &usage{order: []string{"bench", "etcd", "replica-1", "agents-1"}}}
	var r Agents
	r.fill(trial, reading(time.Minute, 100, 50, map[string]uint64{"late": 1}),
		reading(2*time.Minute, 6100, 6050, map[string]uint64{"late": 1, "reset": 2}))
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"seconds measured", r.Measured, 60},
		{"reports a second", r.Reports, 100},
		{"renewals a second", r.Renewals, 100},
		{"milliseconds for a renewal", r.RenewalMillis, 2},
		{"writes a second", r.Revisions, 200},
		{"not acknowledged", float64(r.Unacknowledged), 600},
		{"cores of the shard", r.CoresOfTheShard, 0.75},
		{"memory of the shard", float64(r.MemoryOfTheShard), 1100},
		{"reports a second and core", r.ReportsPerCore, 100 / 0.75},
	} {
		if diff := c.got - c.want; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("%s: %g, want %g", c.what, c.got, c.want)
		}
	}
	if len(r.Troubles) != 1 || r.Troubles["reset"] != 2 || len(r.Processes) != 4 {
		t.Errorf("troubles %v, want those since; processes %v", r.Troubles, r.Processes)
	}
}
