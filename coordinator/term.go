package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Why a term ends before its replica does.
var (
	errDeposed = errors.New("another replica leads: our key in the election is gone")
)

const (
	fullPass  = 5 * time.Minute // REC-1
	passLate  = time.Second     // a plan that takes this long is logged
	tickEvery = time.Second
	tickLate  = 3 * time.Second // a tick this late means that this process, or the machine, stood still
)

// term is one term of leadership.
type term struct {
	r        *Replica
	fence    store.Fence
	lease    store.LeaseID // of the replica's session
	shard    store.Shard
	log      *slog.Logger
	evidence *evidence.Evidence
	queues   map[queueOf]*queue
	listers  map[string]*lister
	pokes    chan struct{}
	kept     atomic.Int64 // age of the oldest revision that etcd keeps, as a time.Duration

	verdicts    map[string]map[string]plan.Judgment // by group and instance, as last written to the journal
	troubles    map[string]time.Time                // instances in trouble, and since when
	held        map[string]map[string]bool          // by group: held work that was logged
	badSettings string                              // refused settings of the shard, as last written to the journal
}

func newTerm(r *Replica, fence store.Fence, lease store.LeaseID, shard store.Shard) *term {
	t := &term{
		r: r, fence: fence, lease: lease, shard: shard, log: r.log.With("fence", int64(fence.Created)),
		pokes: make(chan struct{}, 1), verdicts: map[string]map[string]plan.Judgment{},
		troubles: map[string]time.Time{}, held: map[string]map[string]bool{}, listers: map[string]*lister{},
	}
	capabilities := map[string]provider.Capabilities{}
	for name, p := range r.deps.Providers {
		capabilities[name] = p.Capabilities()
		t.listers[name] = newLister(t, name, p)
	}
	t.evidence = evidence.New(evidence.Config{
		Keys: r.keys, Capabilities: capabilities, SessionTTL: r.cfg.SessionTTL, Seed: rand.Uint64(),
		Now: time.Now, Jitter: func(most time.Duration) time.Duration { return rand.N(most + 1) },
		Wake: t.poke, Suspect: t.suspect, Validate: r.validate,
	})
	t.queues = t.newQueues()
	return t
}

// validate returns what a group's provider has against its spec, or "".
func (r *Replica) validate(_ string, g store.Group) string {
	p, known := r.deps.Providers[g.Provider]
	if !known {
		return fmt.Sprintf("provider %q is not one of this coordinator's: %s", g.Provider,
			strings.Join(r.providerNames(), ", "))
	}
	err := p.Validate(provider.Template{
		InstanceType: g.Template.InstanceType, Zones: g.Template.Zones,
		Settings: g.Template.Settings,
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

// suspect lists a provider's machines at once.
func (t *term) suspect(provider string) {
	if l := t.listers[provider]; l != nil {
		l.ask()
	}
}

// settings returns the settings in force. The cache keeps them even while etcd holds others that
// are refused.
func (t *term) settings() store.ShardSettings {
	settings := store.DefaultShardSettings()
	t.r.cache.View(func(c *cache.Content) {
		if c.Shard.Present() {
			settings = c.Shard.Record.Settings
		}
	})
	return settings
}

func (t *term) poke() {
	select {
	case t.pokes <- struct{}{}:
	default:
	}
}

// run leads until ctx ends or leadership is lost, and returns why. It leaves nothing running.
func (t *term) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := t.r.cache.WaitFor(ctx, t.fence.Created); err != nil {
		return err
	}
	t.log.Info("leading")
	t.tell(ctx, store.JournalEntry{
		Rule: "ELECT-1", What: "replica " + t.r.cfg.ID + " leads",
		Revision: t.fence.Created,
	})
	stop := t.r.cache.Listen(t.evidence)
	defer stop()

	var parts sync.WaitGroup
	defer parts.Wait()
	defer end(nil)
	for _, l := range t.listers {
		parts.Go(func() { l.run(ctx) })
	}
	for _, q := range t.queues {
		parts.Go(func() { q.run(ctx) })
	}
	parts.Go(func() { t.keepServed(ctx) })
	parts.Go(func() { t.keepExtras(ctx) })
	parts.Go(func() { t.watchClock(ctx) })
	err := t.loop(ctx)
	end(err)
	return err
}

// loop plans whenever something has changed or is due.
func (t *term) loop(ctx context.Context) error {
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	pass := time.NewTicker(fullPass)
	defer pass.Stop()
	for {
		next, err := t.step(ctx)
		if err != nil {
			return err
		}
		wait := time.Hour
		if !next.IsZero() {
			wait = max(time.Millisecond, time.Until(next)) // do not spin on work that waits for the cache
		}
		due.Reset(wait)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.pokes:
		case <-due.C:
		case <-pass.C:
			t.r.cache.View(func(c *cache.Content) { t.evidence.Pass(c) })
		}
	}
}

// watchClock notices when this process, or the whole machine, stood still: no agent could be heard
// meanwhile.
func (t *term) watchClock(ctx context.Context) {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for last := time.Now(); ; last = time.Now() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if late := time.Since(last); late > tickLate {
			t.r.noteDisturbance(fmt.Sprintf("the leader stood still for %s", late.Round(100*time.Millisecond)), true)
		}
	}
}

// step plans the dirty groups whose cache is recent enough, carries out the actions, and returns
// when to plan again.
func (t *term) step(ctx context.Context) (next time.Time, err error) {
	heard, interrupted := t.r.cache.Heard()
	if interrupted != nil || time.Since(heard) > vitalsSilence {
		t.r.deps.Meter.Refused(RefusedStale)
		// SAFE-3: the groups stay dirty, and the next change of the cache wakes the loop.
		return time.Time{}, nil //nolint:nilerr // no decision is no error
	}
	t.recall(ctx)
	var snapshot plan.Snapshot
	var ready []string
	var settings store.ShardSettings
	var revision store.Revision
	now, deposed := time.Now(), false
	t.r.cache.View(func(c *cache.Content) {
		if kv, ok := c.Leaders[leaderName(t.r.keys, t.fence.Key)]; !ok || kv.Created != t.fence.Created {
			deposed = c.Revision >= t.fence.Created
		}
		settings, revision = c.Shard.Record.Settings, c.Revision
		if ready = t.evidence.TakeDirty(c.Revision, now); len(ready) > 0 {
			snapshot = t.evidence.Snapshot(c, ready)
		}
	})
	if !deposed {
		t.tellRefused(ctx, settings, revision)
	}
	switch {
	case deposed:
		return time.Time{}, errDeposed
	case len(ready) == 0:
		return t.evidence.NextDue(), nil
	}
	now = time.Now() // not before anything in the snapshot
	p := plan.Compute(snapshot, now)
	took := time.Since(now)
	t.r.deps.Meter.Planned(took)
	if took > passLate {
		t.log.Warn("planning took long", "took", took.String(), "groups", len(ready))
	}
	t.evidence.Tallied(p.Tallies)
	t.tellVerdicts(ctx, &snapshot, p)
	t.tellHeld(ready, p)
	turns := plan.NewTurns(&snapshot)
	for _, together := range plan.Together(p.Actions) {
		if err := t.carryOut(ctx, &snapshot, turns, together); err != nil {
			return time.Time{}, err
		}
	}
	for _, call := range p.Calls {
		t.ask(call)
	}
	for _, name := range ready {
		t.evidence.LookAgain(name, p.Due[name])
	}
	return t.evidence.NextDue(), nil
}

// tellRefused records in the journal which of the shard's settings cannot be used, and what is in
// force instead (REC-20).
func (t *term) tellRefused(ctx context.Context, s store.ShardSettings, revision store.Revision) {
	var told []string
	for _, e := range s.Refused {
		told = append(told, fmt.Sprintf("%s; %s is in force", e.Error(), s.Value(e.Path)))
	}
	text := strings.Join(told, "; ")
	if text == t.badSettings {
		return
	}
	if t.badSettings = text; text == "" {
		return
	}
	t.log.Warn("settings refused", "why", text)
	t.tell(ctx, store.JournalEntry{
		Rule: "REC-20", What: "settings of the shard refused", Why: text,
		Revision: revision,
	})
}

// leaderName returns the part of a leader's key below the prefix of its kind.
func leaderName(keys store.Keys, key string) string {
	_, name, _ := keys.Split(key)
	return name
}

// tellHeld warns once of each piece of work that is due and held back (OBS-1). The status says as
// well why, and what would free it.
func (t *term) tellHeld(planned []string, p plan.Plan) {
	for _, group := range planned {
		held := map[string]bool{}
		for _, b := range p.Held[group] {
			key := b.Rule + " " + b.What
			held[key] = true
			if !t.held[group][key] {
				t.r.deps.Meter.Held(b.Rule)
				t.log.Warn("held", "group", group, "instance", b.Instance, "rule", b.Rule, "what", b.What, "why", b.Why,
					"until", b.Until)
			}
		}
		if t.held[group] = held; len(held) == 0 {
			delete(t.held, group)
		}
	}
}

// mostVerdicts bounds how many verdicts one step writes to the journal; the rest is written as a
// number.
const mostVerdicts = 50

// tellVerdicts writes changed verdicts to the journal: each turn to the worse, and each return.
// What is decided because of a verdict follows in the entry of its action. One transaction carries
// them all: decisions wait for it, and when many instances are in trouble, etcd often is too.
func (t *term) tellVerdicts(ctx context.Context, s *plan.Snapshot, p plan.Plan) {
	var told []store.JournalEntry
	more := 0
	for _, g := range s.Groups {
		verdicts := t.verdictsOf(&g)
		for _, in := range g.Instances {
			if in.Record.Phase == store.Deleting {
				continue
			}
			id, now := in.Record.ID, p.Judgments[in.Record.ID]
			before, known := verdicts[id]
			verdicts[id] = now
			t.meterVerdict(id, before, now)
			if known && before.Verdict == now.Verdict &&
				(now.Verdict != store.Suspect || before.Rule == now.Rule &&
					evidenceOfProvider(before) == evidenceOfProvider(now)) {
				continue
			}
			if !troubled(now.Verdict) && (!troubled(before.Verdict) || now.Verdict == store.Unborn) {
				continue
			}
			if len(told) == mostVerdicts {
				more++
				continue
			}
			t.log.Info("verdict", "group", g.Name, "instance", id, "verdict", string(now.Verdict), "rule", now.Rule,
				"why", now.Why, "revision", int64(s.Revision))
			told = append(told, store.JournalEntry{
				Kind: store.EntryVerdict, Awaits: now.Awaits,
				Rule: now.Rule, What: string(now.Verdict), Why: now.Why, Group: g.Name, Instance: id,
				Slot: in.Record.Place(), Verdict: now.Verdict,
				Evidence: now.Evidence, Revision: s.Revision,
			})
		}
	}
	if more > 0 {
		told = append(told, store.JournalEntry{
			Rule: "DET-3", What: fmt.Sprintf("%d more verdicts changed", more),
			Revision: s.Revision,
		})
	}
	if len(told) > 0 {
		t.tell(ctx, told...)
	}
}

// verdictsOf returns the verdicts last written for a group's instances. It keeps none of instances
// that are being deleted or whose records are gone.
func (t *term) verdictsOf(g *plan.Group) map[string]plan.Judgment {
	before, staying := t.verdicts[g.Name], make([]string, 0, len(g.Instances))
	met := 0
	for i := range g.Instances {
		rec := &g.Instances[i].Record
		if rec.Phase == store.Deleting {
			continue
		}
		staying = append(staying, rec.ID)
		if _, known := before[rec.ID]; known {
			met++
		}
	}
	switch {
	case before != nil && met == len(before):
		return before
	case len(staying) == 0:
		delete(t.verdicts, g.Name)
	default:
		t.verdicts[g.Name] = make(map[string]plan.Judgment, len(staying))
	}
	for _, id := range staying {
		if j, known := before[id]; known {
			t.verdicts[g.Name][id] = j
		}
		delete(before, id)
	}
	for id := range before {
		delete(t.troubles, id)
	}
	return t.verdicts[g.Name]
}

// tell writes entries that belong to no change, under the fence. Entries that cannot be written are
// lost: they only inform.
func (t *term) tell(ctx context.Context, entries ...store.JournalEntry) {
	if _, err := t.commit(ctx, nil, nil, entries...); err != nil && ctx.Err() == nil {
		for _, e := range entries {
			t.log.Warn("journal entry lost", "rule", e.Rule, "instance", e.Instance, "what", e.What, "error", err)
		}
	}
}

func troubled(v store.Verdict) bool { return v == store.Suspect || v.Failed() }

// evidenceOfProvider returns the line of the evidence that cites the provider. A change of it is
// worth an entry of its own.
func evidenceOfProvider(j plan.Judgment) string {
	for _, line := range j.Evidence {
		if len(line) > 9 && line[:9] == "provider:" {
			return line
		}
	}
	return ""
}
