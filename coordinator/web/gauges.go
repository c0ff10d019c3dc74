package web

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// gauges reads the present state from the replica and its cache when it is scraped. The groups'
// counts are in their status records, so no instance record is read. Only the leader exports what
// belongs to the whole shard: otherwise sums over replicas would count it twice. With a stale cache
// only its age is exported and nothing of groups, since old numbers look like good ones.
type gauges struct {
	replica      Replica
	machines     *machines
	certificates func() []coordinator.Certificate

	leader, grace, age, revision, streams, ends                    *prometheus.Desc
	replicas, hold, unreadable, orphans, missing                   *prometheus.Desc
	size, wish, phases, healthy, onDemand, verdicts, health, state *prometheus.Desc
	history                                                        *prometheus.Desc
	slots, outdated, storm, stalled, blamed, invalid, blockedWork  *prometheus.Desc
}

// watch adds the metrics that are read from a replica. It is called once.
func (m *Metrics) watch(r Replica, certificates func() []coordinator.Certificate) error {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, labels, nil)
	}
	g := &gauges{
		replica: r, machines: &machines{replica: r}, certificates: certificates,

		leader: desc("leader", "Whether this replica leads the shard."),
		age: desc("picture_age_seconds",
			"Seconds since the replica last heard from etcd, progress notifications included. "+
				"Above 3 s it exports no group metrics."),
		revision: desc("picture_revision", "The revision of etcd that this replica has seen."),
		streams:  desc("streams", "Agents that this replica serves."),
		ends: desc("certificate_remaining_seconds",
			"How long a certificate lasts that this replica cannot do without; negative: it has ended.", "certificate"),

		grace: desc("grace_remaining_seconds",
			"For how long no instance is judged lost, so that all agents have time to return (SAFE-1); 0: no grace."),
		history: desc("etcd_history_seconds",
			"How old history is that etcd is known to keep: more than an hour or two, where compact_after is 1h, "+
				"means that it is not compacted."),
		replicas:   desc("replicas", "Replicas that serve agents."),
		hold:       desc("held", "Whether the shard is on hold (SAFE-12)."),
		unreadable: desc("unreadable_records", "Records in etcd that this version cannot read."),
		orphans:    desc("orphan_machines", "Machines of this shard without a record (REC-8)."),
		missing: desc("missing_machines",
			"Records whose machine should be there and is not listed by its provider."),

		size: desc("group_size", "Instances that the group is to have.", "group"),
		wish: desc("group_scale_wish", "Instances that the group's load asks for, where its size follows the load (AUTO-1).",
			"group"),
		phases: desc("group_instances", "Managed instances of the group, by phase.", "group", "phase"),
		healthy: desc("group_healthy_instances", "Managed instances of the group that run and are healthy.",
			"group"),
		onDemand: desc("group_on_demand_instances", "Instances of the group that were made on demand.", "group"),
		verdicts: desc("group_verdicts", "Managed instances of the group, by verdict.", "group", "verdict"),
		health: desc("group_health_ratio", "Healthy instances over those that are to be, at most 1 (REC-10).",
			"group"),
		state: desc("group_state", "1, labelled with the state that the group is in (REC-11).", "group", "state"),
		slots: desc("group_troubled_slots", "Slots of the group that wait since they flap, or were given up.",
			"group", "trouble"),
		outdated: desc("group_outdated_instances", "Instances of the group that are not as its template says.",
			"group"),
		storm:   desc("group_storm", "Whether a storm holds replacements of lost instances (SAFE-2).", "group"),
		stalled: desc("group_rollout_stalled", "Whether the group's roll makes no progress (ROLL-4).", "group"),
		blamed: desc("group_rollout_blamed",
			"Whether the group's roll has stopped because its template is blamed (FLAP-5).", "group"),
		invalid: desc("group_spec_invalid",
			"Whether what is asked for is not in force, since it is wrong or missing (SAFE-10).", "group"),
		blockedWork: desc("group_blocked",
			"Work of the group that should be done and is held; leasehold explain says why.", "group"),
	}
	if err := m.registry.Register(g); err != nil {
		return errors.Join(errors.New("these metrics belong to another server already"), err)
	}
	r.Cache().Listen(interruptions{m.watches})
	return nil
}

func (g *gauges) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		g.leader, g.grace, g.age, g.revision, g.streams, g.ends, g.history, g.replicas, g.hold, g.unreadable, g.orphans,
		g.missing,
		g.size, g.wish, g.phases, g.healthy, g.onDemand, g.verdicts, g.health, g.state,
		g.slots, g.outdated, g.storm, g.stalled, g.blamed, g.invalid, g.blockedWork,
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range g.all() {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	now, status := time.Now(), g.replica.Status()
	set(g.leader, truth(status.Leads))
	set(g.streams, float64(status.Streams))
	for _, c := range g.certificates() {
		set(g.ends, c.Ends.Sub(now).Seconds(), c.Name)
	}
	heard, interrupted := g.replica.Cache().Heard()
	if heard.IsZero() {
		return // there is none yet
	}
	set(g.age, now.Sub(heard).Seconds())
	var seen shard
	g.replica.Cache().View(func(c *cache.Content) { seen = seenIn(c) })
	set(g.revision, float64(seen.revision))
	if interrupted != nil || now.Sub(heard) > oldCache || !status.Leads {
		return
	}
	set(g.grace, max(0, status.GraceEnd.Sub(now).Seconds()))
	set(g.history, status.History.Seconds())
	set(g.replicas, float64(seen.replicas))
	set(g.hold, truth(seen.held))
	set(g.unreadable, float64(seen.unreadable))
	if orphans, missing, known := g.machines.count(now); known {
		set(g.orphans, float64(orphans))
		set(g.missing, float64(missing))
	}
	for _, s := range seen.groups {
		g.setGroup(set, s)
	}
}

func (g *gauges) setGroup(set func(*prometheus.Desc, float64, ...string), s store.Status) {
	size := 0
	if s.Accepted != nil {
		size = s.Accepted.Size
	}
	set(g.size, float64(size), s.Group)
	if s.Scale != nil {
		set(g.wish, float64(s.Scale.Asks), s.Group)
	}
	for _, p := range store.Phases {
		set(g.phases, float64(s.Phases[p]), s.Group, string(p))
	}
	for _, v := range verdicts {
		set(g.verdicts, float64(s.Verdicts[v]), s.Group, string(v))
	}
	set(g.healthy, float64(s.Healthy), s.Group)
	set(g.onDemand, float64(s.OnDemand), s.Group)
	ratio := 1.0
	if size > 0 {
		ratio = min(1, float64(s.Healthy)/float64(size))
	}
	set(g.health, ratio, s.Group)
	set(g.state, 1, s.Group, string(s.State))
	set(g.slots, float64(s.Flapping), s.Group, "flapping")
	set(g.slots, float64(s.Errored), s.Group, "errored")
	set(g.outdated, float64(s.Outdated), s.Group)
	set(g.storm, truth(s.Storm != nil && s.Storm.Ended == ""), s.Group)
	set(g.stalled, truth(s.Rollout != nil && s.Rollout.Stalled != ""), s.Group)
	set(g.blamed, truth(s.Rollout != nil && s.Rollout.Blamed != ""), s.Group)
	set(g.invalid, truth(s.Invalid != nil), s.Group)
	set(g.blockedWork, float64(len(s.Blocked)), s.Group)
}

// verdicts lists all verdicts.
var verdicts = []store.Verdict{
	store.Unborn, store.Live, store.Suspect, store.Unhealthy, store.Lost, store.Dead,
	store.Stuck, store.Doomed,
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// shard holds what is read while the cache is locked: the records themselves do not change.
type shard struct {
	revision             store.Revision
	replicas, unreadable int
	held                 bool
	groups               []store.Status
}

func seenIn(c *cache.Content) shard {
	s := shard{
		revision: c.Revision, replicas: len(c.Replicas), unreadable: len(c.Unreadable),
		held: c.Shard.Record.Hold != nil,
	}
	for name, status := range c.Status {
		rec := status.Record
		rec.Group = strings.ToValidUTF8(name, "?") // the key counts, not the record's field
		s.groups = append(s.groups, rec)
	}
	return s
}

// machines counts orphaned and missing machines at most once a second, however many clients scrape:
// nothing else here is expensive.
type machines struct {
	replica Replica

	mu               sync.Mutex
	counted          time.Time
	orphans, missing int
	known            bool
}

func (m *machines) count(now time.Time) (orphans, missing int, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.counted) >= time.Second {
		m.orphans, m.missing, m.known = m.replica.CountMachines()
		m.counted = now
	}
	return m.orphans, m.missing, m.known
}

// interruptions counts interruptions of the watch.
type interruptions struct{ restarts prometheus.Counter }

// Listed does nothing.
func (interruptions) Listed(*cache.Content) {}

// Changed does nothing.
func (interruptions) Changed(*cache.Content, []cache.Change) {}

// Interrupted counts one.
func (i interruptions) Interrupted(error) { i.restarts.Inc() }
