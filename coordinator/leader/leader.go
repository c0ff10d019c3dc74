package leader

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

const (
	fullPass = 5 * time.Minute // REC-1
	// silence is how long etcd may be silent before planning stops (SAFE-3).
	silence = store.WatchSilence
	// staleRetry is when to check a cache again that was too old.
	staleRetry = time.Second
)

// Config is what a leader needs. All of it must be set.
type Config struct {
	Keys         store.Keys
	Fence        store.Fence
	Evidence     *evidence.Evidence
	Capabilities map[string]provider.Capabilities // by provider
	Balancers    map[string]balancer.Capabilities // by load balancer
	Sources      map[string]query.Settings        // by external metric
	Settings     store.ShardSettings              // at the beginning of the term
	Began        time.Time
	Jitter       func(most time.Duration) time.Duration
}

// Leader decides what one term does next. Everything that happens is an Event, and everything to do
// a Command. Each Command that has an outcome is answered by one Event, sooner or later.
type Leader struct {
	cfg   Config
	calls *Calls
	lists map[string]*Lists
	names []string // of the providers, in order

	traffic     traffic
	queries     queries
	validations validations

	round  *round // under way; nil: none
	again  bool   // something happened that the round does not know
	retry  time.Time
	pass   time.Time // when everything is planned, whether something happened or not
	queued time.Time // when a waiting call may begin; zero: none waits for the rate

	operations map[int]*operation // provider calls under way
	last       int
	commands   []Command
}

// New returns the leader of a term that begins.
func New(cfg Config) *Leader {
	l := &Leader{
		cfg: cfg, lists: map[string]*Lists{}, names: slices.Sorted(maps.Keys(cfg.Capabilities)),
		pass:       cfg.Began.Add(fullPass),
		operations: map[int]*operation{}, traffic: newTraffic(cfg.Balancers),
		queries:     queries{of: cfg.Sources, asks: map[query.Key]*ask{}},
		validations: validations{groups: map[string]bool{}, running: map[string]int{}},
	}
	l.calls = NewCalls(l.names, cfg.Settings, cfg.Jitter)
	for _, name := range l.names {
		l.lists[name] = &Lists{}
	}
	return l
}

// View is what a step sees of the cache. It is valid during the step.
type View struct {
	Content     *cache.Content
	Heard       time.Time // when etcd was last heard
	Interrupted bool      // the watch is
}

func (v View) settings() store.ShardSettings {
	if !v.Content.Shard.Present() {
		return store.DefaultShardSettings()
	}
	return v.Content.Shard.Record.Settings
}

// Step handles an event and returns what to do now, in order.
func (l *Leader) Step(now time.Time, v View, e Event) []Command {
	switch e := e.(type) {
	case Tick:
		if !now.Before(l.pass) {
			l.cfg.Evidence.Pass(v.Content)
			l.pass, l.again = now.Add(fullPass), true
		}
	case Wake:
		l.beginRound(now, v)
	case Recalled:
		l.round = nil
		if !l.stale(now, v) { // etcd may have been slow to answer
			l.begin(now, v)
		}
	case Planned:
		l.planned(now, e.Plan)
	case Committed:
		l.committed(now, e)
	case ListRequested:
		l.requestList(e.Provider)
	case Listed:
		if e.Err == nil { // a failed List proves nothing
			l.cfg.Evidence.ListedBy(e.Provider, e.Begun, e.Machines, v.Content)
		} else {
			l.cfg.Evidence.NotListed(e.Provider, e.Begun, e.Err)
		}
		l.lists[e.Provider].End(now, v.settings(), e.Err)
		if slices.ContainsFunc(e.Machines, func(m provider.Machine) bool { return m.Unsettled }) {
			l.lists[e.Provider].Request()
		}
	case Recorded:
		l.recorded(now, e)
	case Verified:
		l.verified(now, e)
	case Answered:
		l.answered(now, e)
	case BalancerListed:
		l.balancerListed(now, v, e)
	case BalancerAnswered:
		l.balancerAnswered(e)
	case Queried:
		l.queried(now, e)
	case Validated:
		l.validated(e)
	}
	l.beginLists(now)
	l.beginMemberLists(now, v)
	l.beginCalls(now, v)
	l.beginQueries(now)
	l.beginValidations(now)
	l.beginMemberCalls(now, v)
	commands := l.commands
	l.commands = nil
	return commands
}

// NextStep returns when to step with Tick, and when with Wake, if nothing else happens. A zero time
// means that only another event can change anything.
func (l *Leader) NextStep(now time.Time) (tick, wake time.Time) {
	tick = plan.Sooner(plan.Sooner(l.pass, l.queued), plan.Sooner(l.nextMemberList(), l.NextQuery()))
	for _, name := range l.names {
		if at, ok := l.lists[name].Next(); ok && at.Before(tick) {
			tick = at
		}
	}
	switch {
	case l.round != nil:
	case !l.retry.IsZero():
		wake = l.retry // whatever is due
	case l.again:
		wake = now
	default:
		wake = l.cfg.Evidence.NextDue()
	}
	return tick, wake
}

// Pressing reports whether the next Tick does more than what comes regularly.
func (l *Leader) Pressing() bool {
	return !l.queued.IsZero() || slices.ContainsFunc(l.names,
		func(name string) bool { return l.lists[name].Requested() }) || slices.ContainsFunc(l.traffic.names,
		func(name string) bool { return l.traffic.of[name].lists.Requested() })
}

func (l *Leader) do(c Command) { l.commands = append(l.commands, c) }

func (l *Leader) requestList(provider string) {
	if lists := l.lists[provider]; lists != nil {
		lists.Request()
	}
}

func (l *Leader) beginLists(now time.Time) {
	for _, name := range l.names {
		if at, ok := l.lists[name].Next(); ok && !at.After(now) {
			l.lists[name].Begin(now)
			l.do(List{Provider: name, Begun: now})
		}
	}
}

// round is one plan and what it takes to carry it out.
type round struct {
	groups   []string
	snapshot plan.Snapshot
	plan     plan.Plan
	turns    plan.Turns
	left     [][]*plan.Action // by transaction
	batch    []*plan.Action   // in the transaction under way
}

// beginRound begins a round if there is anything to plan. Before that, former values of unreadable
// keys are read from etcd's history (SAFE-16).
func (l *Leader) beginRound(now time.Time, v View) {
	if l.round != nil {
		l.again = true
		return
	}
	l.again, l.retry = false, time.Time{}
	if l.stale(now, v) {
		return
	}
	if keys := l.cfg.Evidence.ToRecall(v.Content); len(keys) > 0 {
		l.round = &round{}
		l.do(Recall{Keys: keys})
		return
	}
	l.begin(now, v)
}

// stale reports whether the cache is too old to plan on (SAFE-3). The groups stay dirty then, and
// the leader looks again soon.
func (l *Leader) stale(now time.Time, v View) bool {
	if !v.Interrupted && now.Sub(v.Heard) <= silence {
		return false
	}
	l.retry = now.Add(staleRetry)
	l.do(Stale{})
	return true
}

// begin starts the plan of the dirty groups for which the cache is recent enough.
func (l *Leader) begin(now time.Time, v View) {
	l.round = nil
	_, name, _ := l.cfg.Keys.Split(l.cfg.Fence.Key)
	if kv, ok := v.Content.Leaders[name]; (!ok || kv.Created != l.cfg.Fence.Created) &&
		v.Content.Revision >= l.cfg.Fence.Created {
		l.do(Resign{Err: ErrDeposed})
		return
	}
	groups := l.cfg.Evidence.TakeDirty(v.Content.Revision, now)
	if len(groups) == 0 {
		return
	}
	l.round = &round{groups: groups, snapshot: l.cfg.Evidence.Snapshot(v.Content, groups)}
	for i := range l.round.snapshot.Groups {
		g := &l.round.snapshot.Groups[i]
		l.want(g.Name, g.Sources(), now)
		l.validate(g)
	}
	l.do(Compute{Groups: groups, Snapshot: &l.round.snapshot})
}

// planned begins to carry out a plan.
func (l *Leader) planned(now time.Time, p plan.Plan) {
	l.cfg.Evidence.Tallied(p.Tallies)
	r := l.round
	r.plan, r.turns, r.left = p, plan.NewTurns(&r.snapshot), plan.Batch(p.Actions)
	l.commit(now)
}

// commit carries out the next actions in one transaction, which compares the records that change
// and every key of the evidence (REC-15). After the last one, the provider calls are queued.
func (l *Leader) commit(now time.Time) {
	r := l.round
	for len(r.left) > 0 {
		r.batch = l.legal(r.left[0])
		r.left = r.left[1:]
		if len(r.batch) > 0 {
			conditions, writes := r.turns.TxnOf(r.batch)
			l.do(Commit{Snapshot: &r.snapshot, Plan: &r.plan, Actions: r.batch, Conditions: conditions, Writes: writes})
			return
		}
	}
	for _, call := range r.plan.Calls {
		l.ask(now, call)
	}
	l.askMembers(&r.plan)
	for _, group := range r.groups {
		l.cfg.Evidence.PlanAgain(group, r.plan.Due[group])
	}
	l.round = nil
}

// legal drops actions with a transition that no phase allows.
func (l *Leader) legal(batch []*plan.Action) []*plan.Action {
	return slices.DeleteFunc(slices.Clone(batch), func(a *plan.Action) bool {
		if a.From == a.To || a.To == "" {
			return false
		}
		err := store.ValidateTransition(a.From, a.To)
		if err != nil {
			l.do(Illegal{Action: a, Err: err}) // skip the step; the term continues
		}
		return err != nil
	})
}

// committed handles the outcome of a transaction. A conflict is no error: something has changed,
// and the next plan sees it. Actions that shared a transaction with a conflicting one, or that etcd
// may accept one by one, are retried separately.
func (l *Leader) committed(now time.Time, e Committed) {
	r := l.round
	switch {
	case e.Err == nil:
		for _, a := range r.batch {
			r.turns.Done(a, e.Revision)
			l.cfg.Evidence.Wrote(a.Group, e.Revision)
		}
	case errors.Is(e.Err, ErrDeposed):
		l.do(Resign{Err: e.Err})
		return
	case len(r.batch) > 1 && !errors.Is(e.Err, store.ErrUnavailable) && !errors.Is(e.Err, store.ErrUnknown):
		var conflict *store.ConflictError
		var changed []string
		if errors.As(e.Err, &conflict) {
			changed = conflict.Keys
		}
		r.left = append(plan.Split(r.batch, changed), r.left...)
	default:
		for _, a := range r.batch {
			l.do(Refused{Action: a, Err: e.Err})
			l.planAgain(a, now.Add(waitAfter(e.Err)))
		}
	}
	l.commit(now)
}

// planAgain schedules another plan of the action's group and of the shard: an action of the shard
// may name a group too.
func (l *Leader) planAgain(a *plan.Action, at time.Time) {
	l.cfg.Evidence.PlanAgain(a.Group, at)
	l.cfg.Evidence.PlanAgain("", at)
}

// ask queues a call unless one for the same instance waits or runs: calls for one ID never overlap
// (SAFE-8).
func (l *Leader) ask(now time.Time, call plan.Call) {
	unknown := fmt.Errorf("this coordinator has no provider %q", call.Provider)
	switch {
	case !l.calls.Known(call) && call.Kind == plan.CallRemove:
		l.cfg.Evidence.Removed(call.Instance, unknown)
	case !l.calls.Known(call):
		l.cfg.Evidence.Failed(call.Instance, unknown)
	case l.cfg.Evidence.MarkBusy(call.Instance):
		l.calls.Add(call, now)
	}
}
