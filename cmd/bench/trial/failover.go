package trial

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// Failover is what became of agents whose replica was killed.
type Failover struct {
	Setting
	Served int  `json:"served"` // agents that the killed replica had
	Warm   bool `json:"warm"`   // agents kept a connection to another replica open
	// for each agent, from losing the replica to its next renewed lease
	Outage     Times    `json:"outage"`
	Last       float64  `json:"last_served_seconds"` // from the kill until all were served again
	Led        bool     `json:"killed_led"`          // the killed replica was the leader
	LeasesLost int      `json:"leases_lost"`         //
	Judged     int      `json:"judged"`              // instances that were judged failed, or replaced
	Wrongly    []string `json:"wrongly,omitempty"`   // the first of them
	// time in which as many agents reconnect to the same replica
	Cold         float64        `json:"cold_seconds"`
	Ratio        float64        `json:"ratio"`                      // of the two
	Disturbances int            `json:"disturbances"`               //
	Refused      map[string]int `json:"refused,omitempty"`          // refused streams, until all were served again, by reason
	Troubles     map[string]int `json:"agents_troubles,omitempty"`  // errors in the same time, by text
	Processes    []Process      `json:"processes_until_all_served"` //
	Verdict      Verdict        `json:"verdict"`
}

// maxOutage is how long the bench waits for agents to be served again before it gives up.
const maxOutage = 10 * time.Minute

// Failover kills the replica that serves all agents.
func (t *Trial) Failover(ctx context.Context) (Failover, error) {
	machine, err := measure.ReadMachine(runtime.GOMAXPROCS(0))
	if err != nil {
		return Failover{}, err
	}
	r := Failover{Setting: t.setting(machine), Warm: t.cfg.Shared == 0}
	if err := t.prepareFailover(ctx); err != nil {
		return r, err
	}
	first := t.replicas[0]
	t.seen.forget()
	before, err := t.read(ctx)
	if err != nil {
		return r, err
	}
	r.Served, r.Led = before.stats.Served[first.id], before.leads(first)
	killed := time.Now()
	first.killed = true
	if err := first.Kill(); err != nil {
		return r, err
	}
	after, err := t.awaitOutages(ctx, "agents find another replica", r.Served, before.stats, killed)
	if err != nil {
		return r, err
	}
	r.Last = time.Since(killed).Seconds()
	outage := after.Outage.Since(before.stats.Outage)
	r.Outage = timesOf(outage)
	r.Refused, r.Troubles = more(after.Refused, before.stats.Refused), more(after.Troubles, before.stats.Troubles)
	r.Processes = t.usage.between(before.usage, t.usage.read())
	// Losses are judged once the grace is over.
	if err := t.calm(ctx); err != nil {
		return r, err
	}
	if err := t.pass(ctx, "checking that no instance is judged failed", t.shard.LeaseTTL+detectWithin); err != nil {
		return r, err
	}
	wrongly := t.seen.wrongly(nil)
	r.LeasesLost, r.Judged, r.Wrongly = t.seen.lost(nil), len(wrongly), named(wrongly)
	r.Disturbances = t.seen.count().disturbed - before.seen.disturbed
	if r.Cold, err = t.comeCold(ctx); err != nil {
		return r, err
	}
	if r.Cold > 0 {
		r.Ratio = r.Last / r.Cold
	}
	r.Verdict = r.judge()
	return r, nil
}

// prepareFailover lets the first replica serve all agents before there is another, and then waits
// until they know of both.
func (t *Trial) prepareFailover(ctx context.Context) error {
	var rampUp, settled float64
	if err := t.letIn(ctx, &rampUp, &settled); err != nil {
		return err
	}
	for _, r := range t.replicas[1:] {
		if err := t.startReplica(ctx, r); err != nil {
			return err
		}
	}
	if t.cfg.Shared == 0 {
		err := t.awaitCrowd(ctx, "agents open a second connection", func(s crowd.Stats) (string, bool) {
			n := s.Connections - t.cfg.Agents
			return of(max(0, n), t.cfg.Agents, "agents"), n >= t.cfg.Agents && s.Registered == t.cfg.Agents
		})
		if err != nil {
			return err
		}
	}
	return t.calm(ctx)
}

// awaitOutages waits until so many agents have lost their replica and had their lease renewed
// again, and all are served.
func (t *Trial) awaitOutages(ctx context.Context, doing string, most int, before crowd.Stats,
	since time.Time,
) (after crowd.Stats, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxOutage,
		fmt.Errorf("not all agents are served again after %s", maxOutage))
	defer cancel()
	err = t.awaitCrowd(ctx, doing, func(s crowd.Stats) (string, bool) {
		after = s
		n := int(s.Outage.N - before.Outage.N)
		return of(min(n, most), most, fmt.Sprintf("agents after %.1fs", time.Since(since).Seconds())),
			n >= most && s.Registered == t.cfg.Agents
	})
	return after, err
}

// comeCold cuts all connections and makes the agents reconnect, each with a handshake.
func (t *Trial) comeCold(ctx context.Context) (seconds float64, err error) {
	if err := t.crowds.silence(t.shard.Instances, crowd.Cut); err != nil {
		return 0, err
	}
	err = t.awaitCrowd(ctx, "cutting all connections", func(s crowd.Stats) (string, bool) {
		return of(s.Silent, t.cfg.Agents, "agents"), s.Silent == t.cfg.Agents
	})
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := t.crowds.bringBack(t.shard.Instances); err != nil {
		return 0, err
	}
	err = t.awaitCrowd(ctx, "agents reconnect", func(s crowd.Stats) (string, bool) {
		return of(s.Registered, t.cfg.Agents, "agents"), s.Registered == t.cfg.Agents
	})
	return time.Since(begun).Seconds(), err
}

func (r *Failover) judge() Verdict {
	var v Verdict
	if r.LeasesLost > 0 {
		v.Failed = append(v.Failed, fmt.Sprintf("%d leases ended", r.LeasesLost))
	}
	if r.Judged > 0 {
		v.Failed = append(v.Failed, fmt.Sprintf("%d instances were judged failed", r.Judged))
	}
	return v.said(
		fmt.Sprintf("all %d agents of a killed replica were served by another within %.1fs, and no lease was lost; "+
			"as many new connections take %.1fs (%.2f of that)", r.Served, r.Last, r.Cold, r.Ratio),
		fmt.Sprintf("a replica with %d agents does not fail without consequences", r.Served))
}

// more returns what was counted since.
func more(after, before map[string]uint64) map[string]int {
	out := map[string]int{}
	for what, n := range after {
		if n > before[what] {
			out[what] = int(n - before[what])
		}
	}
	return out
}
