package plan

import (
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// Balancer is what is known of a load balancer. It does not change once it is in a snapshot.
type Balancer struct {
	Capabilities balancer.Capabilities
	Begun        time.Time // start of the newest answered List; zero: there was none yet
	SilentSince  time.Time // start of the first of the Lists that failed since; zero: it answers
	Problem      string    // of the last List, if it failed
	// Members are the targets of each instance, with the entries of that instance only.
	Members map[string]balancer.Listing
	Targets balancer.Listing // the targets without any entries
	// Strays are members without a record whose instances were deleted on purpose, ordered by ID.
	Strays []balancer.Member
	Down   int // members that are unhealthy
}

// silentAfter is how long a load balancer may be silent before work that need not wait for it
// continues: a restart takes less.
const silentAfter = 15 * time.Second

// of returns an instance's standing at the balancer.
func (b *Balancer) of(m balancer.Member) balancer.Membership { return b.listing(m.Instance).Of(m) }

func (b *Balancer) listing(instance string) balancer.Listing {
	if l, there := b.Members[instance]; there {
		return l
	}
	return b.Targets
}

// answers reports whether the last List was answered.
func (b *Balancer) answers() bool { return b != nil && !b.Begun.IsZero() && b.SilentSince.IsZero() }

// MemberCallKind is a kind of call to a load balancer.
type MemberCallKind string

// The kinds of MemberCall.
const (
	MemberAdd    MemberCallKind = "add"
	MemberDrain  MemberCallKind = "drain"
	MemberRemove MemberCallKind = "remove"
)

// MemberCall is a call to a load balancer. It follows from a record, so the next leader finds it
// again.
type MemberCall struct {
	Kind     MemberCallKind
	Balancer string
	Group    string
	Member   balancer.Member
	Slot     *int
	Again    bool           // another client has removed the member
	Record   store.Revision // of the instance as planned: the call is void if it has changed; 0: it has no record
	// Conditions must hold when the call is made.
	Conditions []store.Condition
}

// MemberCalls is the state of the calls to one load balancer for an instance.
type MemberCalls struct {
	Busy    bool           // one is queued or under way
	Last    MemberCallKind // the last successful one in this term; "": none
	Done    time.Time      // when it did
	Problem string         // of the last call, if it failed
	RetryAt time.Time      // no further call before this time
	Failed  int            // calls in a row
	// Taken: the balancer knows members by their addresses alone, and another instance's record wants
	// that one at this address. What a call took out there would be that instance.
	Taken bool
}
