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
	About    string   `json:"about"` // the group, the replica, or the shard
	Rule     string   `json:"rule,omitempty"`
	What     string   `json:"what"`
	Remedies Remedies `json:"remedies,omitempty"`

	Instances []string     `json:"-"`              // that What names
	Groups    []string     `json:"-"`              // that wait, where About is what they wait for
	Held      bool         `json:"-"`              // it is blocked work
	Topic     reason.Topic `json:"-"`              // of blocked work
	Over      bool         `json:"over,omitempty"` // it is over, and shown for a while
}

// dayProblems are problems of the daily operation of a shard, which share a rule (DAY-3).
type dayProblems []Problem

func (p *dayProblems) addf(about string, remedies Remedies, what string, args ...any) {
	*p = append(*p, Problem{About: about, Rule: "DAY-3", Remedies: remedies, What: fmt.Sprintf(what, args...)})
}

// How long a past event stays a problem, and how long an order may be pending before it is one.
const (
	disturbanceShown = 10 * time.Minute
	OrderIgnored     = time.Minute
	issuerNear       = 30 * 24 * time.Hour // before an authority expires
)

// Problems lists the problems of a shard, the shard's own first and what is over last.
func Problems(st *Shard, now time.Time) []Problem {
	found := append([]Problem{}, shardProblems(st, now)...)
	shared, covered := refusalProblems(st, now)
	found = append(found, shared...)
	for _, g := range st.Groups {
		for _, p := range GroupProblems(g, st.Leads, now) {
			if p.Topic == reason.TopicHold && st.Shard.Record.Hold != nil || covered[p.said()] {
				continue // a problem of the shard's own covers all groups
			}
			found = append(found, p)
		}
		found = append(found, fileProblems(g.Name, st.Lacking[g.Name])...)
	}
	found = append(found, secretProblems(st)...)
	found = append(found, strangerProblems(st, now)...)
	slices.SortStableFunc(found, func(a, b Problem) int {
		switch {
		case a.Over == b.Over:
			return 0
		case b.Over:
			return -1
		default:
			return 1
		}
	})
	return found
}

func GroupProblems(g Known, leads bool, now time.Time) []Problem {
	var found []Problem
	st := g.Status.Record
	switch {
	case g.StatusBad != nil:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-16",
			What: "its status cannot be read, so at most the leader knows which spec is in force: " +
				joined(g.StatusBad), Remedies: Run("leasehold repair status/" + g.Name),
		})
	case g.Gone() && g.Leaving():
	case g.Gone() && st.Accepted == nil && st.Invalid != nil:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10", What: st.Invalid.Why,
			Remedies: Run(fmt.Sprintf("leasehold group apply -f %s.yaml", g.Name)),
		})
	case g.Gone():
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10",
			What: fmt.Sprintf("its key in groups/ is gone; %s", InForceWithout(st)),
			Remedies: Advise(fmt.Sprintf("leasehold repair groups/%s restores it; or leasehold group apply -f %s.yaml", g.Name,
				g.Name)),
		})
	case g.LostBeside() != nil:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10",
			What:     joined(g.Bad) + "; " + InForce(st),
			Remedies: Run(fmt.Sprintf("leasehold group scale %s %d", g.Name, st.Accepted.Size)),
		})
	case g.Bad != nil:
		remedies := Advise(fmt.Sprintf("leasehold group apply -f %s.yaml, with a corrected spec", g.Name))
		if st.Accepted != nil && !json.Valid(g.Stored.Value) && !g.IsStatic() {
			remedies = Advise(fmt.Sprintf(
				"leasehold repair groups/%s restores the last one; or leasehold group apply -f %s.yaml", g.Name, g.Name))
		}
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10", Remedies: remedies,
			What: fmt.Sprintf("the spec of revision %d cannot be used: %s; %s", g.Revision(), joined(g.Bad),
				InForce(st)),
		})
	case st.Invalid != nil && st.Invalid.Revision == g.Revision():
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-10",
			What: fmt.Sprintf("the spec of revision %d is not in force: %s; %s", st.Invalid.Revision, st.Invalid.Why,
				InForce(st)),
			Remedies: Run("leasehold group edit " + g.Name),
		})
	case !g.Status.Present() && leads:
		found = append(found, Problem{
			About: g.Name, What: "the leader has not accepted it yet",
			Remedies: Inspect("leasehold events --follow -g " + g.Name),
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
			Remedies: Advise("leasehold instance adopt ID, where the machine runs; else leasehold repair instances/ID --forget"),
		})
	case len(lost) > 1:
		found = append(found, Problem{
			About: g.Name, Rule: "SAFE-15",
			What: fmt.Sprintf("the records of %d instances are lost, without an order to delete them: %s; "+
				"nothing is created or deleted for their slots", len(lost), FewNames(lost)),
			Remedies: Advise("leasehold repair restores them from etcd's history; " +
				"leasehold recover, if that does not have them"),
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
	return reason.FirstNames(ids, MaxNamed)
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
	if until := b.Until(); until != "" && until != b.Frees() {
		what += "; until " + until
	}
	p := Problem{
		About: group, Rule: b.Rule, What: what, Remedies: Inspect("leasehold events -g " + group),
		Instances: b.Instances, Held: true, Topic: reason.TopicOf(&b.Blocked),
	}
	if b.Kind == store.BlockedByMissingList {
		p.Remedies = Advise("leasehold provider show " + b.Of.Name +
			": a coordinator must have it; it is checked again automatically")
	}
	if b.Instance != "" {
		p.Remedies = Run("leasehold instance show " + b.Instance)
	}
	if commands := Unblocking([]store.Blocked{b.Blocked}); len(commands) > 0 {
		p.Remedies = commands
	}
	if next := unblockWave(group, &b.Blocked); next != nil {
		p.Remedies = next
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
			Remedies: Advise("run the coordinators on one host with the same --machines, " +
				"or use a provider that all of them reach"),
		})
	}
	return found
}
