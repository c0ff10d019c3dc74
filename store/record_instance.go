package store

import "time"

// Instance is the durable record of one machine.
type Instance struct {
	Schema  int       `json:"schema"`
	ID      string    `json:"id"`
	Group   string    `json:"group"`
	Slot    int       `json:"slot"`
	Phase   Phase     `json:"phase"`
	Managed bool      `json:"managed"`
	Since   time.Time `json:"since"`   // when it entered its phase
	Created time.Time `json:"created"` // when the record was made

	Template string       `json:"template"` // hash of what the machine was made from
	Spec     InstanceSpec `json:"spec"`     // what it was made from, so that any leader can ask again
	Zone     string       `json:"zone,omitempty"`

	Called  bool   `json:"called,omitempty"` // a provider may have been asked to create it
	Token   string `json:"token,omitempty"`  // set up by hand: hash of the token that its machine joins with
	Site    string `json:"site,omitempty"`   // where the machine is, if not all coordinators see it
	Ref     string `json:"ref,omitempty"`    // the provider's own name of the machine
	Address string `json:"address,omitempty"`

	Replaces string `json:"replaces,omitempty"` // the instance whose place in the slot it takes
	// Purpose is what it was made for; "": a release before did not say. See MadeFor.
	Purpose Purpose `json:"purpose,omitempty"`
	// Leaves is why it drains or is deleted; "": it does not, or a release before did not say. See
	// LeavesBecause.
	Leaves Purpose `json:"leaves,omitempty"`
	// Rebalances: it was made to even the zones, or to give the group its shares of capacity, and is
	// withdrawn rather than made otherwise (REC-17, SPOT-4).
	Rebalances bool `json:"rebalances,omitempty"`
	// Converts: it was made for the shares of capacity.
	Converts bool `json:"converts,omitempty"`
	// Fallback: it is on demand because there was no spot capacity (SPOT-4).
	Fallback  bool       `json:"fallback,omitempty"`
	Condemned *Condemned `json:"condemned,omitempty"` // ordered to go: replacement first, unless Now
	Protected string     `json:"protected,omitempty"` // "", "removal" or "heal" (REC-13)
	// Protection says more of it; nil: a release before did not.
	Protection *Protection `json:"protection,omitempty"`
	Counted    bool        `json:"counted,omitempty"` // its failure is in its slot's count (FLAP-1)
	Drill      *Drill      `json:"drill,omitempty"`   // a failure of it is caused on purpose (DAY-6)
	Doomed     *Doom       `json:"doomed,omitempty"`  // it is known that it will end
	Drain      *Drain      `json:"drain,omitempty"`   // while draining
	Awaits     *Awaits     `json:"awaits,omitempty"`  // to be restarted once it is idle
	Restart    *Restart    `json:"restart,omitempty"` // the last one, until the instance is healthy again
	Traffic    []Traffic   `json:"traffic,omitempty"` // its load balancers, in order of name
	// deleting: it was found dead, and its machine uses no budget (REC-18)
	Dead     bool   `json:"dead,omitempty"`
	Boot     string `json:"boot,omitempty"`     // the machine's boot when the instance got healthy last
	Relaunch int    `json:"relaunch,omitempty"` // how many of its group's relaunches it has gone through
	Ailing   bool   `json:"ailing,omitempty"`   // it failed its checks when it got its template in its place
	// Upgrade is another version that its agent is offered; nil: none.
	Upgrade *AgentUpgrade `json:"upgrade,omitempty"`
	// hash of what its agent is to have applied: see InstanceSpec.ConfigHash
	Config string `json:"config,omitempty"`

	Last Decision `json:"last"` // the decision that wrote this record
}

// InstanceSpec is the part of a group's spec that a machine is made from.
type InstanceSpec struct {
	Provider            string            `json:"provider"`
	Template            Template          `json:"template"`
	Workload            Workload          `json:"workload"`
	Vars                map[string]string `json:"vars,omitempty"`
	Secrets             map[string]string `json:"secrets,omitempty"`
	Report              ReportSpec        `json:"report"`
	Checks              []Check           `json:"checks,omitempty"`
	Files               []File            `json:"files,omitempty"`
	RegistrationTimeout Duration          `json:"registration_timeout"`
	MaxChecking         Duration          `json:"max_checking_health_duration"`
	StopTimeout         Duration          `json:"stop_timeout"`
	Drain               DrainSpec         `json:"drain,omitzero"`
	Busy                BusyProbe         `json:"busy,omitzero"`
	Lifecycle           string            `json:"lifecycle,omitempty"`
	Slots               SlotsSpec         `json:"slots,omitzero"`
	Spot                bool              `json:"spot,omitempty"` // the machine is bought as one that may be taken away
	Notices             NoticeSpec        `json:"notices,omitzero"`
}

// Doom means that the instance will end in any case. It is replaced elsewhere first and drained,
// and does not count as a failure of its slot (SPOT-2, DRAIN-3).
type Doom struct {
	Rule     string    `json:"rule"`
	Why      string    `json:"why"`
	Cause    Cause     `json:"cause,omitzero"`
	At       time.Time `json:"at"`
	Deadline *Timer    `json:"deadline,omitempty"` // when it ends, if a notice said
}

// Drain is an instance's leaving: its work goes elsewhere before its machine goes (DRAIN-1). It
// ends by the end of the hook, an acknowledgement, or the timer.
type Drain struct {
	Token string `json:"token"` // distinguishes this drain from others in the agent's report
	Rule  string `json:"rule"`
	Why   string `json:"why"`
	Cause Cause  `json:"cause,omitzero"`
	Timer Timer  `json:"timer"`
	// Lost: it drains because it was lost. If its agent returns, so does the instance (DET-15).
	Lost bool `json:"lost,omitempty"`
	// Busy is how long it is waited for until its workload is idle, beside what else is waited for
	// (BUSY-1); nil: not at all.
	Busy *Timer `json:"busy,omitempty"`
	// Done names the operator who acknowledged the end of the drain; "" until then.
	Done string `json:"done,omitempty"`
}

// Protection is who protected an instance, why, and until when (REC-13).
type Protection struct {
	By   string    `json:"by"`
	Why  string    `json:"why,omitempty"`
	At   time.Time `json:"at"`
	Ends *Timer    `json:"ends,omitempty"` // nil: by order
}

// MaxProtection is the longest time of a protection that ends by itself.
const MaxProtection = 10 * 365 * 24 * time.Hour

// Awaits is a restart that waits until the workload is idle (BUSY-1).
type Awaits struct {
	Template string `json:"template"` // that it is for
	Relaunch int    `json:"relaunch,omitempty"`
	Timer    Timer  `json:"timer"`
}

// Restart is a restart in place: of the workload by the agent, or of the machine by its provider
// (HEAL-1).
type Restart struct {
	Level string    `json:"level"` // RestartWorkload or RestartMachine
	Rule  string    `json:"rule"`
	Token string    `json:"token"` // distinguishes this restart from others in the agent's report
	Boot  string    `json:"boot"`  // the machine's boot before: the restart is repeated only while it reports (SAFE-8)
	At    time.Time `json:"at"`
	// the instance had failed and is being healed, also if a roll restarts it meanwhile
	Heals bool `json:"heals,omitempty"`
	// Listed is the previous boot in the provider's terms, if it distinguishes boots: the restart is
	// not repeated once another boot is listed.
	Listed string `json:"listed,omitempty"`
	// Renews: the agent has not confirmed its configuration, so the machine may come up with the one
	// before.
	Renews bool `json:"renews,omitempty"`
}

// ByAgent reports whether the agent carries it out and reports its token.
func (r *Restart) ByAgent() bool { return r.Level == RestartWorkload || r.Renews }

// RestartWanted returns the token of the restart that the agent has to carry out, or has carried
// out; "" if there is none. After a restart of the machine the new boot gets it as well, because it
// may not know yet what to run.
func (i *Instance) RestartWanted() string {
	r := i.Restart
	switch {
	case r == nil || !r.ByAgent():
		return ""
	case i.Phase == Stopping && r.Level == RestartWorkload, i.Phase == Starting, i.Phase == Checking:
		return r.Token
	default:
		return ""
	}
}

// The levels of Restart.
const (
	RestartWorkload = "workload"
	RestartMachine  = "machine"
)

// Place returns the slot as a journal entry names it; nil for an instance on demand.
func (i *Instance) Place() *int {
	if i.Slot < 0 {
		return nil
	}
	n := i.Slot
	return &n
}

// Timers returns the timers in the record, by name: see Timer.
func (i *Instance) Timers() []NamedTimer {
	var out []NamedTimer
	if i.Drain != nil {
		out = append(out, NamedTimer{TimerDrain, i.Drain.Timer})
	}
	if i.Drain != nil && i.Drain.Busy != nil {
		out = append(out, NamedTimer{TimerBusy, *i.Drain.Busy})
	}
	if i.Awaits != nil {
		out = append(out, NamedTimer{TimerAwaits, i.Awaits.Timer})
	}
	if i.Doomed != nil && i.Doomed.Deadline != nil {
		out = append(out, NamedTimer{TimerDoomed, *i.Doomed.Deadline})
	}
	if i.Protection != nil && i.Protection.Ends != nil {
		out = append(out, NamedTimer{TimerProtection, *i.Protection.Ends})
	}
	if i.Upgrade != nil {
		out = append(out, NamedTimer{TimerUpgrade, i.Upgrade.Timer})
	}
	for _, t := range i.Traffic {
		if t.Timer != nil {
			out = append(out, NamedTimer{TimerTraffic(t.Balancer), *t.Timer})
		}
	}
	return out
}

// Condemned means that an operator wants the instance gone.
type Condemned struct {
	By  string    `json:"by"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
	Now bool      `json:"now,omitempty"` // at once, without a replacement first
}

// Drill is a failure that is caused on purpose (DAY-6), once, and nothing is blamed for what
// follows.
type Drill struct {
	Request string    `json:"request"`
	By      string    `json:"by"`
	At      time.Time `json:"at"` // when the leader took the order
	// Asked: the provider has been asked to end the machine, or was about to be. Set from the start
	// where no provider is to be asked.
	Asked bool      `json:"asked,omitempty"`
	Kind  DrillKind `json:"kind,omitempty"`
	// Epoch, of DrillAgent and DrillWorkload, is the stream on which the order is sent: an agent that
	// comes back on another one does not get it again.
	Epoch uint64 `json:"epoch,omitempty"`
}

// DrillKind is what fails.
type DrillKind string

// The kinds of drill.
const (
	DrillMachine  DrillKind = ""         // its provider ends the machine
	DrillAgent    DrillKind = "agent"    // the agent kills itself
	DrillWorkload DrillKind = "workload" // the agent kills the workload
)

// DrillBegins is how long after its order a drill may still begin: later, the group may be in
// another state.
const DrillBegins = time.Minute

// DrillTold is how long after its order an agent may still receive it: the leader's check of the
// group is not repeated.
const DrillTold = 10 * time.Second

// DrillTime is how long after the order a failure is a part of the drill.
const DrillTime = 10 * time.Minute

// Drilled reports whether what happens to the instance now is a part of a drill. A drill that a
// wrong clock put into the future hides no failure.
func (i *Instance) Drilled(now time.Time) bool {
	return i.Drill != nil && now.Before(i.Drill.At.Add(DrillTime)) && now.After(i.Drill.At.Add(-time.Minute))
}

// Decision is why something was done.
type Decision struct {
	Rule     string    `json:"rule"`
	What     string    `json:"what,omitempty"` // was done, as the journal says it; versions before did not tell
	Why      string    `json:"why"`
	Cause    Cause     `json:"cause,omitzero"`
	Revision Revision  `json:"revision"` // of the cache it was made on
	At       time.Time `json:"at"`
}

// Slot is one of the places that a group keeps filled. It outlives the instances in it.
type Slot struct {
	Schema   int       `json:"schema"`
	Group    string    `json:"group"`
	Number   int       `json:"number"`
	Failures []Failure `json:"failures,omitempty"` // oldest first, the newest few (FLAP-1)
	Flapping int       `json:"flapping,omitempty"` // how often it was made to wait since it began to flap
	Retry    *Timer    `json:"retry,omitempty"`    // flapping: no new replacement before it ends
	GiveUp   *Timer    `json:"give_up,omitempty"`  // flapping: given up when it ends (FLAP-3)
	// Why it was given up, in fields and as text; Errored is "" if it was not.
	ErroredCause Cause  `json:"errored_cause,omitzero"`
	Errored      string `json:"errored,omitempty"`
	Template     string `json:"template,omitempty"` // on which the failures were: another one starts over (FLAP-7)
	// the instance that has left it, until its replacement is requested
	Vacated *Vacated `json:"vacated,omitempty"`
}

// Vacated names the instance whose place in a slot is to be taken.
type Vacated struct {
	Instance string `json:"instance"`
	Dead     bool   `json:"dead,omitempty"` // so its replacement waits for no budget (HEAL-3)
	Roll     bool   `json:"roll,omitempty"` // it left for a roll, so its replacement is the roll's (ROLL-9)
	// Purpose is why it left; "": a release before did not say.
	Purpose Purpose `json:"purpose,omitempty"`
}

// Timers returns the timers in the record, by name: see Timer.
func (s *Slot) Timers() []NamedTimer {
	var out []NamedTimer
	if s.Retry != nil {
		out = append(out, NamedTimer{TimerRetry, *s.Retry})
	}
	if s.GiveUp != nil {
		out = append(out, NamedTimer{TimerGiveUp, *s.GiveUp})
	}
	return out
}

// Failure is one failure counted against a slot.
type Failure struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	Verdict  Verdict   `json:"verdict"`
	Why      string    `json:"why"`
	Cause    Cause     `json:"cause,omitzero"`
	Template string    `json:"template,omitempty"` // that it counts against (FLAP-5); "" if none
	// LostSince is since when it was lost, or as good as lost, and counts in a storm (SAFE-2); zero
	// if it failed in another way.
	LostSince time.Time `json:"lost_since,omitzero"`
}

// Timer is a time to wait, as start and duration: SAFE-13. A leader runs it on its own clock.
type Timer struct {
	Start time.Time `json:"start"`
	For   Duration  `json:"for"`
}

// End is when the timer ends.
func (t Timer) End() time.Time { return t.Start.Add(t.For.D()) }

// NamedTimer is a timer of a record, with its name there.
type NamedTimer struct {
	Name  string
	Timer Timer
}

// The names of timers.
const (
	TimerDrain  = "drain"
	TimerDoomed = "doomed"
	TimerRetry  = "retry"

	TimerBusy       = "busy"       // a drain waits for the workload to be idle until then
	TimerAwaits     = "awaits"     // and a restart until then
	TimerProtection = "protection" // until then it is protected

	TimerGiveUp   = "give_up"
	TimerStorm    = "storm_calm"     // the storm ends when it does
	TimerProbe    = "storm_probe"    // no probe before
	TimerResume   = "storm_resume"   // until then what was lost in the storm is taken up bit by bit
	TimerBreaker  = "breaker_probe"  // no probe of the breaker before
	TimerBlame    = "breaker_doubt"  // a template that alone fails until then is why the breaker is open
	TimerRests    = "rollout_rests"  // a roll goes on when it ends
	TimerDoubt    = "rollout_doubt"  // an analysis that is out of its bounds until then stops a roll
	TimerProgress = "rollout_stalls" // does not run while no leader is at work

	TimerRebalance = "rebalance"   // no rebalance before
	TimerSpot      = "spot_return" // no return to spot before
)
