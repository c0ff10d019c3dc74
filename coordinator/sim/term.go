package sim

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

const (
	watchLag    = 2 * time.Millisecond // most of it
	commitTakes = 3 * time.Millisecond // at most
	soonest     = time.Millisecond     // between two plans
	// planning time per instance: changes in that time are in the next plan
	thinking = 20 * time.Microsecond
)

// term is one term of leadership: it drives leader.Leader in virtual time, as coordinator/term.go
// does on a real clock.
type term struct {
	w       *World
	replica *replica
	fence   store.Fence
	skew    time.Duration // of its clock
	ended   bool          // nothing of it takes effect any longer
	frozen  time.Duration // it does nothing before

	content  *cache.Content
	evidence *evidence.Evidence
	leader   *leader.Leader
	planner  plan.Planner
	judged   map[string]plan.Judgment

	feed      []batch
	reports   int  // reports in it
	hearing   bool // a delivery is under way
	blindFrom time.Duration
	blind     time.Duration // no delivery before
	relist    bool          // what arrives then is a new listing
	thinks    time.Duration // duration of the last plan
	ticks     alarm         // the next step of the leader, for calls and Lists
	wakes     alarm         // the next step, for a plan
}

// batch is what one commit changed: some keys, or the report of an agent. Loads are as many
// commits.
type batch struct {
	events []change
	report *store.Versioned[store.Report]
	loads  *cache.Loads
	rev    store.Revision
}

// change is one change of a key, with the status if that is the key's record and has no value.
type change struct {
	store.Event
	status *store.Versioned[store.Status]
}

func newTerm(w *World, r *replica, key string, created store.Revision, skew time.Duration) *term {
	t := &term{
		w: w, replica: r, fence: store.Fence{Key: key, Created: created}, skew: skew,
		judged:  map[string]plan.Judgment{},
		planner: plan.Planner{Unencoded: w.cfg.Observer.Committing == nil}, // which looks at what is written
		content: cache.FromListing(w.keys, w.listing()),
	}
	capabilities := map[string]provider.Capabilities{}
	for _, c := range w.clouds {
		capabilities[c.cfg.Name] = c.Capabilities()
	}
	t.evidence = evidence.New(evidence.Config{
		Keys: w.keys, Capabilities: capabilities, Balancers: w.balancerCapabilities(), SessionTTL: w.cfg.SessionTTL,
		Seed: w.chance.Uint64(),
		Now:  t.now, Jitter: w.chance.upTo, Wake: t.poke, Suspect: t.suspect, Validate: w.validate,
	})
	t.leader = leader.New(leader.Config{
		Keys: w.keys, Fence: t.fence, Evidence: t.evidence, Capabilities: capabilities,
		Balancers: w.balancerCapabilities(), Sources: w.sources(),
		Settings: t.content.Shard.Record.Settings,
		Began:    t.now(), Jitter: w.chance.upTo,
	})
	return t
}

// sources returns the settings of the external metrics.
func (w *World) sources() map[string]query.Settings {
	all := map[string]query.Settings{}
	for name := range w.cfg.Sources {
		all[name] = query.Settings{
			Every: query.DefaultEvery, Timeout: query.DefaultTimeout, PerGroup: w.cfg.PerGroup,
		}
	}
	return all
}

func (w *World) validate(_ string, g store.Group) string {
	if w.cloud(g.Provider) == nil {
		return "provider " + g.Provider + " is not one of this coordinator's"
	}
	return ""
}

// now returns the time by the leader's clock.
func (t *term) now() time.Time { return t.w.Now().Add(t.skew) }

func (t *term) begin() {
	t.evidence.Listed(t.content)
	t.serve()
	t.schedule()
}

// after schedules a step of the term: dropped if the term has ended by then, delayed if it is
// frozen.
func (t *term) after(d time.Duration, routine bool, do func()) {
	t.w.schedule(d, routine, func() {
		switch {
		case t.ended:
		case t.w.clock < t.frozen:
			t.after(t.frozen-t.w.clock, routine, do)
		default:
			do()
		}
	})
}

// committed takes the changes of a commit; the cache shows them a moment later.
func (t *term) committed(b batch) {
	t.feed = append(t.feed, b)
	if b.report != nil {
		t.reports++
	}
	t.deliverAfter(t.w.chance.upTo(watchLag))
}

func (t *term) deliverAfter(d time.Duration) {
	if t.hearing {
		return
	}
	t.hearing = true
	t.after(max(d, t.blind-t.w.clock), false, t.deliver)
}

func (t *term) deliver() {
	t.hearing = false
	if t.w.clock < t.blind || t.w.db.down {
		t.deliverAfter(max(t.blind-t.w.clock, 100*time.Millisecond))
		return
	}
	feed := t.feed
	t.feed, t.reports = nil, 0
	if t.relist {
		t.relist = false
		old := t.content
		t.content = cache.FromListing(t.w.keys, t.w.listing())
		t.content.Inherit(t.w.keys, old, 0)
		t.evidence.Listed(t.content)
		return
	}
	var changes []cache.Change
	for _, b := range feed {
		if b.report != nil {
			changes = append(changes, t.content.ApplyReport(*b.report))
		}
		if l := b.loads; l != nil {
			changes = append(changes, cache.Change{Kind: store.KindReports, Group: l.Group, Same: true, Loads: l})
			b.rev = l.Revisions[len(l.Revisions)-1]
		}
		for _, e := range b.events {
			if e.status != nil {
				changes = append(changes, t.content.ApplyStatus(*e.status))
			} else if c, ok := t.content.Apply(t.w.keys, e.Event); ok {
				changes = append(changes, c)
			}
		}
		t.content.Revision = max(t.content.Revision, b.rev)
	}
	t.evidence.Changed(t.content, changes)
}

// alarm is the time of the next event of a kind, which happens only once.
type alarm struct {
	set bool
	at  time.Duration
}

// ring schedules an event for the leader, unless it is due earlier already.
func (t *term) ring(a *alarm, d time.Duration, routine bool, e leader.Event) {
	at := t.w.clock + d
	if a.set && a.at <= at {
		return
	}
	*a = alarm{set: true, at: at}
	t.after(d, routine, func() {
		if a.set && t.w.clock >= a.at {
			a.set = false
			t.step(e)
		}
	})
}

// poke schedules a plan soon.
func (t *term) poke() { t.wakeAfter(0) }

func (t *term) wakeAfter(d time.Duration) {
	soon := max(soonest, t.thinks)
	t.ring(&t.wakes, max(soon, d), d > soon, leader.Wake{})
}

// schedule schedules the leader's next step at the time that it asks for.
func (t *term) schedule() {
	now := t.now()
	tick, wake := t.leader.NextStep(now)
	t.ring(&t.ticks, max(time.Microsecond, tick.Sub(now)), !t.leader.Pressing(), leader.Tick{})
	if !wake.IsZero() {
		t.wakeAfter(wake.Sub(now))
	}
}

// step passes an event to the leader, and performs its commands.
func (t *term) step(e leader.Event) {
	if t.ended {
		return
	}
	for _, c := range t.leader.Step(t.now(), t.view(), e) {
		t.perform(c)
	}
	if !t.ended {
		t.schedule()
	}
}

func (t *term) view() leader.View {
	heard := t.w.clock
	if t.w.db.down {
		heard = min(heard, t.w.db.downFrom)
	}
	if t.w.clock < t.blind {
		heard = min(heard, t.blindFrom)
	}
	return leader.View{Content: t.content, Heard: t.w.cfg.Begins.Add(heard + t.skew)}
}

// compute makes a plan.
func (t *term) compute(c leader.Compute) plan.Plan {
	s := c.Snapshot
	// a transaction whose answer is lost may take effect, and be reported, long after the next
	// snapshot
	if t.w.cfg.Observer.Committing != nil {
		for i := range s.Groups {
			s.Groups[i].Instances, s.Groups[i].Slots = slices.Clone(s.Groups[i].Instances),
				slices.Clone(s.Groups[i].Slots)
		}
	}
	planner := &t.planner
	if t.w.cfg.Plain {
		planner = new(plan.Planner)
	}
	p := planner.Compute(*s, t.now())
	t.thinks = time.Duration(p.Judgments.Len()) * thinking
	t.judge(s, &p)
	if t.w.cfg.Observer.Planned != nil {
		t.w.cfg.Observer.Planned(t.w.Now(), s, &p)
	}
	return p
}

// judge reports changed verdicts to the observer.
func (t *term) judge(s *plan.Snapshot, p *plan.Plan) {
	for i := range s.Groups {
		if p.Judgments.Stand(i) {
			continue
		}
		for j := range s.Groups[i].Instances {
			id := s.Groups[i].Instances[j].Record.ID
			now, before := p.Judgments.At(i, j), t.judged[id]
			if now.Verdict == before.Verdict {
				continue
			}
			t.judged[id] = *now
			if t.w.cfg.Observer.Judged != nil {
				t.w.cfg.Observer.Judged(t.w.Now(), s.Groups[i].Name, id, before, *now)
			}
		}
	}
}

// suspect lists a provider's machines at once.
func (t *term) suspect(name string) {
	t.after(0, false, func() { t.step(leader.ListRequested{Provider: name}) })
}

// serve records at intervals that a leader is at work.
func (t *term) serve() {
	rec := store.Served{Schema: store.Schema, At: t.now().UTC(), Replica: t.replica.id, Gaps: t.evidence.ServedGaps()}
	_, _ = t.w.commit(store.Txn{
		Conditions: []store.Condition{t.fence.Condition()},
		Writes:     []store.Write{store.Put(t.w.keys.Served(), store.Encode(rec))},
	}, nil) // the next one repairs a failure
	t.after(store.ServedEvery, true, t.serve)
}
