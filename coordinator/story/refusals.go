package story

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// correctProvider is the next step where a provider refuses what it is asked.
const correctProvider = "correct what it says; it is asked again by itself"

// refused identifies what a provider refuses.
type refused struct {
	name        string
	credentials bool
	quota       string // the provider's error, which names the quota
}

// sharedRefusal is a refusal with all groups whose machines wait for its end.
type sharedRefusal struct {
	of      refused
	groups  []string
	sum     Blockage // of all of them
	covered []Problem
}

// refusals returns what providers refuse, in the order of the groups.
func refusals(st *Shard) []*sharedRefusal {
	var all []*sharedRefusal
	for _, g := range st.Groups {
		for _, b := range Merge(Of(g.Status.Record).Blocked) {
			if b.Kind != store.BlockedByRefusal {
				continue
			}
			of := refused{name: b.Of.Name, credentials: b.Of.Flag}
			if !of.credentials {
				of.quota = b.Of.Text
			}
			at := slices.IndexFunc(all, func(r *sharedRefusal) bool { return r.of == of })
			if at < 0 {
				at = len(all)
				all = append(all, &sharedRefusal{of: of, sum: b})
			} else {
				all[at].sum.Of.Count += b.Of.Count
			}
			all[at].groups = append(all[at].groups, g.Name)
			all[at].covered = append(all[at].covered, heldProblem(g.Name, b))
		}
	}
	return all
}

// said is what a problem says, to recognize it by.
type said struct{ about, rule, what string }

func (p Problem) said() said { return said{p.About, p.Rule, p.What} }

// waitForList returns the groups in which nothing is decided until a provider has listed its
// machines, and these groups' problems.
func waitForList(st *Shard, name string) (groups []string, covered []Problem) {
	for _, g := range st.Groups {
		for _, b := range Merge(Of(g.Status.Record).Blocked) {
			if b.Kind == store.BlockedByMissingList && b.Of.Name == name {
				groups, covered = append(groups, g.Name), append(covered, heldProblem(g.Name, b))
			}
		}
	}
	return groups, covered
}

// refusalProblems returns one problem for each refusal that several groups wait for, and the
// groups' problems that these cover. A provider that lists nothing is one problem already, with all
// that waits for its list and, if it refuses the credentials, with the machines that wait for that.
func refusalProblems(st *Shard, now time.Time) (shared []Problem, covered map[said]bool) {
	covered = map[said]bool{}
	for _, s := range silent(st, now) {
		_, problems := waitForList(st, s.Provider)
		for _, p := range problems {
			covered[p.said()] = true
		}
	}
	for _, r := range refusals(st) {
		listsNothing := slices.ContainsFunc(silent(st, now), func(s store.Silent) bool {
			return s.Refused && r.of == refused{name: s.Provider, credentials: true}
		})
		if !listsNothing && len(r.groups) == 1 {
			continue
		}
		for _, p := range r.covered {
			covered[p.said()] = true
		}
		if listsNothing {
			continue
		}
		shared = append(shared, Problem{
			About: r.of.name, Rule: r.sum.Rule, Remedies: Advise(correctProvider), Held: true, Groups: r.groups,
			Topic: reason.TopicOf(&r.sum.Blocked),
			What:  fmt.Sprintf("%s of %s: %s; until %s", r.sum.What(), FewNames(r.groups), r.sum.Why(), r.sum.Until()),
		})
	}
	return shared, covered
}

func machinesWait(n int) string {
	return reason.Counted(n, "machine waits to be created", "machines wait to be created")
}
