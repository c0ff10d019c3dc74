package trial

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// AgentsPlan says what happens to the agents.
type AgentsPlan struct {
	For      time.Duration // how long to measure
	Failures int           // agents that fail for good, in all that time
	Churn    int           // agents that lose their connection and come back at once, in all that time
}

// Agents is the result.
type Agents struct {
	Setting
	RampUp           float64 `json:"ramp_up_seconds"`          // until all agents were registered
	Settled          float64 `json:"settled_seconds"`          // until the leader had found all of them healthy
	Measured         float64 `json:"measured_seconds"`         //
	Registered       int     `json:"registered"`               // at the end
	Reports          float64 `json:"reports_per_second"`       //
	Unacknowledged   uint64  `json:"reports_not_acknowledged"` // lost, or without a renewed lease
	Latency          Times   `json:"report_to_renewed"`
	Late             Times   `json:"agents_process_late"` // how late the simulated agents ran
	Renewals         float64 `json:"etcd_renewals_per_second"`
	Revisions        float64 `json:"etcd_writes_per_second"`
	RenewalMillis    float64 `json:"etcd_renewal_mean_ms"`
	MemoryPerAgent   float64 `json:"replica_memory_per_agent_bytes"`
	Goroutines       float64 `json:"replica_goroutines_per_agent"`
	Detection        Detection
	Churned          int            `json:"churned"`
	FalsePositives   int            `json:"false_positives"`
	Wrongly          []string       `json:"wrongly,omitempty"` // the first of them
	LeasesLost       int            `json:"healthy_leases_lost"`
	Disturbances     int            `json:"disturbances"`
	Disturbance      string         `json:"last_disturbance,omitempty"`
	Certificates     float64        `json:"certificates_per_second,omitempty"` // that were signed
	Processes        []Process      `json:"processes"`
	Troubles         map[string]int `json:"agents_troubles,omitempty"`
	Verdict          Verdict        `json:"verdict"`
	ReportsPerCore   float64        `json:"reports_per_second_and_core"`
	CoresOfTheShard  float64        `json:"cores_of_replica_and_etcd"`
	MemoryOfTheShard uint64         `json:"memory_of_replica_and_etcd_bytes"`
}

// Detection is how soon failures were noticed: until the leader gave the instance up.
type Detection struct {
	Failed int     `json:"failed"`
	Seen   int     `json:"seen"`
	Lag    Times   `json:"lag"`          // since the failure
	Silent Times   `json:"since_report"` // since the last acknowledged report was sent
	Bound  float64 `json:"bound_ms"`     // lease_ttl plus 1.5 s
}

// detectWithin is how long after the end of its lease a failure may be noticed.
const detectWithin = 1500 * time.Millisecond

// Agents starts all agents, measures, and makes some of them fail meanwhile.
func (t *Trial) Agents(ctx context.Context, p AgentsPlan) (Agents, error) {
	machine, err := measure.ReadMachine(runtime.GOMAXPROCS(0))
	if err != nil {
		return Agents{}, err
	}
	r := Agents{Setting: t.setting(machine)}
	empty, emptyGo, err := t.memory(ctx)
	if err != nil {
		return r, err
	}
	if err := t.letIn(ctx, &r.RampUp, &r.Settled); err != nil {
		return r, err
	}
	if err := t.calm(ctx); err != nil {
		return r, err
	}
	full, fullGo, err := t.memory(ctx)
	if err != nil {
		return r, err
	}
	n := float64(t.cfg.Agents)
	r.MemoryPerAgent, r.Goroutines = (full-empty)/n, (fullGo-emptyGo)/n
	return r, t.measured(ctx, p, &r)
}

// letIn starts all agents, and waits until the leader has found all of them healthy.
func (t *Trial) letIn(ctx context.Context, rampUp, settled *float64) error {
	begun := time.Now()
	if err := t.startCrowd(ctx); err != nil {
		return err
	}
	var let int
	err := t.awaitCrowd(ctx, "agents register", func(s crowd.Stats) (string, bool) {
		due := int(t.cfg.Rate * time.Since(begun).Seconds())
		if n := min(due, t.cfg.Agents, s.Registered+t.mostAhead()); n > let {
			if err := t.crowds.add(t.shard.Instances[let:n]); err != nil {
				t.note(err)
			}
			let = n
		}
		return of(s.Registered, t.cfg.Agents, "agents"), s.Registered == t.cfg.Agents
	})
	if err != nil {
		return err
	}
	*rampUp = time.Since(begun).Seconds()
	err = t.await(ctx, "healthy for the leader", func() (string, bool) {
		n := t.seen.running()
		return of(n, t.cfg.Agents, "instances"), n >= t.cfg.Agents
	})
	*settled = time.Since(begun).Seconds()
	return err
}

// mostAhead bounds how many agents may have begun that are not registered yet. If more begin than
// the machine can register, each retries with a new handshake, and none succeeds.
func (t *Trial) mostAhead() int { return max(20, int(t.cfg.Rate*aheadFor.Seconds())) }

const aheadFor = time.Second

// calm waits until no grace period keeps the leader from judging (SAFE-1).
func (t *Trial) calm(ctx context.Context) error {
	var next time.Time
	far := ""
	calm := false
	return t.await(ctx, "waiting until the leader may judge", func() (string, bool) {
		if now := time.Now(); now.After(next) {
			next = now.Add(time.Second)
			left, leads := 0.0, false
			for _, r := range t.replicas {
				if r.Part == nil || r.killed {
					continue
				}
				n, err := scrape(ctx, r)
				if err != nil {
					return err.Error(), false // the next poll tries again
				}
				if n.Sum("leasehold_leader") > 0 {
					left, leads = n.Sum("leasehold_grace_remaining_seconds"), true
				}
			}
			far = fmt.Sprintf("%.0fs of grace left", left)
			if !leads {
				far = "no grace"
			}
			calm = leads && left <= 0
		}
		return far, calm
	})
}

// memory returns the serving replica's resident memory, and its goroutines.
func (t *Trial) memory(ctx context.Context) (bytes, goroutines float64, err error) {
	r := t.replicas[0]
	n, err := scrape(ctx, r)
	if err != nil {
		return 0, 0, err
	}
	return n.Sum("process_resident_memory_bytes"), n.Sum("go_goroutines"), nil
}

// reading holds all counters at the beginning or the end of a measurement.
type reading struct {
	at       time.Time
	stats    crowd.Stats
	numbers  measure.Metrics
	usage    map[string]measure.Usage
	seen     counts
	revision int64
	leader   string
}

// leads reports whether a replica led.
func (r *reading) leads(rep *replica) bool { return r.leader == rep.id }

func (t *Trial) read(ctx context.Context) (r reading, err error) {
	r.at, r.usage, r.seen = time.Now(), t.usage.read(), t.seen.count()
	if r.stats, err = t.crowds.stats(); err != nil {
		return r, err
	}
	vitals, err := t.store.Vitals(ctx)
	if err != nil {
		return r, err
	}
	r.revision = int64(vitals.Revision)
	r.numbers = measure.Metrics{}
	for _, rep := range t.replicas {
		if rep.Part == nil || rep.killed {
			continue
		}
		n, err := scrape(ctx, rep)
		if err != nil {
			return r, err
		}
		if n.Sum("leasehold_leader") > 0 {
			r.leader = rep.id
		}
		for k, v := range n {
			r.numbers[k] += v
		}
	}
	return r, nil
}

// measured measures a period in which some agents fail.
func (t *Trial) measured(ctx context.Context, p AgentsPlan, r *Agents) error {
	t.seen.forget()
	h := newHarm(t, p)
	before, err := t.read(ctx)
	if err != nil {
		return err
	}
	end := before.at.Add(p.For)
	err = t.await(ctx, "measuring", func() (string, bool) {
		now := time.Now()
		h.due(now.Sub(before.at))
		h.learn(now)
		left := end.Sub(now)
		return fmt.Sprintf("for %s, %s failed", left.Round(time.Second), of(len(h.failed), p.Failures, "agents")),
			left <= 0
	})
	if err != nil {
		return err
	}
	h.returnAll()
	after, err := t.read(ctx)
	if err != nil {
		return err
	}
	r.fill(t, before, after)
	if err := h.awaitSeen(ctx); err != nil {
		return err
	}
	r.Detection = h.detection()
	r.Churned = len(h.churned)
	harmed := h.harmed()
	wrongly := t.seen.wrongly(harmed)
	r.FalsePositives, r.LeasesLost = len(wrongly), t.seen.lost(harmed)
	r.Wrongly = named(wrongly)
	now := t.seen.count()
	r.Disturbances = now.disturbed - before.seen.disturbed
	if r.Disturbances > 0 {
		r.Disturbance = t.seen.lastDisturbance()
	}
	r.Verdict = r.judge()
	return nil
}

// maxNamed bounds how many wrongly judged instances are named.
const maxNamed = 20

func (r *Agents) fill(t *Trial, before, after reading) {
	took := after.at.Sub(before.at).Seconds()
	r.Measured = took
	r.Registered = after.stats.Registered
	r.Reports = float64(after.stats.Reports-before.stats.Reports) / took
	r.Certificates = float64(after.stats.Certificates-before.stats.Certificates) / took
	r.Unacknowledged = after.stats.Nacks - before.stats.Nacks + after.stats.Dropped - before.stats.Dropped
	r.Latency = timesOf(after.stats.Latency.Since(before.stats.Latency))
	r.Late = timesOf(after.stats.Late.Since(before.stats.Late))
	grown := func(name, with string) float64 { return after.numbers.Sum(name, with) - before.numbers.Sum(name, with) }
	renewals := grown("leasehold_etcd_requests_total", `operation="renew"`)
	r.Renewals = renewals / took
	if renewals > 0 {
		r.RenewalMillis = 1000 * grown("leasehold_etcd_request_seconds_sum", `operation="renew"`) / renewals
	}
	r.Revisions = float64(after.revision-before.revision) / took
	r.Processes = t.usage.between(before.usage, after.usage)
	for _, p := range r.Processes {
		if p.Name == "etcd" || len(p.Name) > 8 && p.Name[:8] == "replica-" {
			r.CoresOfTheShard += p.Cores
			r.MemoryOfTheShard += p.Memory
		}
	}
	if r.CoresOfTheShard > 0 {
		r.ReportsPerCore = r.Reports / r.CoresOfTheShard
	}
	for what, n := range after.stats.Troubles {
		if more := n - before.stats.Troubles[what]; more > 0 {
			if r.Troubles == nil {
				r.Troubles = map[string]int{}
			}
			r.Troubles[what] = int(more)
		}
	}
}

// harm is the schedule of the failures that the bench causes.
type harm struct {
	t       *Trial
	plan    AgentsPlan
	order   []string // period in which agents fail
	failed  map[string]crowd.How
	churned []string
	away    []absent
	known   map[string]crowd.Silenced
	asked   time.Time
}

type absent struct {
	id    string
	until time.Duration
}

func newHarm(t *Trial, p AgentsPlan) *harm {
	order := slices.Clone(t.shard.Instances)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return &harm{t: t, plan: p, order: order, failed: map[string]crowd.How{}, known: map[string]crowd.Silenced{}}
}

// briefly is how long an agent is away that comes back.
const briefly = time.Second

// harmUntil is the share of the measured time in which the bench causes failures.
const harmUntil = 0.9

// due causes the failures that are due after so much time. Permanent failures end before the last
// tenth of the period, so that all are noticed under the same load.
func (h *harm) due(passed time.Duration) {
	share := min(1, float64(passed)/float64(h.plan.For)/harmUntil)
	var cut, mute []string
	for len(h.failed) < int(share*float64(h.plan.Failures)) && len(h.order) > 0 {
		id := h.next()
		if len(h.failed)%2 == 0 {
			cut, h.failed[id] = append(cut, id), crowd.Cut
		} else {
			mute, h.failed[id] = append(mute, id), crowd.Mute
		}
	}
	for len(h.churned) < int(share*float64(h.plan.Churn)) && len(h.order) > 0 {
		id := h.next()
		cut, h.churned, h.away = append(cut, id), append(h.churned, id), append(h.away, absent{id, passed + briefly})
	}
	var back []string
	for len(h.away) > 0 && h.away[0].until <= passed {
		back, h.away = append(back, h.away[0].id), h.away[1:]
	}
	for _, err := range []error{
		h.t.crowds.silence(cut, crowd.Cut), h.t.crowds.silence(mute, crowd.Mute),
		h.t.crowds.bringBack(back),
	} {
		if err != nil {
			h.t.note(err)
		}
	}
}

// returnAll brings back the agents that are away for a moment.
func (h *harm) returnAll() {
	var back []string
	for _, a := range h.away {
		back = append(back, a.id)
	}
	h.away = nil
	if err := h.t.crowds.bringBack(back); err != nil {
		h.t.note(err)
	}
}

func (h *harm) next() string {
	id := h.order[len(h.order)-1]
	h.order = h.order[:len(h.order)-1]
	return id
}

// learnEvery is how often the bench asks which agents fell silent and when: often enough that no
// agent is removed before.
const learnEvery = 2 * time.Second

// learn records the last report of those that failed.
func (h *harm) learn(now time.Time) {
	if now.Before(h.asked.Add(learnEvery)) {
		return
	}
	h.asked = now
	s, err := h.t.crowds.stats()
	if err != nil {
		h.t.note(err)
		return
	}
	for id := range h.failed {
		if quiet, there := s.Silenced[id]; there {
			h.known[id] = quiet
		}
	}
}

func (h *harm) harmed() map[string]bool {
	out := map[string]bool{}
	for id := range h.failed {
		out[id] = true
	}
	return out
}

// awaitSeen waits until all failures were noticed, or are long overdue.
func (h *harm) awaitSeen(ctx context.Context) error {
	ids := slices.Collect(maps.Keys(h.failed))
	end := time.Now().Add(h.t.shard.LeaseTTL + detectWithin + time.Minute)
	return h.t.await(ctx, "waiting until all failures are noticed", func() (string, bool) {
		h.learn(time.Now())
		n := len(h.t.seen.given(ids))
		return of(n, len(ids), "failures"), n == len(ids) || time.Now().After(end)
	})
}

func (h *harm) detection() Detection {
	d := Detection{Failed: len(h.failed), Bound: millis(h.t.shard.LeaseTTL + detectWithin)}
	var lag, silent measure.Histogram
	for id, at := range h.t.seen.given(slices.Collect(maps.Keys(h.failed))) {
		if quiet, there := h.known[id]; there && !quiet.Sent.IsZero() {
			d.Seen++
			lag.Add(at.Sub(quiet.At))
			silent.Add(at.Sub(quiet.Sent))
		}
	}
	d.Lag, d.Silent = timesOf(lag), timesOf(silent)
	return d
}
