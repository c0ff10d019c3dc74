package plan

import (
	"fmt"
	"sort"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// blockRefused reports all machines that a provider refuses to create for the same reason as one
// problem (PROV-5).
func (d *status) blockRefused() {
	if len(d.s.Refusals) == 0 {
		return
	}
	waiting, refusals := map[Refused]int{}, map[Refused]Refusal{}
	for _, m := range d.members {
		if m.phase != store.Pending && m.phase != store.Creating {
			continue
		}
		if of, r, refused := d.refusal(m); refused {
			waiting[of]++
			refusals[of] = r
		}
	}
	for of, n := range waiting { // the list is sorted
		d.block("PROV-5", task{work: store.WorkCreateMissing}, store.BlockedByRefusal,
			store.BlockedFacts{
				Name: of.Provider, Count: n, Text: refusals[of].Why, Flag: refusals[of].Credentials,
			})
	}
}

// blockCopies reports machines that exist beside an instance's own and that none of our calls
// created: they are left alone (PROV-4).
func (d *status) blockCopies(m *member) {
	if len(m.Sighting.Copies) == 0 || !m.phase.Registered() {
		return // all of them are removed, or one may yet register, which shows that the others are not needed
	}
	var refs []string
	for _, c := range m.Sighting.Copies {
		if !c.Spare {
			refs = append(refs, c.Ref)
		}
	}
	if len(refs) > 0 {
		d.block("PROV-4", m.task(store.WorkInstance), store.BlockedByCopies,
			store.BlockedFacts{Count: len(refs), Text: strings.Join(refs[:min(3, len(refs))], ", ")})
	}
}

// problemOf returns the problem of a provider call without the instance's name, so that all
// instances of a group with the same problem share one entry.
func problemOf(m *member) string {
	if _, text, names := strings.Cut(m.Calls.Problem, m.ID()+": "); names {
		return text
	}
	return m.Calls.Problem
}

func (d *status) blockedWork() []store.Blocked {
	d.held = append([]store.Blocked(nil), d.blocked...) // later phases report their own obstacles
	d.blockRefused()
	for _, m := range d.members {
		d.blockCopies(m)
		unconfigured := d.blockUnconfigured(m)
		if m.phase == store.Running {
			continue
		}
		if m.Calls.Problem != "" && !unconfigured && (m.phase == store.Pending || m.phase == store.Creating ||
			m.phase == store.Deleting) {
			d.block("HEAL-12", m.task(store.WorkPhase), store.BlockedByProvider,
				store.BlockedFacts{Phase: m.phase, Text: problemOf(m), Flag: m.Calls.WrongTemplate})
		}
		if m.Calls.Problem != "" && m.mustRestart() {
			d.block("HEAL-12", m.task(store.WorkRestart), store.BlockedByProvider,
				store.BlockedFacts{Phase: m.phase, Text: problemOf(m)})
		}
		if m.Record.Phase == store.Checking && m.Alive.Present() && reportIsCurrent(m.Instance) &&
			!m.Report.Record.Healthy && !m.failing() {
			d.blockHealth(m)
		}
	}
	list := append([]store.Blocked(nil), d.blocked...)
	sort.SliceStable(list, func(i, j int) bool { return list[i].What < list[j].What })
	if extra := len(list) - maxBlocked; extra > 0 {
		list = append(list[:maxBlocked],
			store.Blocked{
				Rule: list[maxBlocked].Rule, Work: store.WorkMore, Of: store.BlockedFacts{Count: extra},
				What: fmt.Sprintf("%d more", extra), Why: "see leasehold instance list",
			})
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// blockHealth records what a member that is not healthy yet waits for. A failed member waits for
// something else, which is recorded where that is decided.
func (d *status) blockHealth(m *member) {
	if m.slot != nil && m.slot.Record.Errored != "" {
		d.block("FLAP-3", m.task(store.WorkHealth), store.BlockedByChecksGivenUp,
			store.BlockedFacts{Text: m.Report.Record.Why, Slot: m.slot.number, Cause: m.slot.givenUp()})
		return
	}
	d.block("DET-10", m.task(store.WorkHealth), store.BlockedByChecks,
		store.BlockedFacts{Text: m.Report.Record.Why, For: m.Record.Spec.MaxChecking})
}

// task is work on the member.
func (m *member) task(work store.Work) task { return task{work: work, instance: m.ID()} }

// blocker is why work that is due may not begin now. What decides that only returns it: waits
// records it. One without a kind is not shown: the work goes on with the next plan.
type blocker struct {
	rule     string
	why      store.BlockedKind
	of       store.BlockedFacts
	balancer string // the load balancer whose next List may end it
}

func blocked(rule string, why store.BlockedKind, of store.BlockedFacts) *blocker {
	return &blocker{rule: rule, why: why, of: of}
}

// nextPlan blocks work until the next plan.
var nextPlan = &blocker{}

// waits makes a task wait for what blocks it, and records that. It returns false if nothing does.
func (d *draft) waits(what task, b *blocker) bool {
	if b == nil {
		return false
	}
	if b.balancer != "" {
		d.traffic.watch(b.balancer)
	}
	if b.why != "" {
		d.block(b.rule, what, b.why, b.of)
	}
	return true
}

// block records that a task is due and has to wait.
func (d *draft) block(rule string, what task, why store.BlockedKind, of store.BlockedFacts) {
	of.Group = d.g.Name
	if what.work == store.WorkFill || what.work == store.WorkSlot {
		of.Slot = what.slot
	}
	if what.work == store.WorkRebalance {
		of.Zone, of.To = what.zone, what.to
	}
	d.blocked = append(d.blocked, store.Blocked{Rule: rule, Instance: what.instance, Kind: why, Work: what.work, Of: of})
	b := &d.blocked[len(d.blocked)-1] // a separate variable would be one more allocation
	reason.Classify(b)
	reason.Fill(b)
}

// counterfactual returns what would have prevented a decision. Every journal entry has one.
func counterfactual(rule string, verdict store.Verdict) store.Counterfactual {
	if c, ok := without[rule]; ok {
		return c
	}
	switch verdict {
	case store.Lost:
		return store.UnlessReported
	case store.Unhealthy:
		return store.UnlessChecksPassed
	case store.Dead:
		return store.UnlessListedRunning
	case store.Stuck:
		return store.UnlessReady
	default:
		if rule == "HEAL-13" { // a creation is withdrawn: nothing has failed that could be judged
			return store.UnlessProvider
		}
		return ""
	}
}
