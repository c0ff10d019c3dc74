package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// problem is something that an operator should know, with the next step.
type problem struct {
	About string `json:"about"` // the group, the replica, or the shard
	Rule  string `json:"rule,omitempty"`
	What  string `json:"what"`
	Next  string `json:"next,omitempty"`

	topic reason.Topic
	looks int // number of commands at the beginning of Next that change nothing
}

// How long a past event stays a problem, and how long an order may be pending before it is one.
const (
	disturbanceShown = 10 * time.Minute
	orderIgnored     = time.Minute
	issuerNear       = 30 * 24 * time.Hour // before the end of an authority
)

// issuerProblem reports that the authority from which a replica issues certificates to agents
// expires; nil if that is far off.
func issuerProblem(r store.Replica, now time.Time) *problem {
	ends := r.IssuerEnds
	switch {
	case ends.IsZero() || ends.Sub(now) >= issuerNear:
		return nil
	case now.Before(ends):
		return &problem{
			About: r.ID, Rule: "SEC-3", Next: "leasehold pki rotate --wait",
			What: fmt.Sprintf("the agents' authority that it issues with ends on %s%s, and every agent's certificate with it", day(now, ends), within(now, ends)),
		}
	}
	return &problem{
		About: r.ID, Rule: "SEC-3",
		Next: "leasehold pki rotate --force, step by step; then replace the instances, which cannot come back",
		What: fmt.Sprintf("the agents' authority that it issues with has ended on %s, and every agent's certificate with it: it can serve none, and nothing is judged lost", day(now, ends)),
	}
}

// problems lists the problems of a shard, the shard's own first.
func problems(st shardState, now time.Time) []problem {
	found := append([]problem{}, shardProblems(st, now)...)
	for _, g := range st.groups {
		for _, p := range groupProblems(g, st.leads, now) {
			if p.topic == reason.TopicHold && st.shard.Record.Hold != nil {
				continue // the shard's own problem covers all groups
			}
			found = append(found, p)
		}
		found = append(found, fileProblems(g.Name, st.lacking[g.Name])...)
	}
	found = append(found, secretProblems(st)...)
	found = append(found, strangerProblems(st, now)...)
	return found
}

func shardProblems(st shardState, now time.Time) []problem {
	var found []problem
	waiting := waitingProblems(st)
	found = append(found, waiting...)
	if !st.leads && len(waiting) == 0 {
		what := "no coordinator is running: nothing is created, healed or deleted"
		switch {
		case !st.served.Present():
			what += " (none has run in this shard yet)"
		default:
			what += fmt.Sprintf(" (for %s; the last was %s)", output.Age(now, st.served.Record.At),
				st.served.Record.Replica)
		}
		found = append(found, problem{About: st.name, What: what, Next: "leasehold coordinator --shard " + st.name})
	}
	if h := st.shard.Record.Hold; h != nil {
		found = append(found, problem{
			About: st.name, Rule: "SAFE-12",
			What: fmt.Sprintf("on hold for %s by %s: %s: nothing is created or deleted", output.Age(now, h.At), h.By,
				h.Why),
			Next: "when the reason is gone: leasehold release",
		})
	}
	for _, e := range st.shard.Record.Settings.Refused {
		found = append(found, problem{
			About: st.name, Rule: "REC-20",
			What: fmt.Sprintf("a setting in etcd is refused: %s: %s: must be %s; the last good value stays in force, and the default (%s) for coordinators that started since",
				e.Path, e.Value, e.Allowed, st.shard.Record.Settings.Value(e.Path)),
			Next: fmt.Sprintf("leasehold config set %s=VALUE | leasehold config show", e.Path),
		})
	}
	if why := st.served.Record.Uncompacted; why != "" {
		keep := st.shard.Record.Settings.WithDefaults().CompactAfter.D()
		found = append(found, problem{
			About: st.name, What: "etcd's history is not compacted, so its database grows until it is full: " + why,
			Next: "start etcd with --auto-compaction-retention=" + keep.String(),
		})
	}
	for _, zone := range slices.Sorted(maps.Keys(st.shard.Record.Evacuated)) {
		e := st.shard.Record.Evacuated[zone]
		found = append(found, problem{
			About: st.name, Rule: "DRAIN-3",
			What: fmt.Sprintf("zone %s is evacuated, ordered %s ago by %s: its instances are replaced elsewhere, and no new ones are created there", zone, output.Age(now, e.At), e.By),
			Next: "when it may be used again: leasehold evacuate " + zone + " --end",
		})
	}
	found = append(found, siteProblems(st)...)
	for _, r := range st.replicas {
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
			found = append(found, problem{
				About: r.Record.ID, Rule: "SAFE-1", Next: next,
				What: fmt.Sprintf("%s %s ago: %s (%s since it started): no instance is judged lost for a while", saw,
					output.Age(now, last.At), last.What, counted(r.Record.Disturbances, "time", "times")),
			})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(st.spoiled)) {
		next := fmt.Sprintf("leasehold repair %.200s", strings.TrimPrefix(key, store.KeysOf(st.name).Prefix()))
		if strings.HasPrefix(key, store.KeysOf(st.name).Of(store.KindLeader)) {
			next = fmt.Sprintf("nothing: the leader goes on; etcdctl del %.200q has another one elected", key)
		}
		found = append(found, problem{
			About: st.name, Rule: "SAFE-16", Next: next,
			What: fmt.Sprintf("a record cannot be read: %.200s", joined(st.spoiled[key])),
		})
	}
	for _, key := range slices.Sorted(maps.Keys(st.unreadable)) {
		found = append(found, problem{
			About: st.name, Rule: "REC-16",
			What: fmt.Sprintf("an order cannot be read, and is not carried out: %.200s", st.unreadable[key]),
			Next: fmt.Sprintf("etcdctl del %.200q", key),
		})
	}
	for _, r := range st.requests {
		if st.unreadable[r.Key] != nil {
			continue
		}
		if age := now.Sub(r.Record.At); st.leads && age > orderIgnored {
			found = append(found, problem{
				About: aboutOrder(r.Record, st.name), Rule: "REC-16",
				What: fmt.Sprintf("the order %q, given %s ago by %s, is not carried out yet", r.Record.Kind,
					output.Span(age), r.Record.By),
				Next: orderEvents(r.Record),
			})
		}
	}
	return found
}

// waitingProblems explain why replicas wait for a shard that etcd does not hold (SAFE-15), and the
// next steps.
func waitingProblems(st shardState) []problem {
	var found []problem
	for _, r := range st.replicas {
		w := r.Record.Waits
		if w == nil {
			continue
		}
		p := problem{
			About: r.Record.ID, Rule: "SAFE-15", What: "waits and makes no decisions: " + w.Why,
			Next: "leasehold init",
		}
		if w.ShardID != "" {
			p.Next = "restore etcd from a snapshot, or, if there is none: leasehold recover"
			p.What += fmt.Sprintf("; it was in etcd cluster %s, up to revision %d at least", w.Cluster, w.Highest)
		}
		if i := slices.IndexFunc(found, func(q problem) bool { return q.What == p.What }); i >= 0 {
			found[i].About += ", " + p.About
			continue
		}
		found = append(found, p)
	}
	if len(found) == 0 && !st.shard.Present() && len(st.replicas) == 0 {
		found = append(found, problem{
			About: st.name, Rule: "SAFE-15", What: "there is no such shard in this etcd",
			Next: "leasehold init, then leasehold coordinator --shard " + st.name,
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

func groupProblems(g group, leads bool, now time.Time) []problem {
	var found []problem
	st := g.Status.Record
	switch {
	case g.StatusBad != nil:
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-16",
			What: "its status cannot be read, so at most the leader knows which spec is in force: " +
				joined(g.StatusBad), Next: "leasehold repair status/" + g.Name,
		})
	case g.gone() && g.leaving():
	case g.gone() && st.Accepted == nil && st.Invalid != nil:
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-10", What: st.Invalid.Why,
			Next: fmt.Sprintf("leasehold group apply -f %s.yaml", g.Name),
		})
	case g.gone():
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-10",
			What: fmt.Sprintf("its key in groups/ is gone; %s", inForceWithout(st)),
			Next: fmt.Sprintf("leasehold repair groups/%s restores it; or leasehold group apply -f %s.yaml", g.Name, g.Name),
		})
	case g.lostBeside() != nil:
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-10",
			What: joined(g.Bad) + "; " + inForce(st),
			Next: fmt.Sprintf("leasehold group scale %s %d", g.Name, st.Accepted.Size),
		})
	case g.Bad != nil:
		next := fmt.Sprintf("leasehold group apply -f %s.yaml, with a corrected spec", g.Name)
		if st.Accepted != nil && !json.Valid(g.Stored.Value) && !g.static() {
			next = fmt.Sprintf("leasehold repair groups/%s restores the last one; or leasehold group apply -f %s.yaml", g.Name, g.Name)
		}
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-10", Next: next,
			What: fmt.Sprintf("the spec of revision %d cannot be used: %s; %s", g.revision(), joined(g.Bad),
				inForce(st)),
		})
	case st.Invalid != nil && st.Invalid.Revision == g.revision():
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-10",
			What: fmt.Sprintf("the spec of revision %d is not in force: %s; %s", st.Invalid.Revision, st.Invalid.Why,
				inForce(st)),
			Next: "leasehold group edit " + g.Name,
		})
	case !g.Status.Present() && leads:
		found = append(found, problem{
			About: g.Name, What: "the leader has not accepted it yet",
			Next: "leasehold events --follow -g " + g.Name, looks: 1,
		})
	}
	on := story.Of(st)
	found = append(found, nowProblems(g, on, now)...)
	switch lost := on.Lost; {
	case len(lost) > 0 && on.Acknowledged:
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-15",
			What: fmt.Sprintf("%s lost, which a release has acknowledged: %s; their slots are filled again",
				recordsAre(len(lost)), fewNames(lost)),
			Next: "leasehold instance adopt ID, where the machine runs; else leasehold repair instances/ID --forget",
		})
	case len(lost) > 1:
		found = append(found, problem{
			About: g.Name, Rule: "SAFE-15",
			What: fmt.Sprintf("the records of %d instances are lost, without an order to delete them: %s; nothing is created or deleted for their slots", len(lost), fewNames(lost)),
			Next: "leasehold repair restores them from etcd's history; leasehold recover, if that does not have them",
		})
	}
	for _, b := range merge(on.Blocked) {
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

// fewNames lists the first of many names.
func fewNames(ids []string) string {
	if len(ids) <= mostNamed {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:mostNamed], ", "), len(ids)-mostNamed)
}

// heldProblem reports work that is held, for one instance or several.
func heldProblem(group string, b blockedWork) problem {
	what := b.what()
	if b.Instance != "" && !reason.NamesInstance(&b.Blocked) {
		what = strings.Join(b.Instances, ", ") + ": " + what
	}
	if why := b.why(); why != "" {
		what += ": " + why
	}
	if until := b.until(); until != "" {
		what += "; until " + until
	}
	p := problem{
		About: group, Rule: b.Rule, What: what, Next: "leasehold events -g " + group, looks: 1,
		topic: reason.TopicOf(&b.Blocked),
	}
	if b.Instance != "" {
		p.Next, p.looks = "leasehold instance show "+b.Instance, 0
	}
	if commands := freeing([]store.Blocked{b.Blocked}); len(commands) > 0 {
		p.Next, p.looks = commands[0], 0
	}
	return p
}

func inForce(st store.Status) string {
	if st.Accepted == nil {
		return "none is in force"
	}
	return fmt.Sprintf("the spec of revision %d stays in force", st.AcceptedRevision)
}

// inForceWithout is inForce for a group whose key is gone.
func inForceWithout(st store.Status) string {
	if st.Accepted == nil {
		return "none was ever in force"
	}
	return fmt.Sprintf("the spec of revision %d stays in force", st.AcceptedRevision)
}

// joined joins the lines of an error.
func joined(err error) string { return program.Joined(err) }

// writeProblems prints the problems and their number.
func writeProblems(scr output.Screen, found []problem) error {
	var b strings.Builder
	if len(found) == 0 {
		b.WriteString("no problems\n")
	} else {
		b.WriteString(scr.Alarm(counted(len(found), "problem", "problems")) + "\n")
	}
	for _, p := range found {
		rule := ""
		if p.Rule != "" {
			rule = p.Rule + ": "
		}
		// a key written by hand may have any name
		about := fmt.Sprintf("%.60s", output.OneLine(p.About))
		output.WriteWrapped(&b, scr, "  "+about+"  ", rule+p.What)
		if p.Next != "" {
			fmt.Fprintf(&b, "  %s  next: %s\n", strings.Repeat(" ", len(about)), output.OneLine(p.Next))
		}
	}
	_, err := io.WriteString(scr.W, b.String())
	return err
}

// siteProblems reports providers in use whose machines only some of the coordinators can see.
func siteProblems(st shardState) []problem {
	var found []problem
	used := map[string][]string{} // groups by provider
	for _, g := range st.groups {
		used[g.Spec.Provider] = append(used[g.Spec.Provider], g.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		sites := map[string][]string{} // coordinators by site
		for _, r := range st.replicas {
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
		found = append(found, problem{
			About: st.name, Rule: "PROV-1",
			What: fmt.Sprintf("provider %s has machines at several sites, each seen by its own coordinators alone: %s; what one of them made the others cannot list, restart or remove: group %s",
				name, strings.Join(apart, ", "), strings.Join(used[name], ", ")),
			Next: "run the coordinators on one host with the same --machines, or use a provider that all of them reach",
		})
	}
	return found
}
