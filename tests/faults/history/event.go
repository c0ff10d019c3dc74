package history

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// Event is something that was observed. Exactly one of the pointers is set.
type Event struct {
	At Time `json:"at"`

	Call    *Call    `json:"call,omitempty"`
	Machine *Machine `json:"machine,omitempty"`
	Harm    *Harm    `json:"harm,omitempty"`
	Trouble *Trouble `json:"trouble,omitempty"`
	Change  *Change  `json:"change,omitempty"`
	Commit  *Commit  `json:"commit,omitempty"`
	Order   *Order   `json:"order,omitempty"`
	Mark    *Mark    `json:"mark,omitempty"`
	Left    *Left    `json:"left,omitempty"`

	Membership *Membership `json:"membership,omitempty"`
	Torn       *Torn       `json:"torn,omitempty"`

	Certificate *Certificate `json:"certificate,omitempty"`
	Leaked      *Leaked      `json:"leaked,omitempty"`
}

// Call is a provider call, as the provider sees it. It gives two events: at its beginning and at
// its end.
type Call struct {
	ID       uint64 `json:"id"` // pairs the two
	Ended    bool   `json:"ended,omitempty"`
	Replica  string `json:"replica"`
	Method   Method `json:"method"`
	Instance string `json:"instance,omitempty"`
	Zone     string `json:"zone,omitempty"`   // of Create
	Err      string `json:"err,omitempty"`    // the caller's error; "" also if it has gone
	Listed   int    `json:"listed,omitempty"` // machines in the answer to List
	Lie      string `json:"lie,omitempty"`    // how the answer was falsified; "" if it was not
}

// Method is a method of the provider's contract.
type Method string

// Falsified answers of calls that change something, where the judge must tell them apart.
const (
	Slow     = "slow"        // done and answered correctly, but later
	DoneLate = ", done late" // how lies end by which it is done some time after its answer
)

// The methods.
const (
	Create  Method = "create"
	Stop    Method = "stop"
	Delete  Method = "delete"
	Restart Method = "restart"
	List    Method = "list"
)

// Machine is a step in a machine's life, as the provider sees it.
type Machine struct {
	Instance string `json:"instance"`
	What     Step   `json:"what"`
	Boot     int    `json:"boot,omitempty"` // 1 for the first
	Zone     string `json:"zone,omitempty"`
	Why      string `json:"why,omitempty"`
}

// Step is a step in a machine's life.
type Step string

// The steps.
const (
	Made    Step = "made"    // the machine exists; a second one for the same instance is a double
	Booted  Step = "booted"  // its agent was started
	Ended   Step = "ended"   // its agent has ended; Why says who wanted that
	Removed Step = "removed" // the machine no longer exists

	WorkloadBegan Step = "workload-began" // its workload was seen running
	WorkloadEnded Step = "workload-ended" // its workload has ended, while the machine stays up
)

// Why a machine ended.
const (
	ByCall  = "call"  // a Stop, Delete or Restart
	ByFault = "fault" // it was crashed
	BySelf  = "self"  // the agent ended without an order
	ByEnd   = "end"   // the run is over
)

// Membership is what happened to an instance in the load balancer, or a list of all that it has, as
// the load balancer sees it.
type Membership struct {
	Instance string         `json:"instance,omitempty"`
	What     MembershipStep `json:"what"`
	Replica  string         `json:"replica,omitempty"` // whose call it was; "": a fault's
	Call     string         `json:"call,omitempty"`    // of Failed
	// Of Listed: the instances that it begins connections to, and when the call began.
	Ready []string `json:"ready,omitempty"`
	Began Time     `json:"began,omitempty"`
}

// MembershipStep is a step of a membership.
type MembershipStep string

// The steps.
const (
	Serves MembershipStep = "serves" // it gets new connections from now on
	Drains MembershipStep = "drains" // it gets none, and keeps those in use
	Leaves MembershipStep = "leaves" // it is no member any more
	Failed MembershipStep = "failed" // a call for it was answered with an error
	Listed MembershipStep = "listed" // a List was answered in full
)

// Torn is a managed file on a machine that is neither what it was nor what it is to be.
type Torn struct {
	Instance string `json:"instance"`
	Path     string `json:"path"`
	What     string `json:"what"` // what is wrong with it
}

// Certificate is a managed certificate that was seen on a machine, other than the one before.
type Certificate struct {
	Instance string `json:"instance"`
	Path     string `json:"path"`
	Serial   string `json:"serial"`
	// Left is how long it still lasts, by a clock that is right.
	Left time.Duration `json:"left"`
}

// Leaked is the private key of a machine, seen elsewhere.
type Leaked struct {
	Instance string `json:"instance"`
	Where    string `json:"where"`
	As       string `json:"as"` // how it is encoded there
}

// Harm is a fault of one machine. While it lasts, and for as long after as the coordinators need to
// see its end, the machine may rightly be judged failed. A fault of replicas, etcd or their network
// is not a machine's fault: it is Trouble alone.
type Harm struct {
	Instance string   `json:"instance"`
	Kind     HarmKind `json:"kind"`
	Ends     bool     `json:"ends,omitempty"` // otherwise it begins
}

// HarmKind is a kind of machine fault.
type HarmKind string

// The kinds of machine faults.
const (
	Crashed HarmKind = "crashed" // it has crashed, and its provider lists that
	Frozen  HarmKind = "frozen"  // its agent and workload are frozen
	Cut     HarmKind = "cut"     // it reaches no replica
	Sick    HarmKind = "sick"    // its workload runs, and its check fails
	Exited  HarmKind = "exited"  // its workload or agent was killed
)

// Trouble is a fault of the cluster. It gives two events, or one if it is over at once.
type Trouble struct {
	ID   int    `json:"id"` // pairs the two
	Kind string `json:"kind"`
	What string `json:"what"` // for people: its target and size
	Ends bool   `json:"ends,omitempty"`
	// ManyCut: so many machines cannot be heard of that the storm rule must hold: none of those
	// that are up may be replaced (SAFE-2).
	ManyCut bool `json:"many_cut,omitempty"`
}

// Change is a change of one key, seen by a watcher outside the cluster that reaches etcd whatever
// happens to the network. All changes of a revision are adjacent.
type Change struct {
	Line     int            `json:"line"` // of etcd's history: another one begins when it was wiped or restored
	Revision store.Revision `json:"revision"`
	Key      string         `json:"key"`
	Value    []byte         `json:"value,omitempty"`
	Deleted  bool           `json:"deleted,omitempty"`
	Created  store.Revision `json:"created,omitempty"`
	Lease    store.LeaseID  `json:"lease,omitempty"`
	// Found: it was there when the watcher looked for the first time, or again after it had missed
	// something. Its revision is then the revision of the key's last write, and who wrote in between
	// is not known. A key that was found to be gone was deleted at the revision, or before. When
	// another line begins, all that is there is found, and all else is gone.
	Found bool `json:"found,omitempty"`
}

// Commit is a transaction as the replica's database client saw it. It gives two events.
type Commit struct {
	ID      uint64      `json:"id"`
	Ended   bool        `json:"ended,omitempty"`
	Replica string      `json:"replica"`
	Process int         `json:"process"`        // of the replica: IDs are unique within one
	Fence   store.Fence `json:"fence,omitzero"` // that it compares
	// Believed is the fence that the replica won last or stands with, whether or not this
	// transaction compares one.
	Believed store.Fence    `json:"believed,omitzero"`
	Keys     []string       `json:"keys,omitempty"`     // that it writes
	Outcome  Outcome        `json:"outcome,omitempty"`  // when it has ended
	At       store.Revision `json:"revision,omitempty"` // if it happened
}

// Outcome is what a client knows about a transaction that has ended.
type Outcome string

// The outcomes.
const (
	Happened Outcome = "happened"
	Refused  Outcome = "refused" // nothing was written
	Unknown  Outcome = "unknown" // it may still happen
)

// Order is an operator's command. It gives two events.
type Order struct {
	ID      int      `json:"id"`
	Ended   bool     `json:"ended,omitempty"`
	Command []string `json:"command"`
	Err     string   `json:"err,omitempty"`
}

// Mark is a moment of a run.
type Mark struct {
	What MarkKind `json:"what"`
	Text string   `json:"text,omitempty"`
	// Groups are the sizes wanted, for Healed and Quiet.
	Groups map[string]int `json:"groups,omitempty"`
	// Machines are those that exist by the provider's own count, for Quiet.
	Machines []string `json:"machines,omitempty"`
	// Leases are etcd's, with the keys on each, for Quiet.
	Leases map[string][]string `json:"leases,omitempty"`
}

// MarkKind is a kind of moment.
type MarkKind string

// The moments.
const (
	Begun  MarkKind = "begun"  // all processes run, and the groups are complete; faults begin
	Healed MarkKind = "healed" // all faults have ended; the time limit of convergence starts
	Quiet  MarkKind = "quiet"  // every group was found complete, and nothing changes any more
	Missed MarkKind = "missed" // the watcher beside etcd has missed changes: they were compacted
)

// Left is something that was left behind after the end.
type Left struct {
	What string `json:"what"` // a process, a file, a socket, a goroutine
}
