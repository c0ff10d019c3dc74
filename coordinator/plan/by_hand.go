package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Machines that people set up by hand belong to the provider none (PROV-9). No provider creates,
// lists or removes them, so their agents are the only source. Such an instance is on demand: it is
// neither counted nor healed. Its record ends when its agent confirms that the workload has
// stopped, when its join token has expired unused, or by an operator's order. Its absence proves
// nothing.

// byHand reports whether a person set up the member's machine.
func (in *Instance) byHand() bool { return in.Record.Spec.Provider == store.ProviderNone }

// bootstrap creates the record of an instance whose machine an operator sets up. The operator has
// the join token, and the order has its hash.
func (d *orders) bootstrap(r store.Versioned[store.Request]) {
	switch {
	case d.spec.Deleting || d.spec.Stopped:
		d.actions = append(d.actions, refuse(r, "the group is stopped, or being deleted"))
		return
	case !store.IsTokenHash(r.Record.Token) || r.Record.Valid <= 0 || r.Record.Valid.D() > store.MaxBootstrapValid:
		d.actions = append(d.actions, refuse(r,
			fmt.Sprintf("it needs the hash of a join token, and a validity of at most %s",
				store.Duration(store.MaxBootstrapValid))))
		return
	case !d.mayAct():
		return // carried out once creation is allowed again
	}
	if l := d.budget.overLimit(false); l != nil {
		d.actions = append(d.actions, refuse(r, l.reached()))
		return
	}
	why := orderedBy(r.Record.By)
	rec := d.newRecord(nil, motive{store.PurposeOrder, "PROV-9", why})
	rec.Phase, rec.Zone, rec.Called, rec.Token = store.Booting, r.Record.Zone, true, r.Record.Token
	rec.Spec.Provider, rec.Spec.RegistrationTimeout = store.ProviderNone, r.Record.Valid
	rec.Config = rec.Spec.ConfigHash()
	m := d.join(rec)
	token := d.s.Keys.Token(rec.Token)
	a := Action{
		Group: d.g.Name, Instance: rec.ID, Rule: "PROV-9", Effect: effect(store.EffectByHand), Why: rec.Last.Why, Cause: why,
		To: store.Booting, Counterfactual: counterfactual("REC-16", ""),
		Facts:      requested(r),
		Conditions: append(d.common(), store.Absent(m.Key), store.Absent(token), r.Unchanged()),
		Writes:     []store.Write{store.Put(m.Key, store.Encode(rec)), store.Delete(r.Key)},
		Token:      &TokenGrant{Key: token, Instance: rec.ID, Valid: r.Record.Valid.D()},
	}
	d.templates.madeFrom(&a, &rec)
	d.actions = append(d.actions, a)
}

// endedByHand returns the proof that nothing runs any more of an instance whose machine was set up
// by hand, or nil.
func (d *removals) endedByHand(m *member) *ending {
	keys := d.s.Keys
	token := []store.Write{store.Delete(keys.Token(m.Record.Token))}
	switch stopped := m.Report.Record.Stopped; {
	case !m.Joined && m.Record.Token != "":
		return &ending{
			why:        of(store.CauseNeverJoined),
			conditions: []store.Condition{store.Absent(keys.Joined(m.ID()))}, writes: token,
		}
	case stopped != 0 && stopped == m.Modified:
		return &ending{
			why:        of(store.CauseStopConfirmed),
			facts:      []store.Fact{reportIs(m.Instance)},
			conditions: []store.Condition{m.Report.Unchanged()}, writes: token,
		}
	default:
		d.block("PROV-9", m.task(store.WorkForget), store.BlockedByAgentStop, store.BlockedFacts{})
		return nil
	}
}

// endByOrder ends an instance on the order of an operator, who confirms that its machine is gone:
// one that was set up by hand, or whose provider no coordinator is configured with (PROV-10). First
// its record goes to deleting, so that load balancers are asked to remove it; it ends when none has
// it.
func (d *orders) endByOrder(r store.Versioned[store.Request], m *member) {
	from, unconfigured := d.unconfigured(m)
	switch {
	case !m.byHand() && !unconfigured:
		d.actions = append(d.actions, refuse(r, "a provider keeps its machine, and its word decides"))
		return
	case m.Alive.Present() && !m.Alive.Record.State.Troubled():
		d.actions = append(d.actions, refuse(r, "its agent reports: the machine is there"))
		return
	case unconfigured && !d.mayVouch(m, from):
		return // it waits; status says what for
	}
	why, facts, conditions := d.vouched(r, m)
	switch {
	case m.phase == store.Deleting:
		if !d.traffic.forgettable(m) {
			return
		}
		writes := []store.Write{store.Delete(r.Key)}
		if m.Record.Token != "" {
			writes = append(writes, store.Delete(d.s.Keys.Token(m.Record.Token)))
		}
		a := d.removals.end(m, ending{
			why: why, facts: facts, conditions: append(d.common(), conditions...), writes: writes,
		})
		a.Rule = vouchRule(m)
	case d.s.Shard.Record.Hold != nil || d.s.stale() || d.spec != nil && !d.mayAct():
		// it waits; status says what for
	default: // its record ends with a later plan
		a := d.step(m, store.Deleting, vouchRule(m), effect(store.EffectDeleting), why, facts,
			func(rec *store.Instance) {
				rec.Condemned = &store.Condemned{By: r.Record.By, Why: "its machine is gone", At: d.now.UTC(), Now: true}
			})
		a.Conditions = append(append(a.Conditions, d.common()...), conditions...)
	}
}

// mayVouch reports whether nothing contradicts an operator's word that the machine of a provider
// without a coordinator is gone: no coordinator had the provider for long enough, the agent's lease
// has ended, and no call can still be under way. The order waits for that.
func (d *orders) mayVouch(m *member, from time.Time) bool {
	for _, at := range []time.Time{from, m.Calls.AbsentFrom} {
		if d.now.Before(at) {
			d.wake(at)
			return false
		}
	}
	return !m.Alive.Present() && !m.Calls.Busy && d.s.Shard.Record.Hold == nil && !d.s.stale() &&
		!d.damage.untouchable(m)
}

// vouched returns the reason, the evidence and the conditions of an operator's word.
func (d *orders) vouched(r store.Versioned[store.Request], m *member) (store.Cause, []store.Fact, []store.Condition) {
	why, facts := store.Cause{Kind: store.CauseVouchedGone, By: r.Record.By}, requested(r)
	if m.byHand() {
		return why, facts, []store.Condition{r.Unchanged()}
	}
	since, _ := d.s.Providers.withoutSince(&m.Record)
	why.Name, why.Other = m.Record.Spec.Provider, m.Record.Site
	why.For = store.Duration(d.now.Sub(since).Round(time.Second))
	facts = append(facts, streamSays(m.Instance),
		store.Fact{Kind: store.FactUnconfigured, Name: why.Name, Zone: why.Other, For: why.For})
	conditions := append([]store.Condition{r.Unchanged(), store.Absent(m.Alive.Key)}, d.s.Providers.Records...)
	return why, facts, conditions
}

// vouchRule is the rule by which an operator's word ends the record of a member.
func vouchRule(m *member) string {
	if m.byHand() {
		return "PROV-9"
	}
	return "PROV-10"
}
