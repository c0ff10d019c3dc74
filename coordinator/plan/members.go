package plan

import (
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// Balancer is what is known of a load balancer. It does not change once it is in a snapshot.
type Balancer struct {
	Capabilities balancer.Capabilities
	Begun        time.Time // when the newest List was begun that was answered; zero: there was none yet
	SilentSince  time.Time // when the first of the Lists was begun that failed since; zero: it answers
	Problem      string    // of the last List, if it failed
	// Members are the targets by instance, each with that instance's entries alone.
	Members map[string]balancer.Listing
	Targets balancer.Listing // the targets without any entries
	// Strays are members without a record whose instances were deleted on purpose, in order of ID.
	Strays []balancer.Member
	Down   int // members that are unhealthy
}

// silentAfter is how long a load balancer has not answered when what need not wait for it goes on
// without: one that restarts answers before.
const silentAfter = 15 * time.Second

// of is how an instance stands.
func (b *Balancer) of(m balancer.Member) balancer.Membership { return b.listing(m.Instance).Of(m) }

func (b *Balancer) listing(instance string) balancer.Listing {
	if l, there := b.Members[instance]; there {
		return l
	}
	return b.Targets
}

// answers reports whether the last List was answered.
func (b *Balancer) answers() bool { return b != nil && !b.Begun.IsZero() && b.SilentSince.IsZero() }

// MemberCallKind is what is asked of a load balancer.
type MemberCallKind string

// The kinds of MemberCall.
const (
	MemberAdd    MemberCallKind = "add"
	MemberDrain  MemberCallKind = "drain"
	MemberRemove MemberCallKind = "remove"
)

// MemberCall is work for a load balancer. It follows from a record, so the next leader finds it
// again.
type MemberCall struct {
	Kind     MemberCallKind
	Balancer string
	Group    string
	Member   balancer.Member
	Slot     *int
	Again    bool           // it was a member before, and another client took it out
	Record   store.Revision // of the instance as planned: the call is void if it has changed; 0: it has none
	// Conditions must hold when the call is made.
	Conditions []store.Condition
}

// MemberCalls is what is known of the calls for an instance to one load balancer.
type MemberCalls struct {
	Busy    bool           // one is queued or under way
	Last    MemberCallKind // the last one that succeeded, in this term; "": none did
	Done    time.Time      // when it did
	Problem string         // of the last call, if it failed
	RetryAt time.Time      // no further call before
	Failed  int            // calls in a row
	// Taken: the balancer knows members by their addresses alone, and another instance's record wants
	// that one at this address. What a call took out there would be that instance.
	Taken bool
}
