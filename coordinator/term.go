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
	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/settings"
	"github.com/leasehold/leasehold/store"
)

const (
	passLate = time.Second // a plan that takes this long is logged
)

// term is one term of leadership.
type term struct {
	r        *Replica
	fence    store.Fence
	lease    store.LeaseID // of the replica's session
	shard    store.Shard
	log      *slog.Logger
	evidence *evidence.Evidence
	leader   *leader.Leader
	inbox    *inbox
	beats    chan struct{}  // taken by the loop: held while the leader steps
	work     sync.WaitGroup // commands under way
	kept     atomic.Int64   // age of the oldest revision that etcd keeps, as a time.Duration
	past     knownPast

	mu     sync.Mutex
	tokens map[int]joinToken // of creations that are recorded, by operation
	// dead machines whose console output is in the journal, until they are removed
	consoles map[string]bool
	silent   []store.Silent // providers and load balancers whose last List failed

	unanswered map[query.Key]query.Kind // numbers from outside whose last question failed

	verdicts    map[string]map[string]plan.Judgment // by group and instance, as last written to the journal
	troubles    map[string]time.Time                // instances in trouble, and since when
	held        map[string]map[string]bool          // by group: held work that was logged
	badSettings string                              // refused settings of the shard, as last written to the journal
	grace       journaledGrace
}

func newTerm(r *Replica, fence store.Fence, lease store.LeaseID, shard store.Shard) *term {
	t := &term{
		r: r, fence: fence, lease: lease, shard: shard, log: r.log.With("fence", int64(fence.Created)),
		inbox: newInbox(), beats: make(chan struct{}), tokens: map[int]joinToken{}, consoles: map[string]bool{},
		unanswered: map[query.Key]query.Kind{},
		verdicts:   map[string]map[string]plan.Judgment{}, troubles: map[string]time.Time{},
		held: map[string]map[string]bool{},
	}
	capabilities := map[string]provider.Capabilities{}
	for name, p := range r.deps.Providers {
		capabilities[name] = p.Capabilities()
	}
	t.evidence = evidence.New(evidence.Config{
		Keys: r.keys, Capabilities: capabilities, Balancers: r.balancerCapabilities(), SessionTTL: r.cfg.SessionTTL,
		Seed: rand.Uint64(),
		Now:  time.Now, Jitter: jitter, Wake: t.poke, Suspect: t.inbox.requestList, Validate: r.validate,
	})
	t.leader = leader.New(leader.Config{
		Keys: r.keys, Fence: fence, Evidence: t.evidence, Capabilities: capabilities,
		Balancers: r.balancerCapabilities(), Sources: r.deps.Sources.Settings(),
		Settings: t.settings(), Began: time.Now(), Jitter: jitter,
	})
	return t
}

// jitter returns a random time up to the given one.
func jitter(most time.Duration) time.Duration { return rand.N(most + 1) }

// validate returns what a group's provider has against its spec, or "".
func (r *Replica) validate(_ string, g store.Group) string {
	if why := r.validateBalancers(&g); why != "" {
		return why
	}
	for i, f := range g.Files {
		if f.Certificate == nil {
			continue
		}
		if err := r.deps.Authorities.Validate(f.Certificate); err != nil {
			return fmt.Sprintf("files[%d].certificate: %s", i, err)
		}
	}
	for _, name := range g.Sources() {
		if err := r.deps.Sources.Missing(name); err != nil {
			return err.Error()
		}
	}
	if g.Provider == store.ProviderNone {
		return ""
	}
	p, known := r.deps.Providers[g.Provider]
	if !known {
		return fmt.Sprintf("provider %q is not one of this coordinator's: %s", g.Provider,
			strings.Join(r.providerNames(), ", "))
	}
	var err error
	if schema := p.Capabilities().Settings; schema != nil {
		err = settings.Check(schema, g.Template.Settings)
	}
	if err == nil {
		err = p.Validate(providerTemplate(g.InstanceSpec()))
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// validate asks a provider about a spec. Without an answer the spec is accepted: it may well be
// right, and Create says so when its time comes.
func (t *term) validate(ctx context.Context, c leader.Validate) leader.Validated {
	done := leader.Validated{Group: c.Group, Spec: c.Spec}
	name := c.Spec.Group.Provider
	p := t.r.deps.Providers[name]
	asker, ok := p.(provider.Asker)
	if !ok {
		return done
	}
	call, cancel := context.WithTimeout(ctx, p.Capabilities().CallTimeout)
	defer cancel()
	err := asker.Ask(call, providerTemplate(c.Spec.Group.InstanceSpec()))
	t.r.deps.Meter.Called(name, "validate", time.Since(c.Begun), err)
	switch {
	case errors.Is(err, provider.ErrInvalid):
		done.Problem = err.Error()
	case err != nil && ctx.Err() == nil:
		t.log.Warn("provider does not validate a spec: it is accepted", "group", c.Group, "provider", name, "error", err)
	}
	return done
}

// providerTemplate is the part of a spec that is a provider's business.
func providerTemplate(s store.InstanceSpec) provider.Template {
	return provider.Template{
		InstanceTypes: s.Template.Types(), Zones: s.Template.Zones, Spot: s.Spot, Tags: s.Template.Tags,
		Settings: s.Template.Settings,
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

func (t *term) poke() { t.inbox.wake() }

// run leads until ctx ends or leadership is lost, and returns why. It leaves nothing running.
func (t *term) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := t.r.cache.WaitFor(ctx, t.fence.Created); err != nil {
		return err
	}
	t.log.Info("leading")
	t.writeJournal(ctx, store.JournalEntry{
		Rule: "ELECT-1", What: "replica " + t.r.cfg.ID + " leads",
		Revision: t.fence.Created,
	})
	stop := t.r.cache.Listen(t.evidence)
	defer stop()

	var parts sync.WaitGroup
	defer parts.Wait()
	defer end(nil)
	defer t.work.Wait()
	defer end(nil)
	parts.Go(func() { t.keepServed(ctx) })
	parts.Go(func() { t.keepLoads(ctx) })
	parts.Go(func() { t.keepDays(ctx) })
	parts.Go(func() { t.keepExtras(ctx) })
	parts.Go(func() { t.sendDecisions(ctx) })
	parts.Go(func() { t.traceHealings(ctx) })
	err := t.loop(ctx)
	end(err)
	return err
}

// loop steps the leader whenever something has happened or is due, and performs its commands.
func (t *term) loop(ctx context.Context) error {
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		events := t.inbox.take()
		now := time.Now()
		tick, wake := t.leader.NextStep(now)
		if !tick.After(now) {
			events = append(events, leader.Tick{})
		}
		if !wake.IsZero() && !wake.After(now) {
			events = append(events, leader.Wake{})
		}
		for _, e := range events {
			if err := t.step(ctx, e); err != nil {
				return err
			}
		}
		now = time.Now()
		tick, wake = t.leader.NextStep(now)
		if !wake.IsZero() && wake.Before(tick) {
			tick = wake
		}
		due.Reset(max(time.Millisecond, tick.Sub(now))) // do not spin on work that waits for the cache
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.inbox.ready:
		case <-t.beats:
		case <-due.C:
		}
	}
}

// step passes an event to the leader, and performs its commands.
func (t *term) step(ctx context.Context, e leader.Event) error {
	heard, interrupted := t.r.cache.Heard()
	var commands []leader.Command
	t.r.cache.View(func(c *cache.Content) {
		commands = t.leader.Step(time.Now(), leader.View{Content: c, Heard: heard, Interrupted: interrupted != nil}, e)
	})
	for _, c := range commands {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.perform(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// compute makes the plan of a snapshot, and writes changed verdicts and held work to the journal
// and log.
func (t *term) compute(ctx context.Context, c leader.Compute) plan.Plan {
	now := time.Now() // not before anything in the snapshot
	p := plan.Compute(*c.Snapshot, now)
	took := time.Since(now)
	t.r.deps.Meter.Planned(took)
	if took > passLate {
		t.log.Warn("planning took long", "took", took.String(), "groups", len(c.Groups))
	}
	t.recordRefused(ctx, c.Snapshot.Shard.Record.Settings, c.Snapshot.Revision)
	t.recordGrace(ctx, c.Snapshot, now)
	t.recordVerdicts(ctx, c.Snapshot, p)
	t.warnBlocked(c.Groups, p)
	return p
}

// recordRefused records in the journal which of the shard's settings cannot be used, and what is in
// force instead (REC-20).
func (t *term) recordRefused(ctx context.Context, s store.ShardSettings, revision store.Revision) {
	var refused []string
	for _, e := range s.Refused {
		refused = append(refused, fmt.Sprintf("%s; %s is in force", e.Error(), s.Value(e.Path)))
	}
	text := strings.Join(refused, "; ")
	if text == t.badSettings {
		return
	}
	if t.badSettings = text; text == "" {
		return
	}
	t.log.Warn("settings refused", "why", text)
	t.writeJournal(ctx, store.JournalEntry{
		Rule: "REC-20", What: "settings of the shard refused", Why: text,
		Revision: revision,
	})
}

// graceStep is how much a grace must grow before the journal reports it for the second time, and
// the pause after a failed write.
const graceStep = 10 * time.Second

// journaledGrace is what the journal says about the present grace.
type journaledGrace struct {
	end   time.Time // as last written
	times int       // it was written since it began
	retry time.Time // not before, after a failed write
}

// due reports whether the journal must record the grace's present end. A continuing disturbance
// extends it every second: after the second entry, the next one waits until the recorded end is
// reached.
func (g *journaledGrace) due(now, end time.Time) bool {
	switch {
	case now.Before(g.retry):
		return false
	case !g.end.After(now):
		return true
	default:
		return g.times < 2 && !end.Before(g.end.Add(graceStep))
	}
}

// recordGrace records in the journal until when no instance is judged lost, and why (SAFE-1).
func (t *term) recordGrace(ctx context.Context, s *plan.Snapshot, now time.Time) {
	left := s.GraceEnd.Sub(now)
	if left <= 0 {
		t.grace = journaledGrace{}
		return
	}
	if !t.grace.due(now, s.GraceEnd) {
		return
	}
	cause := store.Cause{
		Kind: store.CauseDisturbed, Text: s.GraceWhy, For: store.Duration(left.Round(100 * time.Millisecond)),
	}
	if !t.writeJournal(ctx, store.JournalEntry{
		Rule: "SAFE-1", What: "no instance is judged lost", Why: reason.Sentence(cause), Cause: reason.Recorded(cause),
		Revision: s.Revision,
	}) { // a disturbance of etcd is the very time at which writes fail
		t.grace.retry = now.Add(graceStep)
		return
	}
	t.grace = journaledGrace{end: s.GraceEnd, times: t.grace.times + 1}
}

// warnBlocked warns once of each piece of work that is due and held back (OBS-1). The status also
// says why, and what would unblock it.
func (t *term) warnBlocked(planned []string, p plan.Plan) {
	for _, group := range planned {
		held := map[string]bool{}
		for _, b := range p.Held[group] {
			key := b.Rule + " " + b.What
			held[key] = true
			if !t.held[group][key] {
				t.r.deps.Meter.Held(&b)
				t.log.Warn("held", "group", group, "instance", b.Instance, "rule", b.Rule, "what", b.What, "why", b.Why,
					"until", b.Until)
			}
		}
		if t.held[group] = held; len(held) == 0 {
			delete(t.held, group)
		}
	}
}

// maxVerdicts bounds how many verdicts one step writes to the journal; the rest is written as a
// number.
const maxVerdicts = 50

// recordVerdicts writes changed verdicts to the journal: each turn to the worse, and each return.
// What is decided because of a verdict follows in the entry of its action. One transaction carries
// them all: decisions wait for it, and when many instances are in trouble, etcd often is too.
func (t *term) recordVerdicts(ctx context.Context, s *plan.Snapshot, p plan.Plan) {
	var entries []store.JournalEntry
	more := 0
	for i, g := range s.Groups {
		verdicts := t.verdictsOf(&g)
		for n, in := range g.Instances {
			if in.Record.Phase == store.Deleting {
				continue
			}
			id, now := in.Record.ID, *p.Judgments.At(i, n)
			before, known := verdicts[id]
			verdicts[id] = now
			t.meterVerdict(id, before, now)
			if known && before.Verdict == now.Verdict &&
				(now.Verdict != store.Suspect || before.Rule == now.Rule &&
					now.HeardSame(&before)) {
				continue
			}
			if !troubled(now.Verdict) && (!troubled(before.Verdict) || now.Verdict == store.Unborn) {
				continue
			}
			if len(entries) == maxVerdicts {
				more++
				continue
			}
			t.log.Info("verdict", "group", g.Name, "instance", id, "verdict", string(now.Verdict), "rule", now.Rule,
				"why", now.Why(), "revision", int64(s.Revision))
			entries = append(entries, store.JournalEntry{
				Kind: store.EntryVerdict, Awaits: now.Awaits,
				Rule: now.Rule, What: string(now.Verdict), Why: now.Why(),
				Cause: reason.Recorded(now.Cause), Group: g.Name, Instance: id,
				Slot: in.Record.Place(), Verdict: now.Verdict,
				Facts: now.Facts, Revision: s.Revision,
			})
		}
	}
	if more > 0 {
		entries = append(entries, store.JournalEntry{
			Rule: "DET-3", What: fmt.Sprintf("%d more verdicts changed", more),
			Revision: s.Revision,
		})
	}
	if len(entries) > 0 {
		t.writeJournal(ctx, entries...)
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

// writeJournal writes entries that belong to no change, under the fence. Entries that cannot be
// written are lost: they only inform.
func (t *term) writeJournal(ctx context.Context, entries ...store.JournalEntry) (written bool) {
	_, err := t.commit(ctx, nil, nil, entries...)
	if err != nil && ctx.Err() == nil {
		for _, e := range entries {
			t.log.Warn("journal entry lost", "rule", e.Rule, "instance", e.Instance, "what", e.What, "error", err)
		}
	}
	return err == nil
}

func troubled(v store.Verdict) bool { return v == store.Suspect || v.Failed() }
