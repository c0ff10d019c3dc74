package fake

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Lie is what is wrong with Lists.
type Lie struct {
	Kind  LieKind
	Times int           // of so many Lists; 0: until the next lie
	Until time.Time     // of Lists before; zero: of all
	Delay time.Duration // so much later than usual the answer arrives
}

// LieKind is a kind of wrong answer.
type LieKind string

// The kinds.
const (
	Truth      LieKind = ""
	Empty      LieKind = "empty"     // no machine at all
	Truncated  LieKind = "truncated" // cut off somewhere
	Halved     LieKind = "halved"    // every second machine
	Short      LieKind = "short"     // all machines but the first
	Failing    LieKind = "an error"
	Tardy      LieKind = "late"       // just before the caller gives up
	Duplicated LieKind = "duplicated" // each machine twice
	Stale      LieKind = "stale"      // as it was when the lie began
	AllCrashed LieKind = "crashed"    // all have crashed
	OtherBoot  LieKind = "otherboot"  // all have crashed, in an unknown boot
	Odd        LieKind = "odd"        // unknown states, other zones, and each machine twice
)

// lie is the present one.
type lie struct {
	Lie
	before map[string][]provider.Machine // what was true when it began, by shard
}

// Lie has Lists be wrong from now on, until the lie is lifted, used up or over, or another begins.
func (c *Cloud) Lie(l Lie) (lift func()) {
	now := &lie{Lie: l}
	if l.Kind == Stale {
		now.before = map[string][]provider.Machine{}
		for _, m := range c.machines {
			if now.before[m.shard()] == nil {
				now.before[m.shard()] = c.listed(m.shard())
			}
		}
	}
	c.lie = now
	return func() {
		if c.lie == now {
			c.lie = nil
		}
	}
}

// falsify makes a List what the present lie says.
func (c *Cloud) falsify(l *Listing, shard string) {
	now := c.lie
	if now == nil || !now.Until.IsZero() && !c.now().Before(now.Until) {
		return
	}
	if now.Times > 0 {
		if now.Times--; now.Times == 0 {
			c.lie = nil
		}
	}
	l.Lie = now.Kind
	l.Takes += now.Delay
	switch now.Kind {
	case Empty:
		l.Machines = nil
	case Truncated:
		if n := len(l.Machines); n > 0 {
			l.Machines = l.Machines[:c.draw(n)]
		}
	case Short:
		l.Machines = l.Machines[min(1, len(l.Machines)):]
	case Failing:
		l.Machines, l.Err = nil, ErrTrouble
	case Tardy:
		l.Takes = c.cfg.CallTimeout*9/10 + l.Takes/10
	case Duplicated:
		l.Machines = append(l.Machines, slices.Clone(l.Machines)...)
	case Stale:
		l.Machines = slices.Clone(now.before[shard])
	case Halved, AllCrashed, OtherBoot, Odd:
		l.Machines = distorted(now.Kind, l.Machines)
	case Truth:
	}
}

// distorted is a List in which something is wrong with each machine.
func distorted(kind LieKind, truth []provider.Machine) (out []provider.Machine) {
	for i, m := range truth {
		switch kind {
		case Halved:
			if i%2 == 1 {
				continue
			}
		case AllCrashed:
			m.State, m.Why = provider.StateCrashed, "a lie"
		case OtherBoot:
			m.State, m.Why, m.BootID = provider.StateCrashed, "a lie", "unknown-boot"
		default:
			m.State, m.Zone = "hibernating", "nowhere"
			out = append(out, m)
		}
		out = append(out, m)
	}
	return out
}
