package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// StormPlan says how many agents are lost at once.
type StormPlan struct {
	Lost int           // of all agents
	Away time.Duration // how long they stay away at least once their leases have ended; 0: a lease
}

// Storm is what became of many agents that were lost at once, and of the others.
type Storm struct {
	Setting
	Lost         int       `json:"lost"`
	Healthy      int       `json:"healthy"`
	LeasesEnded  float64   `json:"leases_ended_seconds"` // from the loss until the last of their leases had ended
	Away         float64   `json:"away_seconds"`
	Storms       int       `json:"groups_in_storm"`
	Replaced     int       `json:"replaced"`            // given up or replaced: expected 0 (SAFE-2)
	Made         int       `json:"machines_made"`       //
	HealthyLost  int       `json:"healthy_leases_lost"` //
	HealthyHurt  int       `json:"healthy_judged"`      //
	Wrongly      []string  `json:"wrongly,omitempty"`
	Latency      Times     `json:"healthy_report_to_renewed"` // meanwhile
	Back         float64   `json:"back_seconds"`              // from their return until all were registered
	AsBefore     float64   `json:"as_before_seconds"`         // until the leader saw all of them healthy
	Disturbances int       `json:"disturbances"`
	Processes    []Process `json:"processes_while_away"`
	Verdict      Verdict   `json:"verdict"`
}

// Storm cuts many agents off at once, for longer than their leases last.
func (t *Trial) Storm(ctx context.Context, p StormPlan) (Storm, error) {
	machine, err := measure.ReadMachine(runtime.GOMAXPROCS(0))
	if err != nil {
		return Storm{}, err
	}
	r := Storm{Setting: t.setting(machine), Lost: p.Lost, Healthy: t.cfg.Agents - p.Lost}
	var rampUp, settled float64
	if err := t.letIn(ctx, &rampUp, &settled); err != nil {
		return r, err
	}
	if err := t.calm(ctx); err != nil {
		return r, err
	}
	lost := slices.Clone(t.shard.Instances)
	rand.Shuffle(len(lost), func(i, j int) { lost[i], lost[j] = lost[j], lost[i] })
	lost = lost[:p.Lost]
	t.seen.forget()
	before, err := t.read(ctx)
	if err != nil {
		return r, err
	}
	if err := t.beAway(ctx, lost, p, &r); err != nil {
		return r, err
	}
	after, err := t.read(ctx)
	if err != nil {
		return r, err
	}
	r.Latency = timesOf(after.stats.Latency.Since(before.stats.Latency))
	r.Processes = t.usage.between(before.usage, after.usage)
	r.Storms = t.seen.count().storms
	if err := t.comeBack(ctx, lost, &r); err != nil {
		return r, err
	}
	harmed := map[string]bool{}
	for _, id := range lost {
		harmed[id] = true
	}
	now := t.seen.count()
	wrongly := t.seen.wrongly(harmed)
	r.Replaced, r.Made = len(t.seen.given(lost)), now.made-before.seen.made
	r.HealthyLost, r.HealthyHurt, r.Wrongly = t.seen.lost(harmed), len(wrongly), named(wrongly)
	r.Disturbances = now.disturbed - before.seen.disturbed
	r.Verdict = r.judge()
	return r, nil
}

// beAway cuts agents off and waits until their leases have ended, and then for the time that they
// stay away.
func (t *Trial) beAway(ctx context.Context, lost []string, p StormPlan, r *Storm) error {
	begun := time.Now()
	if err := t.crowds.silence(lost, crowd.Cut); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.shard.LeaseTTL+maxOutage,
		fmt.Errorf("not all leases have ended after %s", t.shard.LeaseTTL+maxOutage))
	defer cancel()
	err := t.await(ctx, "leases end", func() (string, bool) {
		n := t.seen.endedOf(lost)
		return of(n, len(lost), "leases"), n == len(lost)
	})
	if err != nil {
		return err
	}
	r.LeasesEnded = time.Since(begun).Seconds()
	away := p.Away
	if away == 0 {
		away = t.shard.LeaseTTL
	}
	if err := t.pass(ctx, "the lost agents stay away", away); err != nil {
		return err
	}
	r.Away = time.Since(begun).Seconds()
	return nil
}

// comeBack brings them back, and waits until everything is as before.
func (t *Trial) comeBack(ctx context.Context, lost []string, r *Storm) error {
	begun := time.Now()
	if err := t.crowds.bringBack(lost); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxOutage,
		fmt.Errorf("not everything is as before %s after the return", maxOutage))
	defer cancel()
	err := t.awaitCrowd(ctx, "the lost agents come back", func(s crowd.Stats) (string, bool) {
		return of(s.Registered, t.cfg.Agents, "agents"), s.Registered >= t.cfg.Agents
	})
	if err != nil {
		return err
	}
	r.Back = time.Since(begun).Seconds()
	err = t.await(ctx, "the leader sees them", func() (string, bool) {
		running, open := t.seen.well()
		return of(min(running, open), t.cfg.Agents, "instances"), running >= t.cfg.Agents && open >= t.cfg.Agents
	})
	r.AsBefore = time.Since(begun).Seconds()
	if err != nil {
		return err
	}
	return t.pass(ctx, "checking that no instance is judged failed", t.shard.LeaseTTL+detectWithin)
}

func (r *Storm) judge() Verdict {
	var v Verdict
	for _, f := range []struct {
		n    int
		what string
	}{
		{r.Replaced, "of the lost agents were given up"},
		{r.Made, "machines were created"},
		{r.HealthyLost, "leases of healthy agents ended"},
		{r.HealthyHurt, "healthy instances were judged failed"},
	} {
		if f.n > 0 {
			v.Failed = append(v.Failed, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	return v.said(
		fmt.Sprintf("%d agents were lost at once for %.0fs: nothing was replaced, everything was as before %.1fs after "+
			"their return, and none of %d other healthy agents lost its lease", r.Lost, r.Away, r.AsBefore, r.Healthy),
		fmt.Sprintf("losing %d agents at once has consequences", r.Lost))
}
