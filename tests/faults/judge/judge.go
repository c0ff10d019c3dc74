package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// Violation is a broken promise.
type Violation struct {
	Rule     string          `json:"rule"` // as in docs/rules.md
	At       history.Time    `json:"at"`
	What     string          `json:"what"` // a sentence for people
	Evidence []history.Event `json:"evidence,omitempty"`
}

// Terms are the cluster's settings, and time limits. A zero value means a default that fits the
// runs of tests/faults.
type Terms struct {
	Shard       string        // its name
	Bound       time.Duration // from Healed to Quiet
	LeaseTTL    time.Duration // of agents
	SessionTTL  time.Duration // of replicas
	Interval    time.Duration // of reports
	Reconnect   time.Duration // the longest back-off of agents
	Poll        time.Duration // of the provider
	Certificate time.Duration // how long a workload's lasts
	CallTimeout time.Duration // of provider calls: the provider's capability
	// Slack is how much later than it happened an event may be written to the history.
	Slack time.Duration
}

func (t Terms) withDefaults() Terms {
	t.Shard = cmp.Or(t.Shard, "default")
	t.Bound = cmp.Or(t.Bound, 90*time.Second)
	t.LeaseTTL = cmp.Or(t.LeaseTTL, 5*time.Second)
	t.SessionTTL = cmp.Or(t.SessionTTL, 3*time.Second)
	t.Interval = cmp.Or(t.Interval, time.Second)
	t.Reconnect = cmp.Or(t.Reconnect, 2*time.Second)
	t.Poll = cmp.Or(t.Poll, time.Second)
	t.Certificate = cmp.Or(t.Certificate, time.Minute)
	t.CallTimeout = cmp.Or(t.CallTimeout, 40*time.Second)
	t.Slack = cmp.Or(t.Slack, 2*time.Second)
	return t
}

// settle is how long after the end of a fault its traces may still appear: a stream that broke is
// noticed, a check fails once more.
func (t Terms) settle() time.Duration { return 3*t.Interval + t.Slack }

// recovery is how long after a fault, if nothing else is wrong, the coordinators may judge a
// machine failed: until its lease has ended and that was confirmed, and until it had time to
// return.
func (t Terms) recovery() time.Duration {
	return t.LeaseTTL + max(t.LeaseTTL, t.SessionTTL+time.Second) + 2*t.Reconnect + 5*t.Interval + 2*t.Poll + t.Slack
}

// Judge returns the violations in a history, in the order of time.
func Judge(events []history.Event, terms Terms) []Violation {
	in := &inquiry{terms: terms.withDefaults()}
	in.events = history.Ordered(slices.Clone(events))
	in.keys = store.KeysOf(in.terms.Shard)
	in.truth = in.seek()
	in.steps = in.replay()
	in.establish()
	for _, question := range []func(){
		in.machines, in.removals, in.destruction, in.condemned, in.losses, in.verdicts, in.sessions, in.silence,
		in.storm, in.budgets, in.fences, in.unfenced, in.hold, in.journal,
		in.convergence, in.leftovers, in.traffic, in.files, in.certificates, in.keysElsewhere,
	} {
		question()
	}
	slices.SortStableFunc(in.found, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return in.found
}

// inquiry is one judgement of a history.
type inquiry struct {
	terms  Terms
	keys   store.Keys
	events []history.Event // in order
	truth  *truth
	steps  []*step
	said   map[string][]said // of each instance, in order
	// commits: the history contains the replicas' own reports of their transactions.
	commits bool
	found   []Violation
}

func (in *inquiry) violation(rule string, at history.Time, what string, evidence ...history.Event) {
	in.found = append(in.found, Violation{Rule: rule, At: at, What: what, Evidence: evidence})
}

// mark returns the last moment of a kind.
func (in *inquiry) mark(kind history.MarkKind) (history.Event, bool) {
	for _, e := range slices.Backward(in.events) {
		if e.Mark != nil && e.Mark.What == kind {
			return e, true
		}
	}
	return history.Event{}, false
}
