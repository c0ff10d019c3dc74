package plan

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/store"
)

// Snapshot is all that a plan depends on, besides the time. Times in it come from the same clock as
// the time given to Compute, and are compared with it.
//
// Times in records are of the wall clocks of leaders, which may be wrong. They are compared with
// the present only where a wrong clock destroys nothing, and one that lies in the future counts for
// nothing: the failures of a slot (flapsNow, forgetFrom), the marks of drills (Instance.Drilled,
// mustHalt), the age of an instance that is doomed as it is made (doomedAsMade), and schedules and
// windows, which are times of day.
type Snapshot struct {
	Keys     store.Keys
	Revision store.Revision // of the cache
	Seed     uint64         // random for each term: makes instance IDs unguessably different
	Shard    store.Versioned[store.Shard]
	// ShardUnreadable: Shard is what it was when it was read last.
	ShardUnreadable bool
	Damaged         []store.Damaged // records of all groups that are lost or unreadable, in order of key (SAFE-15)

	Stale      store.Cause   // why the cache may not be used to destroy (SAFE-3); zero if it may
	GraceEnd   time.Time     // nothing is judged lost before (SAFE-1)
	GraceWhy   string        // what began the grace
	SessionTTL time.Duration // of the replicas' sessions (DET-17)

	// ClocksApart is by how much the clocks of the replicas differ: no window opens by a wrong one
	// (SAFE-13).
	ClocksApart time.Duration

	Zones map[string][]string // of each provider that this coordinator has
	// Full are the zones that had no room lately, and until when they are not tried first.
	Full map[Market]map[string]time.Time
	// Refusals are what a provider refuses to all of a kind (PROV-5).
	Refusals map[Refused]Refusal
	Groups   []Group // in order of name
	// Elsewhere are the losses in the groups that are not in this snapshot, as they were planned
	// last (SAFE-2).
	Elsewhere Tally
	Recorded  int // instances in the shard
	// Limits are the limits of the shard's settings, and LimitsTurn the revision of the key that
	// every creation writes while there are any: see Turns (CAP-1).
	Limits     []Limit
	LimitsTurn store.Revision
	// Agents are the versions of the agent that coordinators serve, the latest last (PROV-7).
	Agents []AgentVersion
	// NoneAway: all coordinators of the last day are at work, so that a version of the agent that
	// none serves is withdrawn.
	NoneAway bool
	// BudgetTurns are the revisions of the keys of the budgets that groups share, by budget_group, and
	// DownElsewhere is what is down in groups beside those in this snapshot that share one (REC-18).
	BudgetTurns   map[string]store.Revision
	DownElsewhere map[string]Down
	// Balancers are the load balancers of this coordinator, Configured also other replicas'.
	Balancers  map[string]*Balancer
	Configured map[string]bool
	Orders     []store.Versioned[store.Request] // that concern the shard as a whole, in order of ID
	Extras     []Extra                          // in order of instance
	// UnnotedUntil: before, agents may say hello that have no record and that no replica has noted,
	// because they are too many. Zero: there are none.
	UnnotedUntil time.Time
	Lost         []store.Versioned[store.Request] // requests that concern nothing we know, in order of ID
}

// AgentVersion is a version of the agent that coordinators serve.
type AgentVersion struct {
	Version string
	// Before is a coordinator of an earlier version, and BeforeOf that version; "": there is none.
	Before, BeforeOf string
}

// Market is where machines are had: a provider has room, and quotas, for spot machines apart from
// the others.
type Market struct {
	Provider string
	Spot     bool
}

// MarketOf is where the machines are had that are made as a spec says.
func MarketOf(s store.InstanceSpec) Market { return Market{Provider: s.Provider, Spot: s.Spot} }

// Refused names what is refused: machines of a type, or all of a provider where Type is empty. A
// list of types, each of which would do, is refused as a whole.
type Refused struct {
	Provider, Type string
	Spot           bool // spot machines alone
}

// RefusedOf names the machines that are made as a spec says.
func RefusedOf(s store.InstanceSpec) Refused {
	return Refused{Provider: s.Provider, Type: strings.Join(s.Template.Types(), ","), Spot: s.Spot}
}

// Refusal is a creation that failed for a reason that others share: a quota or credentials.
type Refusal struct {
	Why   string
	Until time.Time // when one creation may try whether it is over
}

// refusal returns what keeps a machine of a member's kind from being made.
func (v *view) refusal(m *member) (of Refused, r Refusal, refused bool) {
	spec := &m.Record.Spec
	for _, of := range []Refused{{Provider: spec.Provider}, RefusedOf(*spec)} {
		if r, refused := v.s.Refusals[of]; refused {
			return of, r, true
		}
	}
	return Refused{}, Refusal{}, false
}

// Group is one group with all that belongs to it.
type Group struct {
	Name string
	// Unreadable is why a record of the group cannot be read; "" if all can. If it is set, nothing
	// is decided for the group.
	Unreadable string
	Spec       Spec
	Turn       store.Revision // of the group's key below turns/: see Turns
	Status     store.Versioned[store.Status]
	Due        Due                           // of the timers in the status
	Slots      []store.Versioned[store.Slot] // in order of number
	Instances  []Instance                    // in order of ID
	Requests   []store.Versioned[store.Request]
	// Readings are what is known of the numbers from outside that the group names, by source.
	Readings map[string]query.Reading
	// SlotDue is when the timers of each slot end.
	SlotDue map[int]Due
	// Extras are the machines with the group's tag and no record that an operator wants adopted.
	Extras []Extra
	// Damaged are the group's instances whose records are lost or unreadable, in order of key.
	// Unreadable ones are not in Instances. An entry without an instance stands for a record of
	// which nothing is known but that it is missing.
	Damaged []store.Damaged
	// Unlisted names a provider that the group waits for, "" if it waits for none. No leader has
	// counted the group's records, so only a complete List of this term can tell whether they were
	// lost (SAFE-15).
	Unlisted string
	// StatusSpoiled is why the status key cannot be read. Status then has its former value, with
	// the key's present revision, to be written back (SAFE-16).
	StatusSpoiled string
	// SlotsSpoiled are the slots that cannot be read, to be written back before anything else is
	// decided for the group (SAFE-16).
	SlotsSpoiled []SpoiledSlot
}

// SpoiledSlot is what a slot said before it became unreadable, with the key's present revision, and
// why it cannot be read.
type SpoiledSlot struct {
	store.Versioned[store.Slot]
	Why string
}

// Sources are the sources of numbers from outside that are asked for the group now, by the spec in
// force: for its analyses only while a change is rolled out.
func (g *Group) Sources() []string {
	spec := g.Status.Record.Accepted
	if g.Spec.InForce() {
		spec = &g.Spec.Group
	}
	if spec == nil {
		return nil
	}
	if g.Status.Record.Rollout == nil && len(spec.Rollout.Analysis) > 0 {
		steady := *spec
		steady.Rollout.Analysis = nil
		spec = &steady
	}
	return spec.Sources()
}

// Due says when the timers of a record end, by name, on our clock: SAFE-13.
type Due map[string]time.Time

// Tally counts the losses of groups, for the storm of a shard (SAFE-2).
type Tally struct {
	Lost   int // instances lost, or suspect, since lately
	Now    int // instances lost, or held back from that by the grace alone, since whenever
	Of     int // instances whose agents had registered
	Groups int // with a loss
}

// Spec is groups/<name> as found.
type Spec struct {
	Key      string
	Modified store.Revision // 0: no such key
	// Static is the key of the shard's file, whose group this one overrides (REC-6).
	Static         string
	StaticModified store.Revision // 0: no such key
	Group          store.Group    // the merge
	Beside         *store.Beside  // what of it was set beside a static group
	Problem        string         // why it cannot be in force; "" if it can
	Pending        bool           // its provider has not said yet whether it is right
	Template       string         // hash of the group's InstanceSpec; "" if it was not computed
}

// InForce reports whether the group is planned by what its keys say now.
func (s *Spec) InForce() bool {
	return max(s.Modified, s.StaticModified) != 0 && s.Problem == "" && !s.Pending
}

// Instance is a record with the evidence on it.
type Instance struct {
	store.Versioned[store.Instance]
	Alive  store.Versioned[store.Alive]
	Report store.Versioned[store.Report]
	Joined bool // a machine has joined as it
	// PhaseStart is when it entered its phase, on our clock, less the time in which no leader was
	// at work (SAFE-13).
	PhaseStart time.Time
	// Born is when the record was made, on our clock: its age counts from then (EXP-1).
	Born time.Time
	// HealthySince is since when reports of its present boot say that it is healthy, on our clock;
	// zero when they do not.
	HealthySince time.Time
	// ReportSeen is when its report came, on our clock; zero: before our time.
	ReportSeen time.Time
	// StreamSince is since when its stream has been in the state that alive tells, on our clock.
	StreamSince time.Time
	Due         Due // of the timers in the record
	// AliveGone is when its alive key went, and LastState what it said then, if that is known. Zero
	// while the key is there.
	AliveGone time.Time
	LastState store.StreamState
	// AliveUnreadable is why its alive key cannot be read, and AliveSpoiled since when, by our
	// clock: nothing is known of its stream then.
	AliveUnreadable string
	AliveSpoiled    time.Time
	// SilentSince is since when alive has told of trouble, or did at last: on our clock, and not
	// before our time.
	SilentSince time.Time
	Sighting    Sighting
	Calls       Calls
	MemberCalls []MemberCalls // of the record's memberships, in their order
}

// Sighting is an instance's machine in the newest complete List.
type Sighting struct {
	Begun   time.Time // when that List was begun; zero: there was none yet
	Listed  bool
	Down    bool   // listed as stopped, crashed or failed
	State   string // in the provider's words
	Ref     string
	Address string
	BootID  string // of its present boot, as the provider tells boots apart; "": it does not
	// Times is how many successive Lists said the same: down, or not listed. Since is when the
	// first of them was begun.
	Times int
	Since time.Time
	// Copies are other machines that the List has for the instance, in order of Ref (PROV-4). What is
	// said above is of the machine that registered, if that is known; otherwise the machine is down
	// only if all of them are.
	Copies []Copy
	// Sure is how many of them, last in a row, missed no machine whose agent has an open stream.
	Sure int
}

// Copy is one more machine of an instance.
type Copy struct {
	Ref  string
	Call string
	// Spare: one of our own calls made it, and it was the machine of another call that registered. It
	// never will, and may go.
	Spare bool
}

// Calls is what is known of the provider calls for an instance.
type Calls struct {
	Busy    bool      // one is queued or under way
	Made    bool      // a Create has returned the machine, in this term
	Ref     string    // of that machine
	Address string    //
	Deleted time.Time // when a Delete last succeeded; zero: not in this term
	// ListedUntil is until when Lists may show the machine though that Delete removed it.
	ListedUntil time.Time
	// RemovalFailed is when a removal first failed in this term; it may still have happened.
	RemovalFailed time.Time
	// Restarted is the token of the restart that the provider has carried out, in this term.
	Restarted string
	Missing   bool   // asked to restart it, the provider said that there is no such machine
	Problem   string // of the last call, if it failed
	NoRoom    bool   // its zone had no room: nothing was made
	// NoSpot: there was no spot capacity for it, in its zone or by a quota. NothingMade: and no Create
	// before can have made a machine.
	NoSpot, NothingMade bool
	Refused             bool      // the provider will never make it
	WrongTemplate       bool      // it will not, as long as the template is as it is
	RetryAt             time.Time // no further call before
	// AbsentFrom is when a List must have been begun at the earliest to prove that there is no
	// machine, and none will come of a call made before (SAFE-8, DET-4).
	AbsentFrom time.Time
}

// Extra is a machine with our shard's tag and no record (REC-8).
type Extra struct {
	Instance string
	Group    string
	Provider string
	Zone     string
	Site     string // see provider.Capabilities
	Ref      string
	State    string    // in the provider's words
	Since    time.Time // when we first saw it, on our clock
	Stray    bool      // its agent says hello
	Paused   bool      // the group that its tag names is
	// Gone: its record was deleted on purpose. Replaced: its slot has another instance. GroupGone:
	// its group was deleted on purpose. Only with one of them is it removed (REC-8).
	Gone, Replaced, GroupGone bool
	// Lost: it is known that its record was lost (SAFE-15). Damaged: and no operator has
	// acknowledged that.
	Lost, Damaged bool
	Claim         *store.Claim // what it was, if it is known
}

// mayGo reports whether there is positive evidence that the machine is not wanted.
func (x *Extra) mayGo() bool {
	return !x.Stray && !x.Damaged && (x.Gone || x.Replaced || x.GroupGone)
}

// slotIndex finds slots by number. Nearly all numbers are below the number of slots, and looking
// those up in a map would take a large part of the time that a plan of a large group takes.
type slotIndex struct {
	near []*slot       // by number
	far  map[int]*slot // numbers beyond near
}

func newSlotIndex(size int) slotIndex { return slotIndex{near: make([]*slot, size)} }

// get returns nil if there is no slot with this number.
func (x *slotIndex) get(n int) *slot {
	if n >= 0 && n < len(x.near) {
		return x.near[n]
	}
	return x.far[n]
}

// set puts a slot at a number; nil removes what is there.
func (x *slotIndex) set(n int, sl *slot) {
	switch {
	case n >= 0 && n < len(x.near):
		x.near[n] = sl
	case sl == nil:
		delete(x.far, n)
	default:
		if x.far == nil {
			x.far = map[int]*slot{}
		}
		x.far[n] = sl
	}
}
