package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/version"
	"github.com/leasehold/leasehold/store"
)

// Agents are upgraded in waves (PROV-7): one agent first, then as many at once as the group allows,
// and only while the whole group is healthy. An agent that fails to reach the version stops the
// wave. Workloads keep running, so an upgrade uses none of the group's budgets.

// backTime is how long an agent may take, after the time for an acknowledgement has passed, to run
// its previous version again.
const backTime = 30 * time.Second

// agents upgrades the group's agents.
type agents struct {
	*draft
	wave    *store.AgentWave // as it will be recorded; nil: agents are not upgraded
	behind  []*member        // agents that the wave has yet to offer its version
	offered int              // agents with an open offer
}

// upgradingUntil returns the time until which an agent's silence does not count as a loss, because
// the agent may be trying another version and rolls back by itself. Zero means that it has no
// offer, or has reported how its offer ended.
func upgradingUntil(in *Instance) time.Time {
	u := in.Record.Upgrade
	if u == nil || u.Installed || answerTo(in) != nil {
		return time.Time{}
	}
	until := troubledSince(in).Add(u.Within.D() + backTime)
	if ends, known := in.Due[store.TimerUpgrade]; known && ends.Before(until) {
		return ends
	}
	return until
}

// answerTo returns the agent's report of how its present offer ended; nil if there is none yet.
func answerTo(in *Instance) *store.UpgradeReport {
	answer := in.Report.Record.Upgrade
	if u := in.Record.Upgrade; u == nil || answer == nil || answer.Token != u.Token {
		return nil
	}
	return answer
}

// follow records how offers ended, and collects the agents that have yet to be offered the version.
func (d *agents) follow() {
	if d.spec == nil {
		return
	}
	old := d.g.Status.Record.Agents
	wanted := d.version(old)
	if wanted == "" {
		d.withdrawOffers("")
		return
	}
	wave := store.AgentWave{Version: wanted, Since: d.now.UTC()}
	if old != nil && old.Version == wanted {
		wave = *old
	} else {
		wave.Forgiven = d.reportedBack(wanted) // by an earlier wave to the same version
	}
	wave.Done, wave.Of = 0, 0
	d.wave = &wave
	recorded := old != nil && old.Version == wanted && old.Stopped != ""
	for _, m := range d.members {
		if !m.Record.Managed || !m.phase.Fills() || !m.phase.Registered() {
			continue
		}
		wave.Of++
		switch u := m.Record.Upgrade; {
		case u != nil && u.Version == wanted && !u.Withdrawn:
			d.followOffer(m, recorded)
		case !d.due(m, wanted):
			wave.Done++
		case m.Alive.Present():
			d.behind = append(d.behind, m)
			if why := d.fellBack(m, wanted); why != "" {
				d.stopWave(m, recorded, why)
			}
		}
	}
	d.withdrawOffers(wanted)
	d.tellWave(old)
}

// blockStopped records that an upgrade has stopped.
func (d *agents) blockStopped() {
	if w := d.wave; w != nil && w.Stopped != "" {
		d.block("PROV-7", task{work: store.WorkUpgrade}, store.BlockedByUpgradeStopped,
			store.BlockedFacts{Name: w.Version, Other: w.Stopped, Text: w.Why})
	}
}

// version returns the version that agents are to run; "" if they are not upgraded. A version that
// is no longer served stays wanted while a coordinator is away, since that coordinator may serve
// it.
func (d *agents) version(old *store.AgentWave) string {
	wanted := d.spec.Agent.Version
	if d.spec.Deleting || d.spec.Stopped || wanted != store.AgentAuto {
		if d.spec.Deleting || d.spec.Stopped {
			return ""
		}
		return wanted
	}
	latest := ""
	if n := len(d.s.Agents); n > 0 {
		latest = d.s.Agents[n-1].Version
	}
	if old != nil && !d.s.NoneAway && (latest == "" || version.Later(old.Version, latest)) {
		return old.Version
	}
	if latest == "" {
		d.block("PROV-7", task{work: store.WorkUpgrade}, store.BlockedByNoRelease,
			store.BlockedFacts{Name: store.AgentAuto})
	}
	return latest
}

// due reports whether a member's agent needs a version. An agent with a later version keeps it,
// unless the group asks for a downgrade.
func (d *agents) due(m *member, wanted string) bool {
	own := m.Alive.Record.Agent
	if !m.Alive.Present() {
		own = m.Report.Record.Agent
	}
	down := d.spec.Agent.Downgrade && d.spec.Agent.Version != store.AgentAuto
	return own != wanted && (down || !version.Later(own, wanted))
}

// followOffer acts on a member's answer to its offer, if there is one.
func (d *agents) followOffer(m *member, recorded bool) {
	u, answer := m.Record.Upgrade, answerTo(m.Instance)
	ends := d.ends(m.Due, store.TimerUpgrade, &u.Timer)
	switch {
	case answer != nil && answer.Result == store.UpgradeBack:
		d.stopWave(m, recorded, "it went back: "+answer.Why)
	case answer != nil && answer.Result != store.UpgradeInstalled:
		d.stopWave(m, recorded, answer.Why)
	case m.failing():
		d.stopWave(m, recorded, "it has failed meanwhile: it is "+string(m.judgment.Verdict))
	case (answer != nil || u.Installed) && d.due(m, u.Version):
		d.stopWave(m, recorded, "it says that it is installed, and is of version "+m.Report.Record.Agent)
	case answer != nil && !u.Installed:
		d.offered++
		d.beginProof(m)
		return
	case u.Installed && d.versionProved(m, ends):
		d.wave.Done++
		d.wave.Proved = true
		d.clearOffer(m, named(store.EffectAgentUpgraded, u.Version),
			store.Cause{Kind: store.CauseAgentUpgraded, Name: u.Version})
		return
	case u.Installed && !d.now.Before(ends):
		d.stopWave(m, recorded, fmt.Sprintf("it is installed, and was not connected and healthy for %s on end", u.Within))
	case !d.now.Before(ends):
		d.stopWave(m, recorded, fmt.Sprintf("its agent gave no answer within %s", u.Timer.For))
	default:
		d.offered++
		d.wake(ends)
		return
	}
	// otherwise, if this leader ends now, the wave would continue
	if recorded || m.Record.Drilled(d.now) {
		why := store.Cause{Kind: store.CauseAgentStays, Name: u.Version, Text: d.wave.Why}
		if d.wave.Stopped != m.ID() {
			why.Text = ""
		}
		what := effect(store.EffectAgentStays)
		if u.Installed {
			what = named(store.EffectAgentUnproved, u.Version)
		}
		d.clearOffer(m, what, why)
	}
}

// forgive records that a member's report of a rollback must not stop the wave later either.
func (d *agents) forgive(m *member) {
	r := m.Report.Record.Upgrade
	if r != nil && r.Version == d.wave.Version && r.Result == store.UpgradeBack &&
		!slices.Contains(d.wave.Forgiven, forgivenAs(m, r)) {
		d.wave.Forgiven = append(slices.Clone(d.wave.Forgiven), forgivenAs(m, r)) // not in the cached status
	}
}

// reportedBack returns the offers of a version that agents report to have rolled back.
func (d *agents) reportedBack(version string) (all []string) {
	for _, m := range d.members {
		if r := m.Report.Record.Upgrade; r != nil && r.Version == version && r.Result == store.UpgradeBack {
			all = append(all, forgivenAs(m, r))
		}
	}
	return all
}

// forgivenAs returns the key under which a report is recorded as forgiven. A report without a token
// is recorded by its instance, so that the report of another instance still counts.
func forgivenAs(m *member, r *store.UpgradeReport) string { return cmp.Or(r.Token, m.ID()) }

// fellBack returns why a member's agent no longer runs a version that it had reached. It returns ""
// if the agent still runs it, or if an operator has ordered another try since.
func (d *agents) fellBack(m *member, wanted string) string {
	r := m.Report.Record.Upgrade
	if m.Record.Upgrade != nil || r == nil || r.Version != wanted || r.Result != store.UpgradeBack ||
		slices.Contains(d.wave.Forgiven, forgivenAs(m, r)) {
		return ""
	}
	return "it went back: " + r.Why
}

// beginProof records that a member's agent runs the version. The agent proves the version by
// staying connected and healthy for a while: it may acknowledge the version and crash afterwards.
func (d *agents) beginProof(m *member) {
	if m.touched {
		return
	}
	u := *m.Record.Upgrade
	u.Installed, u.Timer = true, d.timer(u.Within.D()+store.AgentFetchTime)
	d.step(m, m.phase, "PROV-7", named(store.EffectAgentInstalled, u.Version),
		store.Cause{Kind: store.CauseAgentUpgraded, Name: u.Version}, m.facts(),
		func(rec *store.Instance) { rec.Upgrade = &u })
}

// versionProved reports whether a member's agent has proved its version: since the installation it
// has been connected and healthy for as long as an acknowledgement may take.
func (d *agents) versionProved(m *member, ends time.Time) bool {
	if !m.healthy() || !m.Alive.Present() || m.Alive.Record.State != store.StreamOpen {
		return false
	}
	u := m.Record.Upgrade
	from := ends.Add(-u.Timer.For.D())
	for _, since := range []time.Time{m.StreamSince, m.HealthySince} {
		if since.After(from) {
			from = since
		}
	}
	at := from.Add(u.Within.D())
	d.wake(at)
	return !d.now.Before(at)
}

// stopWave stops further offers of the version, unless a drill caused this failure: failures by
// drills have no consequences (DAY-6).
func (d *agents) stopWave(m *member, recorded bool, why string) {
	if m.Record.Drilled(d.now) {
		d.forgive(m)
		return
	}
	if recorded || d.wave.Stopped != "" {
		return
	}
	d.wave.Stopped, d.wave.Why, d.wave.At = m.ID(), why, d.now.UTC()
	d.tell("PROV-7", effect(store.EffectUpgradeStopped), store.Cause{
		Kind: store.CauseAgentStays, Name: d.wave.Version, Text: m.ID() + ": " + why,
	})
}

// withdrawOffers withdraws offers that are no longer wanted. A silent agent may be upgrading: its
// offer stays until the agent is back. Any other agent may begin before the withdrawal reaches it:
// the offer is no longer sent, and the record keeps it until the agent can no longer have begun.
func (d *agents) withdrawOffers(wanted string) {
	stopped := d.wave != nil && d.wave.Stopped != ""
	for _, m := range d.members {
		u := m.Record.Upgrade
		if u != nil && u.Withdrawn {
			d.endWithdrawn(m)
			continue
		}
		if u == nil || m.touched || m.gone() || u.Version == wanted && !stopped || !m.Alive.Present() ||
			m.Alive.Record.State != store.StreamOpen || d.wave != nil && d.wave.Stopped == m.ID() {
			continue
		}
		what := effect(store.EffectOfferWithdrawn)
		why := store.Cause{Kind: store.CauseAgentLeft, Name: u.Version}
		if u.Installed || answerTo(m.Instance) != nil {
			d.clearOffer(m, what, why)
			continue
		}
		d.step(m, m.phase, "PROV-7", what, why, m.facts(), func(rec *store.Instance) {
			left := *u
			left.Withdrawn = true
			rec.Upgrade = &left
		})
	}
}

// endWithdrawn removes a withdrawn offer once its agent has reported its outcome, has sent any
// later report, or the offer has expired.
func (d *agents) endWithdrawn(m *member) {
	u := m.Record.Upgrade
	open := m.Alive.Present() && m.Alive.Record.State == store.StreamOpen
	ends := d.ends(m.Due, store.TimerUpgrade, &u.Timer)
	if m.gone() || d.now.Before(ends) && answerTo(m.Instance) == nil && !(open && m.Report.Modified > m.Modified) {
		d.wake(ends)
		return
	}
	d.clearOffer(m, effect(store.EffectOfferOver), store.Cause{Kind: store.CauseAgentLeft, Name: u.Version})
}

func (d *agents) clearOffer(m *member, what store.Effect, why store.Cause) {
	if !m.touched {
		d.step(m, m.phase, "PROV-7", what, why, m.facts(), func(rec *store.Instance) { rec.Upgrade = nil })
	}
}

// tellWave adds journal entries for the start and the completion of a wave.
func (d *agents) tellWave(old *store.AgentWave) {
	w := d.wave
	same := old != nil && old.Version == w.Version
	why := store.Cause{Kind: store.CauseAgentWanted, Name: w.Version}
	if !same && w.Done < w.Of {
		d.tell("PROV-7", effect(store.EffectUpgradeBegun), why)
	}
	if same && old.Done < old.Of && w.Done == w.Of && w.Of > 0 {
		d.tell("PROV-7", effect(store.EffectUpgradeDone), store.Cause{Kind: store.CauseUpdated, Count: w.Done, Limit: w.Of})
	}
}

// offerNext offers the version to the next agents.
func (d *agents) offerNext() {
	w, what := d.wave, task{work: store.WorkUpgrade}
	if w == nil || w.Stopped != "" || len(d.behind) == 0 {
		return
	}
	most := 1
	if w.Proved {
		most = max(1, d.spec.Agent.AtOnce.Up(d.spec.Size))
	}
	if d.offered >= most || d.waits(what, d.offerBlocker()) {
		return
	}
	if d.waits(what, d.windows.blocker(store.PlannedRoll)) {
		return
	}
	if d.storms.storm != nil || d.healing.breaker != nil || d.roll.rollout != nil || d.now.Before(d.s.GraceEnd) ||
		!d.budget.allWell() {
		if d.wake(d.s.GraceEnd); d.offered == 0 {
			var of store.BlockedFacts
			if d.now.Before(d.s.GraceEnd) {
				of.Opens = d.s.GraceEnd.UTC().Round(0) // as it is read back
			}
			d.block("PROV-7", what, store.BlockedByUnsettled, of)
		}
		return
	}
	for _, m := range d.behind {
		switch {
		case d.offered >= most:
			return
		case m.Record.Protected != "":
			d.block("REC-13", m.task(store.WorkUpgrade), store.BlockedByProtection, d.protectedUntil(m))
		case m.Record.Drilled(d.now): // its agent may be about to be killed (DAY-6)
			d.wake(m.Record.Drill.At.Add(store.DrillTime))
		case m.touched || !m.healthy() || m.Alive.Record.State != store.StreamOpen:
		default:
			d.offer(m)
		}
	}
}

// offerBlocker returns why coordinators cannot offer the version: they do not serve it, or are
// older than it; nil if they can.
func (d *agents) offerBlocker() *blocker {
	for _, v := range d.s.Agents {
		if v.Version != d.wave.Version {
			continue
		}
		if v.Before == "" {
			return nil
		}
		return blocked("PROV-7", store.BlockedByOldCoordinator,
			store.BlockedFacts{Name: v.Version, Other: v.Before, Text: v.BeforeOf})
	}
	return blocked("PROV-7", store.BlockedByNoRelease, store.BlockedFacts{Name: d.wave.Version})
}

func (d *agents) offer(m *member) {
	within := store.Duration(d.spec.Agent.Limit())
	u := store.AgentUpgrade{
		Version: d.wave.Version, Token: d.unique("agent " + m.ID()), Within: within,
		Downgrade: d.spec.Agent.Downgrade && d.spec.Agent.Version != store.AgentAuto,
		Timer:     d.timer(within.D() + store.AgentFetchTime),
	}
	a := d.step(m, m.phase, "PROV-7", named(store.EffectAgentOffered, u.Version),
		store.Cause{Kind: store.CauseAgentWanted, Name: u.Version, Text: m.Alive.Record.Agent}, m.facts(),
		func(rec *store.Instance) { rec.Upgrade = &u })
	a.Conditions = append(a.Conditions, d.common()...)
	d.offered++
}

// retry continues a stopped upgrade on an operator's order. It returns false if no upgrade has
// stopped. The order stays if it also concerns a roll or slots, which are next.
func (d *agents) retry(r store.Versioned[store.Request]) bool {
	if d.wave == nil || d.wave.Stopped == "" || d.g.Status.Record.Agents == nil ||
		d.g.Status.Record.Agents.Stopped == "" {
		return false
	}
	for _, m := range d.members {
		if u := m.Record.Upgrade; u != nil && u.Version == d.wave.Version && !u.Withdrawn && !m.gone() {
			return true // its end is recorded first
		}
	}
	d.wave.Stopped, d.wave.Why, d.wave.At, d.wave.Proved = "", "", time.Time{}, false
	d.wave.Forgiven = d.reportedBack(d.wave.Version)
	d.tell("PROV-7", effect(store.EffectUpgradeRetried), orderedBy(r.Record.By))
	if !d.orders.mayRetry(d.order) {
		d.orders.settled = append(d.orders.settled, r)
	}
	return true
}
