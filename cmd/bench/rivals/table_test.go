package rivals

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// figures returns the figures of a contender that succeeded.
func figures(etcd, judges float64, declared int) Figures {
	return Figures{
		Everyday: &Everyday{
			Etcd: Cost{Cores: etcd, Memory: 1 << 20}, Judges: Cost{Cores: judges},
			Agents: Cost{Cores: 1}, Machine: 0.5,
		},
		EtcdStall:  &Stall{Seconds: 20, Declared: Declared{AtOnce: declared, Waiting: declared / 2}, Back: new(1.5)},
		JudgeStall: &Stall{Seconds: 20, Back: new(0.0)},
	}
}

func TestRows(t *testing.T) {
	late := figures(0.3, 0.1, 7)
	late.EtcdStall.Back, late.JudgeStall = nil, nil
	byName := map[string]Row{}
	for _, r := range Rows([]Named{
		{Name: "a", Figures: late},
		{Name: "b"},
		{Name: "c", Figures: figures(0.1, 0.3, 0)},
	}) {
		byName[r.Name] = r
	}
	for name, want := range map[string]string{
		"CPU of etcd":                            "[0.3,null,0.1] [3.00× - 1.00×]",
		"CPU of both":                            "[0.4,null,0.4] [1.00× - 1.00×]",
		"CPU of agents":                          "[1,null,1] [- - -]", // they are not of the same kind
		"memory of etcd":                         "[1048576,null,1048576] [1.00× - 1.00×]",
		"etcd paused: declared dead wrongly":     "[7,null,0] [- - -]", // nothing to hold it against
		"etcd paused: the same, if it waits":     "[3,null,0] [- - -]",
		"etcd paused: all known alive after":     "[null,null,1.5] [- - -]",
		"detector paused: declared dead wrongly": "[null,null,0] [- - -]",
	} {
		r := byName[name]
		values, err := json.Marshal(r.Values)
		if err != nil {
			t.Fatal(err)
		}
		var ratios []string
		for _, one := range r.Ratios {
			ratios = append(ratios, Ratio(one))
		}
		if got := string(values) + " [" + strings.Join(ratios, " ") + "]"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	last := Named{Name: "leasehold", Figures: figures(0.1, 0.3, 0)}
	busy := Named{Name: "keepalive", Figures: figures(0.3, 0.1, 7)}
	busy.Everyday.Machine = 0.9
	for _, c := range []struct {
		name string
		all  []Named
		want string
	}{
		{
			"ratios in words",
			[]Named{
				{Name: "keepalive", Figures: figures(0.3, 0.02, 999)},
				{Name: "once", Figures: figures(0.05, 0.35, 1000)},
				last,
			},
			"CPU with leasehold: etcd 3.00× less than keepalive and 2.00× more than once; " +
				"etcd and detector together 1.25× more than keepalive and as much as once. Declared dead, " +
				"of 1000 live agents, while etcd was paused for 20s: keepalive 999, once 1000 and leasehold " +
				"0; while the detector was: 0, 0 and 0.",
		},
		{"a machine with too much to do", []Named{busy, last}, "The machine was saturated with keepalive, so"},
		{
			"one that gave up",
			[]Named{{Name: "keepalive", Problem: "not done"}, last},
			"no verdict, because figures are missing: keepalive: not done",
		},
	} {
		if got := Verdict(1000, c.all); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestRatio(t *testing.T) {
	for want, r := range map[string]*float64{"-": nil, "0.00×": new(0.0), "3.46×": new(3.456), "12×": new(12.3)} {
		if got := Ratio(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What etcd tells are sums since its beginning, and processes' usage too: what counts is what came
// between.
func TestBetween(t *testing.T) {
	at := time.Unix(1000, 0)
	usage := func(at time.Time, cpu time.Duration) measure.Usage {
		return measure.Usage{At: at, CPU: cpu, Memory: 1 << 20}
	}
	var before, after reading
	before.at, after.at = at, at.Add(10*time.Second)
	before.etcd = measure.Metrics{
		`grpc_server_started_total{grpc_method="Put"}`: 5,
		"etcd_mvcc_db_total_size_in_bytes":             3000,
	}
	after.etcd = measure.Metrics{
		`grpc_server_started_total{grpc_method="Put"}`:   25,
		`grpc_server_started_total{grpc_method="Range"}`: 10, "etcd_mvcc_db_total_size_in_bytes": 4000,
	}
	for i := range before.usage {
		before.usage[i], after.usage[i] = usage(before.at, time.Second),
			usage(after.at, time.Second+time.Duration(i+1)*time.Second)
	}
	before.machine, after.machine = measure.Load{Busy: 5, All: 10}, measure.Load{Busy: 10, All: 30}
	e := between(before, after)
	if e.Seconds != 10 || e.Streams != 3 || e.Growth != 100 || e.Fsyncs != 0 || e.Machine != 0.25 {
		t.Errorf("%+v", e)
	}
	if e.Etcd.Cores != 0.1 || e.Judges.Cores != 0.2 || e.Agents.Cores != 0.3 || e.Agents.Memory != 1<<20 {
		t.Errorf("%+v", e)
	}
}

// A detector that waits declares only agents that are away for longer, returned or not.
func TestRoll(t *testing.T) {
	const patience = 10 * time.Second
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	r := newRoll()
	for _, key := range []string{"a", "b", "c"} {
		r.put(key, at(0), patience)
	}
	r.deleted("a", at(5))
	r.deleted("b", at(5))
	r.deleted("unknown", at(5))
	r.put("a", at(14), patience) // in time
	for _, c := range []struct {
		now  int
		want DetectorStats
	}{{14, DetectorStats{2, Declared{2, 0}}}, {16, DetectorStats{2, Declared{2, 1}}}} {
		if got := r.stats(at(c.now), patience); got != c.want {
			t.Errorf("after %ds: %+v, want %+v", c.now, got, c.want)
		}
	}
	r.put("b", at(30), patience)
	if got, want := r.stats(at(31), patience), (DetectorStats{3, Declared{2, 1}}); got != want {
		t.Errorf("%+v, want %+v: the one that came back counts once", got, want)
	}
}
