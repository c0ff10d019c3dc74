package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// shardProblems lists what concerns the shard as a whole, its replicas and its orders.
func shardProblems(st *Shard, now time.Time) []Problem {
	var found []Problem
	waiting := waitingProblems(st)
	found = append(found, waiting...)
	if !st.Leads && len(waiting) == 0 {
		found = append(found, leaderlessProblem(st, now))
	}
	found = append(found, settingProblems(st, now)...)
	found = append(found, SiteProblems(st)...)
	found = append(found, EtcdProblems(st.Etcd, now)...)
	found = append(found, replicaProblems(st, now)...)
	found = append(found, backupProblems(st, now)...)
	found = append(found, webhookProblems(st, now)...)
	for _, r := range st.Replicas {
		found = append(found, conditionOf(r.Record, st.graceLasts(), now)...)
	}
	found = append(found, recordProblems(st)...)
	found = append(found, orderProblems(st, now)...)
	return found
}

func leaderlessProblem(st *Shard, now time.Time) Problem {
	last := " (none has run in this shard yet)"
	if st.Served.Present() {
		last = fmt.Sprintf(" (for %s; the last was %s)", reason.Age(now, st.Served.Record.At), st.Served.Record.Replica)
	}
	return Problem{
		About: st.Name, What: "no coordinator is running: nothing is created, healed or deleted" + last,
		Remedies: Run("leasehold coordinator --shard " + st.Name),
	}
}

// settingProblems lists settings by operators that prevent work, and settings that are refused.
func settingProblems(st *Shard, now time.Time) []Problem {
	var found []Problem
	if h := st.Shard.Record.Hold; h != nil {
		found = append(found, Problem{
			About: st.Name, Rule: "SAFE-12",
			What: fmt.Sprintf("on hold for %s by %s: %s: nothing is created or deleted", reason.Age(now, h.At), h.By,
				h.Why),
			Remedies: Advise("when the reason is gone: leasehold release"),
		})
	}
	for _, e := range st.Shard.Record.Settings.Refused {
		found = append(found, Problem{
			About: st.Name, Rule: "REC-20",
			What: fmt.Sprintf("a setting in etcd is refused: %s: %s: must be %s; the last good value stays in force, "+
				"and the default (%s) for coordinators that started since",
				e.Path, e.Value, e.Allowed, st.Shard.Record.Settings.Value(e.Path)),
			Remedies: Run("leasehold config set " + e.Path + "=VALUE").Or(Run("leasehold config show")),
		})
	}
	found = append(found, compactionProblems(st)...)
	for _, zone := range slices.Sorted(maps.Keys(st.Shard.Record.Evacuated)) {
		e := st.Shard.Record.Evacuated[zone]
		found = append(found, Problem{
			About: st.Name, Rule: "DRAIN-3",
			What: fmt.Sprintf("zone %s is evacuated, ordered %s ago by %s: its instances are replaced elsewhere, "+
				"and no new ones are created there", zone, reason.Age(now, e.At), e.By),
			Remedies: Advise("when it may be used again: leasehold evacuate " + zone + " --end"),
		})
	}
	if f := st.Shard.Record.Freeze; f != nil && now.Before(f.To) {
		found = append(found, freezeProblem(st.Name, f, now))
	}
	return found
}

func compactionProblems(st *Shard) []Problem {
	why := st.Served.Record.Uncompacted
	if why == "" {
		return nil
	}
	keep := st.Shard.Record.Settings.WithDefaults().CompactAfter.D()
	p := Problem{
		About: st.Name, What: "etcd's history is not compacted, so its database grows until it is full: " + why,
		Remedies: Advise("start etcd with --auto-compaction-retention=" + keep.String()),
	}
	if st.Served.Record.KeptForRepair {
		p.Rule = "SAFE-15"
		p.Remedies = Advise("leasehold repair reads what is lost from the history; then it is compacted again")
	}
	return []Problem{p}
}

func freezeProblem(shard string, f *store.Freeze, now time.Time) Problem {
	what := "frozen until "
	if now.Before(f.From) {
		what = "freeze from " + f.From.Format(time.RFC3339) + " until "
	}
	return Problem{
		About: shard, Rule: "ROLL-6",
		What: fmt.Sprintf("%s%s by %s: %s: no roll, expiry, rebalance or scale-down begins", what,
			f.To.Format(time.RFC3339), f.By, f.Why),
		Remedies: Advise("when the reason is gone: leasehold freeze --end"),
	}
}

const (
	disturbedNothing = "nothing, unless this continues: agents report again within reconnect_max"
	// disturbedOften is from how many disturbances on etcd is to be looked at: a restart in order
	// makes one or two.
	disturbedOften = 3
)

// graceLasts is how long agents have to return after a disturbance, at most (SAFE-1).
func (st *Shard) graceLasts() time.Duration {
	back, longest := st.Shard.Record.Settings.ReconnectMax.D(), time.Duration(0)
	for i := range st.Groups {
		longest = max(longest, st.Groups[i].Spec.Report.LeaseTTL.D())
	}
	return longest + back*3/2 + 2*time.Second
}

// conditionOf lists the problems of one replica: its authority expires, or it saw a disturbance.
// After a disturbance a grace lasts so long at most.
func conditionOf(r store.Replica, grace time.Duration, now time.Time) []Problem {
	var found []Problem
	if p := issuerProblem(r, now); p != nil {
		found = append(found, *p)
		if !now.Before(r.IssuerEnds) {
			return found // its other problems follow from that
		}
	}
	last := r.Last
	if last == nil || r.Waits != nil || now.Sub(last.At) >= disturbanceShown {
		return found
	}
	saw, next := "saw a disturbance of etcd", "check etcd's logs and disks if this continues"
	switch {
	case last.Own:
		saw, next = "was itself disturbed",
			"check this replica's host if this continues: it was paused, or short of CPU or memory"
	case last.What == store.DisturbedRecordBack:
		next = disturbedNothing
	case r.Disturbances < disturbedOften: // a host or a member of etcd was restarted
		next = disturbedNothing
	}
	p := Problem{About: r.ID, Rule: "SAFE-1", Remedies: Advise(next), Over: now.Sub(last.At) >= grace}
	times := reason.Counted(r.Disturbances, "time", "times")
	if p.Over {
		p.What = fmt.Sprintf("%s at %s, %s ago, which is over: %s (%s since it started)", saw,
			last.At.UTC().Format(time.RFC3339), reason.Age(now, last.At), last.What, times)
	} else {
		p.What = fmt.Sprintf("%s %s ago: %s (%s since it started): no instance is judged lost for a while", saw,
			reason.Age(now, last.At), last.What, times)
	}
	return append(found, p)
}

// issuerProblem reports that the authority from which a replica issues certificates to agents
// expires; nil if that is far off.
func issuerProblem(r store.Replica, now time.Time) *Problem {
	ends := r.IssuerEnds
	switch {
	case ends.IsZero() || ends.Sub(now) >= issuerNear:
		return nil
	case now.Before(ends):
		return &Problem{
			About: r.ID, Rule: "SEC-3", Remedies: Run("leasehold pki rotate --wait"),
			What: fmt.Sprintf("the agents' authority that it issues with ends on %s%s, and every agent's certificate with it",
				Day(now, ends), Within(now, ends)),
		}
	}
	return &Problem{
		About: r.ID, Rule: "SEC-3",
		Remedies: Advise("leasehold pki rotate --force, step by step; then replace the instances, which cannot come back"),
		What: fmt.Sprintf("the agents' authority that it issues with has ended on %s, "+
			"and every agent's certificate with it: it can serve none, and nothing is judged lost", Day(now, ends)),
	}
}

// recordProblems lists records and orders that cannot be read.
func recordProblems(st *Shard) []Problem {
	var found []Problem
	for _, key := range slices.Sorted(maps.Keys(st.Spoiled)) {
		remedies := Run(fmt.Sprintf("leasehold repair %.200s", strings.TrimPrefix(key, store.KeysOf(st.Name).Prefix())))
		if strings.HasPrefix(key, store.KeysOf(st.Name).Of(store.KindLeader)) {
			remedies = Advise(fmt.Sprintf("nothing: the leader continues; etcdctl del %.200q has another one elected", key))
		}
		found = append(found, Problem{
			About: st.Name, Rule: "SAFE-16", Remedies: remedies,
			What: fmt.Sprintf("a record cannot be read: %.200s", joined(st.Spoiled[key])),
		})
	}
	for _, key := range slices.Sorted(maps.Keys(st.Unreadable)) {
		found = append(found, Problem{
			About: st.Name, Rule: "REC-16",
			What:     fmt.Sprintf("an order cannot be read, and is not carried out: %.200s", st.Unreadable[key]),
			Remedies: Run(fmt.Sprintf("etcdctl del %.200q", key)),
		})
	}
	return found
}

// orderProblems lists orders that a leader should have carried out by now.
func orderProblems(st *Shard, now time.Time) []Problem {
	var found []Problem
	for _, r := range st.Requests {
		age := now.Sub(r.Record.At)
		if st.Unreadable[r.Key] != nil || !st.Leads || age <= OrderIgnored {
			continue
		}
		found = append(found, Problem{
			About: aboutOrder(r.Record, st.Name), Rule: "REC-16",
			What: fmt.Sprintf("the order %q, given %s ago by %s, is not carried out yet", r.Record.Kind, reason.Span(age),
				r.Record.By),
			Remedies: Inspect(orderEvents(r.Record)),
		})
	}
	return found
}

// waitingProblems explain why replicas wait for a shard that etcd does not hold (SAFE-15), and the
// next steps.
func waitingProblems(st *Shard) []Problem {
	var found []Problem
	for _, r := range st.Replicas {
		w := r.Record.Waits
		if w == nil {
			continue
		}
		p := Problem{
			About: r.Record.ID, Rule: "SAFE-15", What: "waits and makes no decisions: " + w.Why,
			Remedies: Run("leasehold init"),
		}
		switch {
		case w.Restore:
			p.Remedies = Run("leasehold restore FILE")
		case w.ShardID != "":
			p.Remedies = Advise("restore etcd from a snapshot, or, if there is none: leasehold recover")
			p.What += fmt.Sprintf("; it was in etcd cluster %s, up to revision %d at least", w.Cluster, w.Highest)
		}
		if i := slices.IndexFunc(found, func(q Problem) bool { return q.What == p.What }); i >= 0 {
			found[i].About += ", " + p.About
			continue
		}
		found = append(found, p)
	}
	if len(found) == 0 && !st.Shard.Present() && len(st.Replicas) == 0 {
		found = append(found, Problem{
			About: st.Name, Rule: "SAFE-15", What: "there is no such shard in this etcd",
			Remedies: Advise("leasehold init, then leasehold coordinator --shard " + st.Name),
		})
	}
	return found
}

// aboutOrder returns the subject of an order.
func aboutOrder(r store.Request, shard string) string {
	switch {
	case r.Instance != "":
		return r.Instance
	case r.Group != "":
		return r.Group
	case r.Zone != "":
		return "zone " + r.Zone
	default:
		return shard
	}
}

// orderEvents returns the command that shows the result of an order.
func orderEvents(r store.Request) string {
	switch {
	case r.Instance != "":
		return "leasehold events -i " + r.Instance
	case r.Group != "":
		return "leasehold events -g " + r.Group
	default:
		return "leasehold events"
	}
}
