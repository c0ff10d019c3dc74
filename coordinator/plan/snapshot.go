package plan

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/store"
)

// Snapshot is everything that a plan depends on, besides the time. Its times come from the same
// clock as the time given to Compute, and are compared with it.
//
// Times in records come from the wall clocks of leaders, which may be wrong. They are compared with
// the present only where a wrong clock destroys nothing, and a time in the future is ignored: the
// failures of a slot (flapsNow, forgetFrom), the marks of drills (Instance.Drilled, mustHalt), the
// age of an instance that is doomed from its start (doomedAsMade), and schedules and windows, which
// are times of day.
type Snapshot struct {
	Keys     store.Keys
	Revision store.Revision // of the cache
	Seed     uint64         // random for each term: makes instance IDs unpredictable
	Shard    store.Versioned[store.Shard]
	// ShardUnreadable: Shard has its last readable value.
	ShardUnreadable bool
	Damaged         []store.Damaged // records of all groups that are lost or unreadable, ordered by key (SAFE-15)

	Stale      store.Cause   // why the cache must not be used to destroy (SAFE-3); zero if it may
	GraceEnd   time.Time     // no instance is judged lost before (SAFE-1)
	GraceWhy   string        // what began the grace
	SessionTTL time.Duration // time-to-live of the replicas' sessions (DET-17)

	// ClocksApart is by how much the clocks of the replicas differ: a wrong clock must not open a
	// window (SAFE-13).
	ClocksApart time.Duration

	Zones map[string][]string // of each provider that this coordinator has
	// Full are the zones that lately had no room, and until when other zones are tried first.
	Full map[Market]map[string]time.Time
	// Refusals are refusals that apply to all machines of a kind (PROV-5).
	Refusals map[Refused]Refusal
	// Outages are the providers that fail whatever the template is (ROLL-4).
	Outages map[string]Outage
	Groups  []Group // ordered by name
	// Elsewhere are the losses of groups that are not in this snapshot, from their last plans
	// (SAFE-2).
	Elsewhere Tally
	Recorded  int // instances in the shard
	// Limits are the limits in the shard's settings, and LimitsTurn is the revision of the key that
	// every creation writes while there are any: see Turns (CAP-1).
	Limits     []Limit
	LimitsTurn store.Revision
	// Agents are the agent versions that coordinators serve, the latest last (PROV-7).
	Agents []AgentVersion
	// NoneAway: all coordinators of the last day are up, so an agent version that none of them
	// serves is withdrawn.
	NoneAway bool
	// BudgetTurns are the revisions of the keys of shared budgets, by budget_group. DownElsewhere
	// is what is down in groups that share one but are not in this snapshot (REC-18).
	BudgetTurns   map[string]store.Revision
	DownElsewhere map[string]Down
	// Balancers are the load balancers of this coordinator. Configured also has the balancers of other
	// replicas.
	Balancers  map[string]*Balancer
	Configured map[string]bool
	Providers  Providers
	Orders     []store.Versioned[store.Request] // orders for the shard as a whole, ordered by ID
	Extras     []Extra                          // ordered by instance
	// UnnotedUntil: until then, agents without a record may exist that no replica has noted,
	// because there are too many. Zero: there are none.
	UnnotedUntil time.Time
	Lost         []store.Versioned[store.Request] // requests without a known target, ordered by ID
}

// AgentVersion is an agent version that coordinators serve.
type AgentVersion struct {
	Version string
	// Before is a coordinator of an earlier version, and BeforeOf its version; "": there is none.
	Before, BeforeOf string
}

// Market identifies a pool of machines: a provider has separate room and quotas for spot machines.
type Market struct {
	Provider string
	Spot     bool
}

// MarketOf returns the pool of the machines that a spec describes.
func MarketOf(s store.InstanceSpec) Market { return Market{Provider: s.Provider, Spot: s.Spot} }

// Refused identifies what is refused: machines of a type, or all machines of a provider if Type is
// empty. A list of alternative types is refused as a whole.
type Refused struct {
	Provider, Type string
	Spot           bool // only spot machines
}

// RefusedOf returns what identifies the machines that a spec describes.
func RefusedOf(s store.InstanceSpec) Refused {
	return Refused{Provider: s.Provider, Type: strings.Join(s.Template.Types(), ","), Spot: s.Spot}
}

// Refusal is a failed creation whose reason applies to others as well: a quota or credentials.
type Refusal struct {
	Why         string
	Credentials bool      // else a quota
	Until       time.Time // when one creation may retry
}

// Outage is since when, on our clock, a provider fails, until when that is known, and its first
// error. It is over at Until if nothing shows it again before; zero: it stands until the provider
// works.
type Outage struct {
	Since, Last, Until time.Time
	Why                string
}

// outageCounts is how long a provider has to be seen to fail before the roll's deadline starts
// over: single failures, which come at any time, keep no bad template from being noticed.
const outageCounts = time.Minute

// Lasts reports whether a provider is known to have failed for so long that a roll's deadline
// starts over.
func (o Outage) Lasts(now time.Time) bool {
	known := o.Last
	if now.Before(known) {
		known = now
	}
	return known.Sub(o.Since) >= outageCounts
}

// refusal returns the refusal that applies to a member's machine.
func (v *view) refusal(m *member) (of Refused, r Refusal, refused bool) {
	spec := &m.Record.Spec
	for _, of := range []Refused{{Provider: spec.Provider}, RefusedOf(*spec)} {
		if r, refused := v.s.Refusals[of]; refused {
			return of, r, true
		}
	}
	return Refused{}, Refusal{}, false
}

// Group is a group with everything that belongs to it.
type Group struct {
	Name string
	// Unreadable is why a record of the group cannot be read; "" if all can. If it is set, nothing
	// is decided for the group.
	Unreadable string
	// OnlyNumbers: nothing has changed since the last snapshot of the group but numbers: in reports,
	// from outside, in the wish of its status, and how often Lists showed what they had shown. Its
	// instances are in the same memory.
	OnlyNumbers bool
	Spec        Spec
	Turn        store.Revision // of the group's key below turns/: see Turns
	Status      store.Versioned[store.Status]
	Due         Due                           // of the timers in the status
	Slots       []store.Versioned[store.Slot] // ordered by number
	Instances   []Instance                    // ordered by ID
	Requests    []store.Versioned[store.Request]
	// Readings are the known values of the group's external metrics, by source.
	Readings map[string]query.Reading
	// SlotDue is when the timers of each slot end.
	SlotDue map[int]Due
	// Extras are machines with the group's tag and no record that an operator wants to adopt.
	Extras []Extra
	// Damaged are the group's instances whose records are lost or unreadable, ordered by key.
	// Unreadable ones are not in Instances. An entry without an instance stands for a record that
	// is known only to be missing.
	Damaged []store.Damaged
	// Unlisted names a provider that the group waits for; "" if it waits for none. No leader has
	// counted the group's records, so only a complete List of this term can show whether any were
	// lost (SAFE-15).
	Unlisted string
	// StatusSpoiled is why the status key cannot be read. Status then has its former value with the
	// key's present revision, and is written back (SAFE-16).
	StatusSpoiled string
	// SlotsSpoiled are the unreadable slots. They are written back before anything else is decided
	// for the group (SAFE-16).
	SlotsSpoiled []SpoiledSlot
}

// SpoiledSlot is the value of a slot before it became unreadable, with the key's present revision,
// and why it cannot be read.
type SpoiledSlot struct {
	store.Versioned[store.Slot]
	Why string
}

// Sources are the external metrics that the group's spec in force needs now; its analyses need
// theirs only during a roll.
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

// Due maps the timers of a record, by name, to their ends on our clock: SAFE-13.
type Due map[string]time.Time

// Tally counts losses: of one group or, added up, of several, for the storm of a shard (SAFE-2).
type Tally struct {
	Lost   int // instances that were lost or became suspect within the window
	Now    int // instances lost, or held back from that by the grace alone, since whenever
	Of     int // instances whose agents had registered
	Groups int // groups with a loss
}

// Spec is groups/<name> as found.
type Spec struct {
	Key      string
	Modified store.Revision // 0: no such key
	// Static is the key of the group in the shard's file that this one overrides (REC-6).
	Static         string
	StaticModified store.Revision // 0: no such key
	Group          store.Group    // the merged spec
	Beside         *store.Beside  // the overrides of a static group
	Problem        string         // why it cannot be in force; "" if it can
	Pending        bool           // its provider has not said yet whether it is right
	Template       string         // hash of the group's InstanceSpec; "" if it was not computed
}

// InForce reports whether the group is planned by what its keys say now.
func (s *Spec) InForce() bool {
	return max(s.Modified, s.StaticModified) != 0 && s.Problem == "" && !s.Pending
}

// Instance is a record with its evidence.
type Instance struct {
	store.Versioned[store.Instance]
	Alive  store.Versioned[store.Alive]
	Report store.Versioned[store.Report]
	Joined bool // a machine has joined as it
	// PhaseStart is when the instance entered its phase, on our clock, less the time without a
	// working leader (SAFE-13).
	PhaseStart time.Time
	// Born is when the record was made, on our clock: the start of its age (EXP-1).
	Born time.Time
	// HealthySince is the time, on our clock, since which reports of the present boot are healthy;
	// zero while they are not.
	HealthySince time.Time
	// ReportSeen is when the report came, on our clock; zero: before our term.
	ReportSeen time.Time
	// StreamSince is since when the stream has been in the state that alive has, on our clock.
	StreamSince time.Time
	Due         Due // of the timers in the record
	// AliveGone is when the alive key was deleted, and LastState its last state, if known. Zero
	// while the key exists.
	AliveGone time.Time
	LastState store.StreamState
	// AliveUnreadable is why the alive key cannot be read, and AliveSpoiled since when, on our
	// clock: the stream's state is unknown then.
	AliveUnreadable string
	AliveSpoiled    time.Time
	// SilentSince is since when alive has reported trouble, or had before it was deleted: on our
	// clock, and not before our term.
	SilentSince time.Time
	Sighting    Sighting
	Calls       Calls
	MemberCalls []MemberCalls // of the record's memberships, in the same order
}

// Sighting is what the newest complete List shows of an instance's machine.
type Sighting struct {
	Begun   time.Time // start of that List; zero: there was none yet
	Listed  bool
	Down    bool   // listed as stopped, crashed or failed
	State   string // in the provider's words
	Ref     string
	Address string
	BootID  string // of the present boot, as the provider identifies it; "": it does not
	// Times is how many successive Lists said the same: down, or not listed. Since is the start of
	// the first of them.
	Times int
	Since time.Time
	// Copies are further machines of the instance in the List, ordered by Ref (PROV-4). The fields
	// above describe the machine that registered, if known; otherwise the machine is down only if
	// all of them are.
	Copies []Copy
	// Sure is how many of the latest Lists, in a row, included every machine whose agent has an
	// open stream.
	Sure int
}

// Copy is a further machine of an instance.
type Copy struct {
	Ref  string
	Call string
	// Spare: one of our own calls created it, and the machine of another call registered. It can
	// never register, and may be removed.
	Spare bool
}

// Calls is the state of the provider calls for an instance.
type Calls struct {
	Busy    bool      // one is queued or under way
	Made    bool      // a Create has returned the machine in this term
	Ref     string    // of that machine
	Address string    //
	Deleted time.Time // when a Delete last succeeded; zero: not in this term
	// ListedUntil is until when Lists may still show the machine that Delete removed.
	ListedUntil time.Time
	// RemovalFailed is when a removal first failed in this term; the machine may have been removed
	// nevertheless.
	RemovalFailed time.Time
	// Restarted is the token of the restart that the provider has carried out in this term.
	Restarted string
	// PutOff is until when a restart was put off while the agent had an open stream, so that nothing
	// was wrong with the machine: the provider throttled it, or had to list the machine first in this
	// term.
	PutOff  time.Time
	Missing bool   // a restart was refused because the machine does not exist
	Problem string // of the last call, if it failed
	NoRoom  bool   // its zone had no room: nothing was made
	// NoSpot: it found no spot capacity, in its zone or because of a quota. NothingMade: and no
	// earlier Create can have created a machine.
	NoSpot, NothingMade bool
	Refused             bool      // the provider will never create it
	WrongTemplate       bool      // it will not with this template
	RetryAt             time.Time // no further call before this time
	// AbsentFrom is the earliest start of a List that proves that there is no machine, and that no
	// earlier call can still create one (SAFE-8, DET-4).
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
	Stray    bool      // its agent reports to a coordinator
	Paused   bool      // the group of its tag exists
	// Gone: its record was deleted on purpose. Replaced: its slot has another instance. GroupGone:
	// its group was deleted on purpose. It is removed only with one of these (REC-8).
	Gone, Replaced, GroupGone bool
	// Lost: its record is known to be lost (SAFE-15). Damaged: and no operator has acknowledged
	// that.
	Lost, Damaged bool
	Claim         *store.Claim // its claim, if known
}

// mayGo reports whether there is positive evidence that the machine is not wanted.
func (x *Extra) mayGo() bool {
	return !x.Stray && !x.Damaged && (x.Gone || x.Replaced || x.GroupGone)
}

// slotIndex finds slots by number. Nearly all numbers are below the number of slots; a map would
// take a large part of a large group's planning time.
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

// set stores a slot at a number; nil removes it.
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
