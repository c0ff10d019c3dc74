package plan

import (
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// A storm is so many losses at once that their cause is hardly the machines: a network, a switch,
// an etcd. Nothing that is merely lost is replaced in it; what the provider calls dead is (SAFE-2).

// What makes a storm of a whole shard.
const (
	shardStormMin     = 5
	shardStormPercent = 20
	shardStormGroups  = 2

	// stormRecheck is how often a group in a storm is planned again: the rest of the shard may have
	// calmed.
	stormRecheck = 5 * time.Second
)

// storms counts losses, and holds healing back in a storm.
type storms struct {
	*draft
	storm *store.Storm // as it will be recorded
	tally Tally
}

// Plus adds up losses, Minus takes them off again.
func (t Tally) Plus(o Tally) Tally {
	return Tally{Lost: t.Lost + o.Lost, Now: t.Now + o.Now, Of: t.Of + o.Of, Groups: t.Groups + o.Groups}
}

// Minus undoes Plus.
func (t Tally) Minus(o Tally) Tally {
	return t.Plus(Tally{Lost: -o.Lost, Now: -o.Now, Of: -o.Of, Groups: -o.Groups})
}

// Storm reports whether so many are lost at once, in several groups, that it is a storm of the
// shard.
func (t Tally) Storm() bool {
	return t.Groups >= shardStormGroups && reaches(t.Lost, t.Of, shardStormMin, shardStormPercent)
}

// Calm reports whether so few are lost now that a storm of the shard may end.
func (t Tally) Calm() bool { return !reaches(t.Now, t.Of, shardStormMin, shardStormPercent) }

func reaches(lost, of, least, percent int) bool { return lost >= least && lost*100 >= percent*of }

// missed reports whether a member is lost, or called dead for its absence alone. One that stops
// itself without a lease is as good as lost when it is found down, confirmed or not:
// what it could not reach may be back in a moment (SAFE-9).
func (m *member) missed() bool {
	fences := m.Record.Spec.Report.OnLeaseLost.Fences()
	switch m.judgment.Verdict {
	case store.Lost:
		return true
	case store.Dead:
		return m.judgment.Absent || fences
	case store.Suspect:
		return fences && m.seemsDown()
	default:
		return false
	}
}

// awaitsGrace reports whether a member's lease has surely ended, and nothing but the grace keeps
// it from being judged lost (SAFE-1).
func (m *member) awaitsGrace() bool {
	return m.judgment.Verdict == store.Suspect && m.judgment.Cause.Kind == store.CauseGrace
}

// lostSince returns since when a member has been missed, or its stream in trouble.
func (m *member) lostSince() time.Time {
	switch {
	case !m.Alive.Present():
		return m.AliveGone
	case m.Alive.Record.State == store.StreamLost || m.Alive.Record.State == store.StreamOverdue:
		return m.StreamSince
	default:
		return m.Sighting.Since // only its provider has said so
	}
}

// silent reports whether a member is suspect since its lease or its stream has ended without a
// goodbye.
func (m *member) silent() bool {
	if m.judgment.Verdict != store.Suspect {
		return false
	}
	state := m.Alive.Record.State
	return !m.Alive.Present() || state == store.StreamLost || state == store.StreamOverdue
}

// lossCounts is from when on a loss counts for storm.window. A grace does not count as time: what
// was lost in it counts from its end, when it could first be judged so.
func (d *storms) lossCounts(m *member) time.Time {
	since := m.lostSince()
	if m.judgment.Verdict == store.Lost || m.awaitsGrace() {
		return store.Later(since, d.s.GraceEnd)
	}
	return since
}

// countLosses counts what a storm is judged by: which members are lost now, or would be but for the
// grace, and which were lost or fell silent within storm.window. A long grace may outlast that
// window: without those that it holds back, the few that are still silent at its end would be
// replaced one by one. An instance that was lost and is replaced already counts, too: else those
// that are seen first would hide that they were the first of many.
func (d *storms) countLosses() {
	if d.spec == nil {
		return
	}
	from := d.now.Add(-d.spec.Storm.Window.D())
	var losing map[*slot]bool
	for _, m := range d.members {
		if !m.Record.Managed || !m.phase.Registered() || m.Record.Drilled(d.now) {
			continue
		}
		d.tally.Of++
		missed := m.missed()
		if missed || m.awaitsGrace() {
			d.tally.Now++
		}
		if since := d.lossCounts(m); (missed || m.silent()) && since.After(from) {
			d.tally.Lost++
			if losing == nil {
				losing = map[*slot]bool{}
			}
			losing[m.slot] = true
			d.wake(since.Add(d.spec.Storm.Window.D()))
		}
	}
	d.countReplaced(from, losing)
	if d.tally.Lost > 0 {
		d.tally.Groups = 1
	}
}

// countReplaced adds the slots whose instance was lost and is replaced already, by what the slots'
// records say: so a new leader knows of them. A slot counts once, however often it was lost.
func (d *storms) countReplaced(from time.Time, losing map[*slot]bool) {
	for i := range d.g.Slots {
		rec := &d.g.Slots[i].Record // as recorded: a new template takes nothing back (FLAP-7)
		sl := d.slots.get(rec.Number)
		if len(rec.Failures) == 0 || losing[sl] {
			continue
		}
		var last time.Time
		for _, f := range rec.Failures {
			here := slices.ContainsFunc(sl.members,
				func(m *member) bool { return m.ID() == f.Instance && m.phase.Registered() })
			// else a clock was wrong
			if !here && f.LostSince.After(last) && f.LostSince.Before(d.now.Add(time.Minute)) {
				last = f.LostSince
			}
		}
		if !last.After(from) {
			continue
		}
		d.tally.Lost++
		d.wake(last.Add(d.spec.Storm.Window.D()))
		if !slices.ContainsFunc(sl.members, func(m *member) bool { return m.phase.Registered() }) {
			d.tally.Of++
		}
	}
}

// follow decides whether there is a storm, and what to record of it. shard is the losses of
// all groups.
func (d *storms) follow(shard Tally) {
	if d.spec == nil {
		return
	}
	spec := d.spec.Storm
	if old := d.g.Status.Record.Storm; old != nil {
		s := *old
		d.storm = &s
	}
	ofShard := shard.Storm()
	ofGroup := reaches(d.tally.Lost, d.tally.Of, spec.Min, spec.Percent)
	if d.tally.Now > 0 && (ofGroup || ofShard) && (d.storm == nil || d.storm.Ended != "" && d.storm.By == "") {
		d.begin(ofGroup, shard)
	}
	if d.storm == nil {
		return
	}
	if d.storm.Ended != "" {
		d.afterStorm()
		return
	}
	d.wake(d.now.Add(stormRecheck))
	if d.tally.Now > d.storm.Lost {
		d.storm.Lost, d.storm.Of = d.tally.Now, d.tally.Of
	}
	calm := !reaches(d.tally.Now, d.tally.Of, spec.Min, spec.Percent)
	if d.storm.Shard {
		calm = calm && shard.Calm()
	}
	switch {
	case !calm:
		d.storm.Calm = nil
	case d.storm.Calm == nil:
		t := d.timer(spec.Cooldown.D())
		d.storm.Calm = &t
	case !d.now.Before(d.ends(d.g.Due, store.TimerStorm, d.storm.Calm)):
		d.end(store.Cause{Kind: store.CauseFewLost, For: spec.Cooldown})
	}
}

func (d *storms) begin(ofGroup bool, shard Tally) {
	d.storm = &store.Storm{Since: d.now.UTC(), Lost: d.tally.Now, Of: d.tally.Of, Shard: !ofGroup}
	why := store.Cause{
		Kind: store.CauseManyLost, Count: d.tally.Lost, Limit: d.tally.Of, For: d.spec.Storm.Window,
	}
	if !ofGroup {
		why = store.Cause{
			Kind: store.CauseManyLostInShard, Count: shard.Lost, Limit: shard.Of, Name: strconv.Itoa(shard.Groups),
		}
	}
	if after := d.spec.Storm.ProbeAfter.D(); after > 0 {
		t := d.timer(after)
		d.storm.NextProbe = &t
	}
	d.tell("SAFE-2", effect(store.EffectStorm), why)
}

// end ends a storm: what is still lost is replaced bit by bit.
func (d *storms) end(how store.Cause) {
	t := d.timer(d.spec.Storm.Cooldown.D())
	d.storm.EndedCause, d.storm.Ended = reason.Recorded(how), reason.Short(how)
	d.storm.By, d.storm.Resume = how.By, &t
	d.storm.Calm, d.storm.NextProbe, d.storm.Probe = nil, nil, ""
	d.tell("SAFE-2", effect(store.EffectStormOver), how)
}

// afterStorm forgets a storm once everything that it left is taken up. A storm that an operator has
// ended is remembered for as long as there are as many losses: otherwise it would begin again at
// once.
func (d *storms) afterStorm() {
	if due := d.ends(d.g.Due, store.TimerResume, d.storm.Resume); d.now.Before(due) {
		d.wake(due)
		return
	}
	if d.storm.By != "" && reaches(d.tally.Now, d.tally.Of, d.spec.Storm.Min, d.spec.Storm.Percent) {
		d.wake(d.now.Add(stormRecheck))
		return
	}
	d.storm = nil
}

// holdBack makes the replacement of a lost member wait for the end of a storm, and chooses the
// probe meanwhile. It returns false if no storm forbids the replacement.
func (d *storms) holdBack(m *member) bool {
	b := d.blocker(m)
	if b != nil && b.why == store.BlockedByStorm {
		d.chooseProbe(m)
	}
	return d.waits(m.task(store.WorkReplace), b)
}

// blocker returns the storm that forbids replacing a member; nil if none does.
func (d *storms) blocker(m *member) *blocker {
	if d.storm == nil || !m.missed() {
		return nil
	}
	if d.storm.Ended != "" {
		if d.storm.Resume == nil {
			return nil
		}
		length := d.storm.Resume.For.D()
		left := d.ends(d.g.Due, store.TimerResume, d.storm.Resume).Sub(d.now)
		turn := time.Duration(share(m.ID()) * float64(length))
		if gone := length - left; gone < turn {
			at := d.now.Add(turn - gone)
			d.wake(at)
			return blocked("SAFE-2", store.BlockedByStormEnd, store.BlockedFacts{For: d.storm.Resume.For})
		}
		return nil
	}
	if d.isProbe(m) {
		return nil
	}
	return blocked("SAFE-2", store.BlockedByStorm,
		store.BlockedFacts{Count: d.tally.Now, Limit: d.tally.Of, For: d.spec.Storm.Cooldown})
}

// isProbe reports whether a lost member is the probe: the one that is replaced to see whether that
// helps. It is not before the status records it: if that write failed, the next plan could choose
// another one.
func (d *storms) isProbe(m *member) bool {
	recorded := d.g.Status.Record.Storm
	return d.storm.Probe == m.ID() && recorded != nil && recorded.Probe == m.ID()
}

// chooseProbe makes a lost member the probe if one is due. There is one at a time: the next one
// follows the last, so that no group stays frozen forever.
func (d *storms) chooseProbe(m *member) {
	if d.storm.NextProbe == nil || d.storm.Probe == m.ID() {
		return
	}
	if due := d.ends(d.g.Due, store.TimerProbe, d.storm.NextProbe); d.now.Before(due) {
		d.wake(due)
		return
	}
	if d.probeUnderWay() {
		return
	}
	d.storm.Probe = m.ID()
	d.tell("SAFE-2", store.Effect{Kind: store.EffectProbe, Instance: m.ID()},
		store.Cause{Kind: store.CauseStormLasts, For: d.spec.Storm.ProbeAfter})
}

// probeUnderWay reports whether the last probe has proved nothing yet: it is neither gone nor
// healthy, or nothing healthy has taken its place.
func (d *storms) probeUnderWay() bool {
	last := d.storm.Probe
	if last == "" {
		return false
	}
	if m := d.find(last); m != nil && !m.gone() && !m.healthy() {
		return true // it is still there, or on its way up after a restart
	}
	for _, m := range d.members {
		if m.Record.Replaces == last && m.Record.Managed && !m.gone() && !m.healthy() {
			return true
		}
	}
	for _, sl := range d.order {
		if v := sl.Record.Vacated; v != nil && v.Instance == last {
			return true
		}
	}
	return false
}

// tell adds a journal entry to the transaction that writes the status.
func (d *draft) tell(rule string, what store.Effect, why store.Cause) {
	d.notes = append(d.notes, Note{Rule: rule, Effect: what, Cause: why, Counterfactual: counterfactual(rule, "")})
}
