package leader

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// Event is something that happened.
type Event interface{ event() }

type (
	// Tick means that the time has come that Leader.NextStep named: a List, a call or a full pass
	// may be due.
	Tick struct{}
	// Wake means that there may be something to plan: evidence changed, or a group is due.
	Wake struct{}
	// ListRequested means that a provider's machines should be listed now (DET-3).
	ListRequested struct{ Provider string }

	// Recalled answers Recall. What was read is in the evidence.
	Recalled struct{}
	// Planned answers Compute.
	Planned struct{ Plan plan.Plan }
	// Committed answers Commit.
	Committed struct {
		Revision store.Revision
		Err      error
	}
	// Listed answers List.
	Listed struct {
		Provider string
		Begun    time.Time
		Machines []provider.Machine
		Err      error
	}
	// Recorded answers Record.
	Recorded struct {
		Operation int
		Revision  store.Revision
		Err       error
	}
	// Verified answers Verify: Err is nil if all conditions hold.
	Verified struct {
		Operation int
		Err       error
	}
	// BalancerListed answers ListMembers.
	BalancerListed struct {
		Balancer string
		Begun    time.Time
		Listing  balancer.Listing
		Err      error
	}
	// BalancerAnswered answers CallMember. Made is false if its conditions did not hold.
	BalancerAnswered struct {
		Call plan.MemberCall
		Made bool
		Err  error
	}
	// Queried answers Query.
	Queried struct {
		Key   query.Key
		Begun time.Time
		Value float64
		Err   error
	}
	// Validated answers Validate.
	Validated struct {
		Group   string
		Spec    plan.Spec // as it was asked about
		Problem string    // "": it is accepted
	}
	// Answered answers Invoke.
	Answered struct {
		Operation int
		Machine   provider.Machine // of a Create
		Err       error
	}
)

func (Tick) event()          {}
func (Wake) event()          {}
func (ListRequested) event() {}
func (Recalled) event()      {}
func (Planned) event()       {}
func (Committed) event()     {}
func (Listed) event()        {}
func (Recorded) event()      {}
func (Verified) event()      {}
func (Answered) event()      {}

func (BalancerListed) event()   {}
func (BalancerAnswered) event() {}
func (Queried) event()          {}
func (Validated) event()        {}

// Command is something to do. Those without an answer are done at once.
type Command interface{ command() }

type (
	// Recall reads the former values of unreadable keys into the evidence (SAFE-16). Answered by
	// Recalled, whether that succeeded or not.
	Recall struct{ Keys []evidence.UnreadableKey }
	// Compute makes the plan of a snapshot. Answered by Planned.
	Compute struct {
		Groups   []string
		Snapshot *plan.Snapshot
	}
	// Commit carries out actions in one transaction under the fence, with the journal entries that
	// explain them (REC-15) and the notes of the records that they delete. Answered by Committed.
	Commit struct {
		Snapshot   *plan.Snapshot
		Plan       *plan.Plan
		Actions    []*plan.Action
		Conditions []store.Condition
		Writes     []store.Write
	}
	// List lists a provider's machines. Answered by Listed.
	List struct {
		Provider string
		Begun    time.Time
	}
	// Record writes under the fence that a provider is about to be called, with the journal entry
	// if there is one. Answered by Recorded.
	Record struct {
		Operation  int
		Kind       plan.CallKind
		Instance   store.Instance
		From       store.Phase
		Conditions []store.Condition
		Writes     []store.Write
		Entries    []store.JournalEntry
		Deadline   time.Time // of the call
	}
	// Verify reads from etcd whether the conditions of a removal hold. Answered by Verified.
	Verify struct {
		Operation  int
		Instance   store.Instance
		Conditions []store.Condition
	}
	// Invoke calls a provider. Answered by Answered.
	Invoke struct {
		Operation int
		Method    Method
		Instance  store.Instance
		Begun     time.Time
		Deadline  time.Time
		Copy      plan.Copy // of RemoveCopy
	}

	// ListMembers lists what a load balancer has. Answered by BalancerListed.
	ListMembers struct {
		Balancer string
		Recorded []balancer.Member
		Begun    time.Time
		Deadline time.Time
	}
	// CallMember calls a load balancer if the conditions of the call hold. Answered by
	// BalancerAnswered.
	CallMember struct {
		Call     plan.MemberCall
		Begun    time.Time
		Deadline time.Time
	}

	// Query asks a source for a number. Answered by Queried.
	Query struct {
		Key   query.Key
		Begun time.Time
	}

	// Validate asks a provider whether a group's spec is right. Answered by Validated.
	Validate struct {
		Group string
		Spec  plan.Spec
		Begun time.Time
	}

	// Dequeued reports that a call left its queue.
	Dequeued struct {
		Kind   plan.CallKind
		Waited time.Duration
	}
	// Refused reports an action that did not happen. It is planned again.
	Refused struct {
		Action *plan.Action
		Err    error
	}
	// Illegal reports an action with a transition that no phase allows. It is a bug of the planner.
	Illegal struct {
		Action *plan.Action
		Err    error
	}
	// Stale reports that nothing is planned because the cache is too old (SAFE-3).
	Stale struct{}
	// Resign ends the term. Nothing follows it.
	Resign struct{ Err error }
)

func (Recall) command()   {}
func (Compute) command()  {}
func (Commit) command()   {}
func (List) command()     {}
func (Record) command()   {}
func (Verify) command()   {}
func (Invoke) command()   {}
func (Dequeued) command() {}
func (Refused) command()  {}
func (Illegal) command()  {}
func (Stale) command()    {}
func (Resign) command()   {}

func (ListMembers) command() {}
func (CallMember) command()  {}
func (Query) command()       {}
func (Validate) command()    {}

// Method is a method of a provider.
type Method int

// The methods that a leader calls, but for List.
const (
	Create Method = iota
	Restart
	Stop
	Delete
	RemoveCopy
	Halt // stop at once, without a graceful shutdown
)
