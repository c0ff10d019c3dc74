package sim

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// As coordinator/term.go and disturbance.go have them.
const (
	fullPass      = 5 * time.Minute
	servedEvery   = 10 * time.Second
	vitalsSilence = 3 * time.Second
	tickLate      = 3 * time.Second
	watchLag      = 2 * time.Millisecond // most of it
	commitTakes   = 3 * time.Millisecond // at most
	soonest       = time.Millisecond     // between two plans
	// about an instance, while it plans: what happens meanwhile is in the next plan
	thinking = 20 * time.Microsecond
)

// term is one term of leadership, as coordinator/term.go has it.
type term struct {
	w       *World
	replica *replica
	fence   store.Condition
	skew    time.Duration // of its clock
	ended   bool          // nothing of it happens any more
	frozen  time.Duration // nothing of it happens before

	content  *cache.Content
	evidence *evidence.Evidence
	queues   map[queueOf]*queue
	listers  []*lister
	judged   map[string]plan.Judgment

	feed      []batch
	hearing   bool // a delivery is on its way
	blindFrom time.Duration
	blind     time.Duration // no delivery before
	relist    bool          // what comes then is a fresh list
	planning  bool          // a plan is about to be made
	plannedAt time.Duration // when
	carrying  bool
	thinks    time.Duration // how long the last plan took
	turns     plan.Turns    // of the plan that is carried out
	poked     bool
}

// batch is what one commit changed.
type batch struct {
	events []store.Event
	rev    store.Revision
}

func newTerm(w *World, r *replica, key string, created store.Revision, skew time.Duration) *term {
	t := &term{
		w: w, replica: r, fence: store.CreatedAt(key, created), skew: skew, judged: map[string]plan.Judgment{},
		content: cache.FromListing(w.keys, w.listing()),
	}
	capabilities := map[string]provider.Capabilities{}
	for _, c := range w.clouds {
		capabilities[c.cfg.Name] = c.capabilities()
		t.listers = append(t.listers, &lister{t: t, cloud: c})
	}
	t.evidence = evidence.New(evidence.Config{
		Keys: w.keys, Capabilities: capabilities, SessionTTL: w.cfg.SessionTTL, Seed: w.chance.Uint64(),
		Now: t.now, Jitter: w.chance.upTo, Wake: t.poke, Suspect: t.suspect, Validate: w.validate,
	})
	t.queues = t.newQueues()
	return t
}

func (w *World) validate(_ string, g store.Group) string {
	if w.cloud(g.Provider) == nil {
		return "provider " + g.Provider + " is not one of this coordinator's"
	}
	return ""
}

// now is the time by the leader's clock.
func (t *term) now() time.Time { return t.w.Now().Add(t.skew) }

func (t *term) begin() {
	t.evidence.Listed(t.content)
	for _, l := range t.listers {
		l.ask()
	}
	t.serve()
	t.pass()
}

// after has a step of the term happen after a time: not if it has ended by then, later if it stands
// still.
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

// hear takes up what a commit changed; the cache shows it a moment later.
func (t *term) hear(events []store.Event, rev store.Revision) {
	t.feed = append(t.feed, batch{events, rev})
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
	t.feed = nil
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
		for _, e := range b.events {
			if c, ok := t.content.Apply(t.w.keys, e); ok {
				changes = append(changes, c)
			}
		}
		t.content.Revision = b.rev
	}
	t.evidence.Changed(t.content, changes)
}

// poke has a plan made soon.
func (t *term) poke() { t.planAfter(max(soonest, t.thinks)) }

func (t *term) planAfter(d time.Duration) {
	if t.carrying {
		t.poked = true
		return
	}
	at := t.w.clock + d
	if t.planning && t.plannedAt <= at {
		return
	}
	t.planning, t.plannedAt = true, at
	t.after(d, d > max(soonest, t.thinks), func() {
		if t.planning && t.w.clock >= t.plannedAt && !t.carrying {
			t.planning = false
			t.plan()
		}
	})
}

// plan plans the dirty groups whose cache is new enough.
func (t *term) plan() {
	if t.silent() {
		t.planAfter(500 * time.Millisecond)
		return
	}
	now := t.now()
	ready := t.evidence.TakeDirty(t.content.Revision, now)
	if len(ready) == 0 {
		t.planNext()
		return
	}
	t.carrying = true // what wakes us from here on is planned after this
	s := t.evidence.Snapshot(t.content, ready)
	// a transaction whose answer is lost may happen, and be told of, when the next snapshot has
	// long been made
	if t.w.cfg.Observer.Committing != nil {
		for i := range s.Groups {
			s.Groups[i].Instances, s.Groups[i].Slots = slices.Clone(s.Groups[i].Instances),
				slices.Clone(s.Groups[i].Slots)
		}
	}
	p := plan.Compute(s, now)
	t.evidence.Tallied(p.Tallies)
	t.thinks = time.Duration(len(p.Judgments)) * thinking
	t.judge(&s, &p)
	if t.w.cfg.Observer.Planned != nil {
		t.w.cfg.Observer.Planned(t.w.Now(), &s, &p)
	}
	t.turns = plan.NewTurns(&s)
	t.carry(&s, &p, ready, plan.Together(p.Actions))
}

// silent says that nothing was heard of etcd for too long to plan anything (SAFE-3).
func (t *term) silent() bool {
	w := t.w
	return w.db.down && w.clock-w.db.downFrom > vitalsSilence || w.clock < t.blind &&
		w.clock-t.blindFrom > vitalsSilence
}

func (t *term) planNext() {
	if due := t.evidence.NextDue(); !due.IsZero() {
		t.planAfter(max(soonest, t.thinks, due.Sub(t.now())))
	}
}

// judge tells of verdicts that are others than before.
func (t *term) judge(s *plan.Snapshot, p *plan.Plan) {
	for i := range s.Groups {
		for j := range s.Groups[i].Instances {
			id := s.Groups[i].Instances[j].Record.ID
			now, before := p.Judgments[id], t.judged[id]
			if now.Verdict == before.Verdict {
				continue
			}
			t.judged[id] = now
			if t.w.cfg.Observer.Judged != nil {
				t.w.cfg.Observer.Judged(t.w.Now(), s.Groups[i].Name, id, before, now)
			}
		}
	}
}

// suspect has a provider's machines listed at once.
func (t *term) suspect(name string) {
	for _, l := range t.listers {
		if l.cloud.cfg.Name == name {
			l.ask()
		}
	}
}

// serve notes from time to time that a leader is at work.
func (t *term) serve() {
	rec := store.Served{Schema: store.Schema, At: t.now().UTC(), Replica: t.replica.id, Gaps: t.evidence.ServedGaps()}
	_, _ = t.w.commit(store.Txn{
		Conditions: []store.Condition{t.fence}, Writes: []store.Write{store.Put(t.w.keys.Served(), store.Encode(rec))},
	}) // one that fails is noted by the next
	t.after(servedEvery, true, t.serve)
}

// pass has everything planned now and then (REC-1).
func (t *term) pass() {
	t.after(fullPass, true, func() {
		t.evidence.Pass(t.content)
		t.poke()
		t.pass()
	})
}
