package plan

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// Snapshot is all that a plan depends on, besides the time. Times in it come from the same clock as
// the time given to Compute (they are compared with it, never with a time in a record).
type Snapshot struct {
	Keys     store.Keys
	Revision store.Revision // of the cache
	Seed     uint64         // random for each term: makes instance IDs unguessably different
	Shard    store.Versioned[store.Shard]
	// ShardUnreadable: Shard is what it was when it was read last.
	ShardUnreadable bool
	Damaged         []store.Damaged // records of all groups that are lost or unreadable, in order of key (SAFE-15)

	Stale      string        // why the cache may not be used to destroy (SAFE-3); "" if it may
	GraceEnd   time.Time     // nothing is judged lost before (SAFE-1)
	GraceWhy   string        // what began the grace
	SessionTTL time.Duration // of the replicas' sessions (DET-17)

	Zones map[string][]string // of each provider that this coordinator has
	// Full are the zones, by provider, that had no room lately, and until when they are not tried
	// first.
	Full   map[string]map[string]time.Time
	Groups []Group // in order of name
	// Elsewhere are the losses in the groups that are not in this snapshot, as they were planned
	// last (SAFE-2).
	Elsewhere Tally
	Recorded  int                              // instances in the shard
	Orders    []store.Versioned[store.Request] // that concern the shard as a whole, in order of ID
	Extras    []Extra                          // in order of instance
	// UnnotedUntil: before, agents may say hello that have no record and that no replica has noted,
	// because they are too many. Zero: there are none.
	UnnotedUntil time.Time
	Lost         []store.Versioned[store.Request] // requests that concern nothing we know, in order of ID
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

// Due says when the timers of a record end, by name, on our clock: SAFE-13.
type Due map[string]time.Time

// Tally counts the losses of groups, for the storm of a shard (SAFE-2).
type Tally struct {
	Lost   int // instances lost, or suspect, since lately
	Now    int // instances lost, since whenever
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
	Template       string         // hash of the group's InstanceSpec; "" if it was not computed
}

// Instance is a record with the evidence on it.
type Instance struct {
	store.Versioned[store.Instance]
	Alive  store.Versioned[store.Alive]
	Report store.Versioned[store.Report]
	// PhaseStart is when it entered its phase, on our clock, less the time in which no leader was
	// at work (SAFE-13).
	PhaseStart time.Time
	// Born is when the record was made, on our clock: its age counts from then (EXP-1).
	Born time.Time
	// HealthySince is since when reports of its present boot say that it is healthy, on our clock;
	// zero when they do not.
	HealthySince time.Time
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
	// Sure is how many of them, last in a row, missed no machine whose agent has an open stream.
	Sure int
}

// Calls is what is known of the provider calls for an instance.
type Calls struct {
	Busy    bool      // one is queued or under way
	Made    bool      // a Create has returned the machine, in this term
	Ref     string    // of that machine
	Address string    //
	Deleted time.Time // when a Delete last succeeded; zero: not in this term
	// RemovalFailed is when a removal first failed in this term; it may still have happened.
	RemovalFailed time.Time
	// Restarted is the token of the restart that the provider has carried out, in this term.
	Restarted string
	Missing   bool      // asked to restart it, the provider said that there is no such machine
	Problem   string    // of the last call, if it failed
	NoRoom    bool      // its zone had no room: nothing was made
	Refused   bool      // the provider will never make it
	RetryAt   time.Time // no further call before
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
