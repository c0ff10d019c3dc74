package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if code, mine := serveRole(context.Background()); mine {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// short is a run that takes as little time as it can.
func short() config {
	return config{Trials: 1, Pace: time.Second, Interval: 3 * time.Second, Replicas: 1}
}

// A run that is interrupted ends at once, with all that it has started.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	progress := writer(func(text string) {
		if strings.Contains(text, "making") {
			interrupt()
		}
	})
	if _, err := measure(ctx, short(), progress); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Fatalf("it ended with %v", err)
	}
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

func TestSpread(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i)*time.Second)
	}
	if got, want := *spreadOf(all), (spread{P50: 100, P99: 198, Max: 200}); got != want {
		t.Errorf("of 1 to 200: %+v, want %+v", got, want)
	}
	if got, want := *spreadOf(all[:1]), (spread{P50: 1, P99: 1, Max: 1}); got != want {
		t.Errorf("of one: %+v, want %+v", got, want)
	}
	if spreadOf(nil) != nil {
		t.Error("of none there is something")
	}
}

// A target is missed by the p99, and by any trial that did not end as it should.
func TestTargets(t *testing.T) {
	t.Parallel()
	killed := scenarios()[0]
	at := time.Now()
	after := func(took time.Duration, rule string) *trial {
		return &trial{
			Victim: "v", Harmed: at, Suspect: at, Verdict: at, Replaced: at.Add(took), Judged: killed.verdict,
			VerdictRule: rule, ReplacedRule: killed.replaced,
		}
	}
	good := after(time.Second, killed.rule)
	for _, c := range []struct {
		what   string
		trials []*trial
		met    bool
	}{
		{what: "in time", trials: []*trial{good}, met: true},
		{what: "late", trials: []*trial{good, after(3*time.Second, killed.rule)}},
		{what: "by the wrong rule", trials: []*trial{good, after(time.Second, "DET-17")}},
		{what: "none"},
	} {
		if f := sumUpOne(killed, config{Interval: defaultInterval}, c.trials); f.Met != c.met {
			t.Errorf("%s: met %v: %+v", c.what, f.Met, f)
		}
	}
}

func TestFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"-trials 0", "-pace 10ms", "-interval 1500ms", "-replicas 9", "-o xml",
		"-only nothing", "more",
	} {
		var said strings.Builder
		if _, err := readFlags(strings.Fields(args), &said); err == nil || !strings.Contains(said.String(), "error:") {
			t.Errorf("%s: %v, and it says %q", args, err, said.String())
		}
	}
	c, err := readFlags([]string{"-o", "json", "-only", "agent-killed,cut-off"}, io.Discard)
	if err != nil || !c.JSON || len(c.Only) != 2 || c.Trials != 50 || c.leaseTTL() != 17*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
}
