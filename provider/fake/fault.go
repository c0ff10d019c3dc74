package fake

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Call names a method of the contract.
type Call string

// The calls that can fail.
const (
	CallCreate  Call = "create"
	CallStop    Call = "stop"
	CallDelete  Call = "delete"
	CallRestart Call = "restart"
	CallList    Call = "list"
	CallConsole Call = "console"
)

// Fault is something that goes wrong with a call. The first that matches is taken.
type Fault struct {
	Call     Call    // "": any
	Instance string  // "": any; a List matches "" only
	Times    int     // after so many calls it is used up; 0: it lasts
	Chance   float64 // of the calls that match, so many are hit, by Config.Seed; 0: all

	Delay  time.Duration // the call takes so much longer, before anything happens
	Hang   bool          // no answer until the caller's context ends
	Err    error         // the answer; nil: the call's own, if it does not hang
	Effect Effect        // whether a call that hangs or answers Err does something all the same
	Late   time.Duration // for EffectLate: so long after the call has ended

	Answer func([]provider.Machine) []provider.Machine // changes what List answers
}

// Effect is what a call that fails does.
type Effect int

// What a call that fails may do.
const (
	EffectNone Effect = iota // nothing
	EffectDone               // all of it: only the answer is lost
	EffectLate               // all of it, when the caller has long given up
)

// Inject lets calls go wrong from now on, until remove is called or the fault is used up.
func (c *Cloud) Inject(f Fault) (remove func()) {
	fault := &f
	c.faults = append(c.faults, fault)
	return func() { c.drop(fault) }
}

// Heal ends all faults and lies. Effects that are late still come.
func (c *Cloud) Heal() { c.faults, c.lie = nil, nil }

func (c *Cloud) drop(fault *Fault) {
	c.faults = slices.DeleteFunc(slices.Clone(c.faults), func(f *Fault) bool { return f == fault })
}

// take finds the fault of a call and counts it.
func (c *Cloud) take(call Call, instance string) *Fault {
	c.hit = nil
	for _, f := range c.faults {
		if f.Call != "" && f.Call != call || f.Instance != "" && f.Instance != instance {
			continue
		}
		if f.Chance > 0 && c.odds.Float64() >= f.Chance {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				c.drop(f)
			}
		}
		c.hit = f
		return f
	}
	return nil
}
