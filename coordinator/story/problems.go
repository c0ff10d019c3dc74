package story

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Problem is something that an operator should know, with the next step.
type Problem struct {
	About string `json:"about"` // the group, the replica, or the shard
	Rule  string `json:"rule,omitempty"`
	What  string `json:"what"`
	Next  string `json:"next,omitempty"`

	Topic reason.Topic `json:"-"` // of blocked work
	Looks int          `json:"-"` // number of commands at the beginning of Next that change nothing
}

// How long a past event stays a problem, and how long an order may be pending before it is one.
const (
	disturbanceShown = 10 * time.Minute
	OrderIgnored     = time.Minute
	issuerNear       = 30 * 24 * time.Hour // before the end of an authority
)

// issuerProblem reports that the authority from which a replica issues certificates to agents
// expires; nil if that is far off.
func issuerProblem(r store.Replica, now time.Time) *Problem {
	ends := r.IssuerEnds
	switch {
	case ends.IsZero() || ends.Sub(now) >= issuerNear:
		return nil
	case now.Before(ends):
		return &Problem{
			About: r.ID, Rule: "SEC-3", Next: "leasehold pki rotate --wait",
			What: fmt.Sprintf("the agents' authority that it issues with ends on %s%s, and every agent's certificate with it",
				Day(now, ends), Within(now, ends)),
		}
	}
	return &Problem{
		About: r.ID, Rule: "SEC-3",
		Next: "leasehold pki rotate --force, step by step; then replace the instances, which cannot come back",
		What: fmt.Sprintf("the agents' authority that it issues with has ended on %s, "+
			"and every agent's certificate with it: it can serve none, and nothing is judged lost", Day(now, ends)),
	}
}

// Problems lists the problems of a shard, the shard's own first.
func Problems(st *Shard, now time.Time) []Problem {
	found := append([]Problem{}, shardProblems(st, now)...)
	for _, g := range st.Groups {
		for _, p := range GroupProblems(g, st.Leads, now) {
			if p.Topic == reason.TopicHold && st.Shard.Record.Hold != nil {
				continue // the shard's own problem covers all groups
			}
			found = append(found, p)
		}
		found = append(found, fileProblems(g.Name, st.Lacking[g.Name])...)
	}
	found = append(found, secretProblems(st)...)
	found = append(found, strangerProblems(st, now)...)
	return found
}

func shardProblems(st *Shard, now time.Time) []Problem {
	var found []Problem
	waiting := waitingProblems(st)
	found = append(found, waiting...)
	if !st.Leads && len(waiting) == 0 {
		what := "no coordinator is running: nothing is created, healed or deleted"
		switch {
		case !st.Served.Present():
			what += " (none has run in this shard yet)"
		default:
			what += fmt.Sprintf(" (for %s; the last was %s)", reason.Age(now, st.Served.Record.At),
				st.Served.Record.Replica)
		}
		found = append(found, Problem{About: st.Name, What: what, Next: "leasehold coordinator --shard " + st.Name})
	}
	if h := st.Shard.Record.Hold; h != nil {
		found = append(found, Problem{
			About: st.Name, Rule: "SAFE-12",
			What: fmt.Sprintf("on hold for %s by %s: %s: nothing is created or deleted", reason.Age(now, h.At), h.By,
				h.Why),
			Next: "when the reason is gone: leasehold release",
		})
	}
	for _, e := range st.Shard.Record.Settings.Refused {
		found = append(found, Problem{
			About: st.Name, Rule: "REC-20",
			What: fmt.Sprintf("a setting in etcd is refused: %s: %s: must be %s; the last good value stays in force, "+
				"and the default (%s) for coordinators that started since",
				e.Path, e.Value, e.Allowed, st.Shard.Record.Settings.Value(e.Path)),
			Next: fmt.Sprintf("leasehold config set %s=VALUE | leasehold config show", e.Path),
		})
	}
	if why := st.Served.Record.Uncompacted; why != "" {
		keep := st.Shard.Record.Settings.WithDefaults().CompactAfter.D()
		p := Problem{
			About: st.Name, What: "etcd's history is not compacted, so its database grows until it is full: " + why,
			Next: "start etcd with --auto-compaction-retention=" + keep.String(),
		}
		if st.Served.Record.KeptForRepair {
			p.Rule, p.Next = "SAFE-15", "leasehold repair reads what is lost from the history; then it is compacted again"
		}
		found = append(found, p)
	}
	for _, zone := range slices.Sorted(maps.Keys(st.Shard.Record.Evacuated)) {
		e := st.Shard.Record.Evacuated[zone]
		found = append(found, Problem{
			About: st.Name, Rule: "DRAIN-3",
			What: fmt.Sprintf("zone %s is evacuated, ordered %s ago by %s: its instances are replaced elsewhere, "+
				"and no new ones are created there", zone, reason.Age(now, e.At), e.By),
			Next: "when it may be used again: leasehold evacuate " + zone + " --end",
		})
	}
	if f := st.Shard.Record.Freeze; f != nil && now.Before(f.To) {
		what := "frozen until "
		if now.Before(f.From) {
			what = "freeze from " + f.From.Format(time.RFC3339) + " until "
		}
		found = append(found, Problem{
			About: st.Name, Rule: "ROLL-6",
			What: fmt.Sprintf("%s%s by %s: %s: no roll, expiry, rebalance or scale-down begins", what,
				f.To.Format(time.RFC3339), f.By, f.Why),
			Next: "when the reason is gone: leasehold freeze --end",
		})
	}
	found = append(found, SiteProblems(st)...)
	found = append(found, EtcdProblems(st.Etcd, now)...)
	found = append(found, replicaProblems(st, now)...)
	found = append(found, backupProblems(st, now)...)
	found = append(found, webhookProblems(st, now)...)
	for _, r := range st.Replicas {
		if p := issuerProblem(r.Record, now); p != nil {
			found = append(found, *p)
			if !now.Before(r.Record.IssuerEnds) {
				continue // its other problems follow from that
			}
		}
		if last := r.Record.Last; last != nil && r.Record.Waits == nil && now.Sub(last.At) < disturbanceShown {
			saw, next := "saw a disturbance of etcd", "check etcd's logs and disks if this continues"
			switch {
			case last.Own:
				saw, next = "was itself disturbed",
					"check this replica's host if this continues: it was paused, or short of CPU or memory"
			case last.What == store.DisturbedRecordBack:
				next = "nothing, unless this continues: agents report again within reconnect_max"
			}
			found = append(found, Problem{
				About: r.Record.ID, Rule: "SAFE-1", Next: next,
				What: fmt.Sprintf("%s %s ago: %s (%s since it started): no instance is judged lost for a while", saw,
					reason.Age(now, last.At), last.What, reason.Counted(r.Record.Disturbances, "time", "times")),
			})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(st.Spoiled)) {
		next := fmt.Sprintf("leasehold repair %.200s", strings.TrimPrefix(key, store.KeysOf(st.Name).Prefix()))
		if strings.HasPrefix(key, store.KeysOf(st.Name).Of(store.KindLeader)) {
			next = fmt.Sprintf("nothing: the leader goes on; etcdctl del %.200q has another one elected", key)
		}
		found = append(found, Problem{
			About: st.Name, Rule: "SAFE-16", Next: next,
			What: fmt.Sprintf("a record cannot be read: %.200s", joined(st.Spoiled[key])),
		})
	}
	for _, key := range slices.Sorted(maps.Keys(st.Unreadable)) {
		found = append(found, Problem{
			About: st.Name, Rule: "REC-16",
			What: fmt.Sprintf("an order cannot be read, and is not carried out: %.200s", st.Unreadable[key]),
			Next: fmt.Sprintf("etcdctl del %.200q", key),
		})
	}
	for _, r := range st.Requests {
		if st.Unreadable[r.Key] != nil {
			continue
		}
		if age := now.Sub(r.Record.At); st.Leads && age > OrderIgnored {
			found = append(found, Problem{
				About: aboutOrder(r.Record, st.Name), Rule: "REC-16",
				What: fmt.Sprintf("the order %q, given %s ago by %s, is not carried out yet", r.Record.Kind,
					reason.Span(age), r.Record.By),
				Next: orderEvents(r.Record),
			})
		}
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
			Next: "leasehold init",
		}
		if w.ShardID != "" {
			p.Next = "restore etcd from a snapshot, or, if there is none: leasehold recover"
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
			Next: "leasehold init, then leasehold coordinator --shard " + st.Name,
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

func GroupProblems(g Known, leads bool, now time.Time) []Problem {
	var found []Problem
	st := g.Status.Record
	switch {
	case g.StatusBad != nil:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-16",
			What: "its status cannot be read, so at most the leader knows which spec is in force: " +
				joined(g.StatusBad), Next: "leasehold repair status/" + g.Name,
		})
	case g.Gone() && g.Leaving():
	case g.Gone() && st.Accepted == nil && st.Invalid != nil:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10", What: st.Invalid.Why,
			Next: fmt.Sprintf("leasehold group apply -f %s.yaml", g.Name),
		})
	case g.Gone():
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10",
			What: fmt.Sprintf("its key in groups/ is gone; %s", InForceWithout(st)),
			Next: fmt.Sprintf("leasehold repair groups/%s restores it; or leasehold group apply -f %s.yaml", g.Name, g.Name),
		})
	case g.LostBeside() != nil:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10",
			What: joined(g.Bad) + "; " + InForce(st),
			Next: fmt.Sprintf("leasehold group scale %s %d", g.Name, st.Accepted.Size),
		})
	case g.Bad != nil:
		next := fmt.Sprintf("leasehold group apply -f %s.yaml, with a corrected spec", g.Name)
		if st.Accepted != nil && !json.Valid(g.Stored.Value) && !g.IsStatic() {
			next = fmt.Sprintf("leasehold repair groups/%s restores the last one; or leasehold group apply -f %s.yaml", g.Name,
				g.Name)
		}
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10", Next: next,
			What: fmt.Sprintf("the spec of revision %d cannot be used: %s; %s", g.Revision(), joined(g.Bad),
				InForce(st)),
		})
	case st.Invalid != nil && st.Invalid.Revision == g.Revision():
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10",
			What: fmt.Sprintf("the spec of revision %d is not in force: %s; %s", st.Invalid.Revision, st.Invalid.Why,
				InForce(st)),
			Next: "leasehold group edit " + g.Name,
		})
	case !g.Status.Present() && leads:
		found = append(found, Problem{
			About: g.Name, What: "the leader has not accepted it yet",
			Next: "leasehold events --follow -g " + g.Name, Looks: 1,
		})
	}
	on := Of(st)
	found = append(found, nowProblems(g, on, now)...)
	switch lost := on.Lost; {
	case len(lost) > 0 && on.Acknowledged:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-15",
			What: fmt.Sprintf("%s lost, which a release has acknowledged: %s; their slots are filled again",
				recordsAre(len(lost)), FewNames(lost)),
			Next: "leasehold instance adopt ID, where the machine runs; else leasehold repair instances/ID --forget",
		})
	case len(lost) > 1:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-15",
			What: fmt.Sprintf("the records of %d instances are lost, without an order to delete them: %s; "+
				"nothing is created or deleted for their slots", len(lost), FewNames(lost)),
			Next: "leasehold repair restores them from etcd's history; leasehold recover, if that does not have them",
		})
	}
	for _, b := range Merge(on.Blocked) {
		found = append(found, heldProblem(g.Name, b))
	}
	return found
}

func recordsAre(n int) string {
	if n == 1 {
		return "the record of 1 instance is"
	}
	return fmt.Sprintf("the records of %d instances are", n)
}

// FewNames lists the first of many names.
func FewNames(ids []string) string {
	if len(ids) <= MostNamed {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:MostNamed], ", "), len(ids)-MostNamed)
}

// heldProblem reports work that is held, for one instance or several.
func heldProblem(group string, b Blockage) Problem {
	what := b.What()
	if b.Instance != "" && !reason.NamesInstance(&b.Blocked) {
		what = strings.Join(b.Instances, ", ") + ": " + what
	}
	if why := b.Why(); why != "" {
		what += ": " + why
	}
	if until := b.Until(); until != "" {
		what += "; until " + until
	}
	p := Problem{
		About: group, Rule: b.Rule, What: what, Next: "leasehold events -g " + group, Looks: 1,
		Topic: reason.TopicOf(&b.Blocked),
	}
	if b.Kind == store.BlockedByMissingList {
		p.Next = "leasehold provider show " + b.Of.Name + ": a coordinator has to have it; it is asked again by itself"
	}
	if b.Instance != "" {
		p.Next, p.Looks = "leasehold instance show "+b.Instance, 0
	}
	if commands := Freeing([]store.Blocked{b.Blocked}); len(commands) > 0 {
		p.Next, p.Looks = commands[0], 0
	}
	return p
}

func InForce(st store.Status) string {
	if st.Accepted == nil {
		return "none is in force"
	}
	return fmt.Sprintf("the spec of revision %d stays in force", st.AcceptedRevision)
}

// InForceWithout is inForce for a group whose key is gone.
func InForceWithout(st store.Status) string {
	if st.Accepted == nil {
		return "none was ever in force"
	}
	return fmt.Sprintf("the spec of revision %d stays in force", st.AcceptedRevision)
}

// SiteProblems reports providers in use whose machines only some of the coordinators can see.
func SiteProblems(st *Shard) []Problem {
	var found []Problem
	used := map[string][]string{} // groups by provider
	for _, g := range st.Groups {
		used[g.Spec.Provider] = append(used[g.Spec.Provider], g.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		sites := map[string][]string{} // coordinators by site
		for _, r := range st.Replicas {
			if c, has := r.Record.Capabilities[name]; has && c.Site != "" {
				sites[c.Site] = append(sites[c.Site], r.Record.ID)
			}
		}
		if len(sites) < 2 {
			continue
		}
		var apart []string
		for _, site := range slices.Sorted(maps.Keys(sites)) {
			apart = append(apart, fmt.Sprintf("%s (%s)", site, strings.Join(sites[site], ", ")))
		}
		found = append(found, Problem{
			About: st.Name, Rule: "PROV-1",
			What: fmt.Sprintf("provider %s has machines at several sites, each seen by its own coordinators alone: %s; "+
				"what one of them made the others cannot list, restart or remove: group %s",
				name, strings.Join(apart, ", "), strings.Join(used[name], ", ")),
			Next: "run the coordinators on one host with the same --machines, or use a provider that all of them reach",
		})
	}
	return found
}
