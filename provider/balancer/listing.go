package balancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Listing is what a balancer has, target by target.
type Listing struct {
	Targets []Target
}

// Target is what one target has. If Err is set, the target did not answer, or not in full: then
// nothing is known of its members.
type Target struct {
	Name    string
	Members []Status
	Foreign int // entries that are not the shard's
	Err     error
}

// Each asks all targets at once, so that one that is slow holds up no other.
func Each(names []string, do func(i int) Target) []Target {
	out := make([]Target, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			out[i] = do(i)
			out[i].Name = name
		})
	}
	wg.Wait()
	return out
}

// Listed returns what a List returns of its targets: an error if the call's context has ended, or
// if none of them answered.
func Listed(ctx context.Context, targets []Target) (Listing, error) {
	l := Listing{Targets: targets}
	if err := ctx.Err(); err != nil {
		return Listing{}, err
	}
	if len(l.Silent()) == len(l.Targets) {
		return Listing{}, Failure(l.Targets)
	}
	return l, nil
}

// Failure returns the error of all targets that did not answer, or nil. A call to several targets
// fails with it if one of them does.
func Failure(targets []Target) error {
	var errs []error
	for _, t := range targets {
		if t.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.Name, t.Err))
		}
	}
	return errors.Join(errs...)
}

// Silent returns the targets that did not answer.
func (l Listing) Silent() (names []string) {
	for _, t := range l.Targets {
		if t.Err != nil {
			names = append(names, t.Name)
		}
	}
	return names
}

// Has returns the members of an instance as the targets have them, at whatever address, each once.
// A caller that wants all of an instance gone removes each of them: Remove of the member as
// recorded leaves one at another address alone.
func (l Listing) Has(instance string) (members []Member) {
	for _, t := range l.Targets {
		for _, st := range t.Members {
			same := func(m Member) bool { return m.Address == st.Address && m.Port == st.Port }
			if st.Instance == instance && !slices.ContainsFunc(members, same) {
				members = append(members, Member{Instance: instance, Address: st.Address, Port: st.Port})
			}
		}
	}
	return members
}

// Membership is how the targets have an instance. Every number but Silent counts targets that
// answered.
type Membership struct {
	Silent   int // did not answer: what they have is unknown
	Answered int

	Has     int // have the member, at the address recorded
	Several int // have it more than once
	Moved   int // members of the instance at another address; only named balancers show them

	Ready    int // begin new connections to it, as far as its state goes
	Draining int
	Disabled int

	// Of those that have it ready:
	Served   int // send it traffic: they call it up, or do not check it
	Up       int
	Checking int
	Down     int

	// Idle: have no connection of it in use, and begin none. That is so of those without the member.
	Idle int
	// Connections in use; UnknownConnections if one of them does not know.
	Connections int
	Weight      bool // all that have it give it the weight wanted
}

// Of returns how the targets have an instance. The member is as the caller has recorded it.
func (l Listing) Of(m Member) Membership {
	s := Membership{Weight: true}
	for _, t := range l.Targets {
		if t.Err != nil {
			s.Silent++
			continue
		}
		s.Answered++
		var entries []Status
		for _, st := range t.Members {
			switch {
			case st.Instance != m.Instance:
			case st.Address != m.Address || st.Port != m.Port:
				s.Moved++
			default:
				entries = append(entries, st)
			}
		}
		s.count(entries, m.Weight)
	}
	return s
}

// count adds what one target has of the instance: one entry, as it should be, none, or several.
func (s *Membership) count(entries []Status, weight int) {
	if len(entries) == 0 {
		s.Idle++
		return
	}
	s.Has++
	if len(entries) > 1 {
		s.Several++
	}
	states, health, connections := map[State]int{}, map[Health]int{}, 0
	for _, st := range entries {
		states[st.State]++
		if st.State == Ready {
			health[st.Health]++
		}
		if weight != 0 && st.Weight != weight {
			s.Weight = false
		}
		if st.Connections == UnknownConnections || connections == UnknownConnections {
			connections = UnknownConnections
		} else {
			connections += st.Connections
		}
	}
	if connections == UnknownConnections || s.Connections == UnknownConnections {
		s.Connections = UnknownConnections
	} else {
		s.Connections += connections
	}
	switch {
	case states[Ready] > 0:
		s.Ready++
	case states[Draining] > 0:
		s.Draining++
	default:
		s.Disabled++
	}
	switch {
	case states[Ready] == 0 && connections == 0:
		s.Idle++
	case states[Ready] == 0:
	case health[Down] > 0:
		s.Down++
	case health[Checking] > 0:
		s.Checking++
	default:
		s.Served++
		if health[Up] > 0 {
			s.Up++
		}
	}
}

// Confirmed reports whether the instance is in service: every target that answered sends it
// traffic, and at least one answered. A target that is silent neither confirms it nor holds it up:
// when it answers again without the member, the instance is confirmed no longer, and is added
// there.
func (s Membership) Confirmed() bool { return s.Answered > 0 && s.Served == s.Answered && s.Moved == 0 }

// InPlace reports whether every target that answered has the member as it should be. If not, it
// should be added, whatever its health.
func (s Membership) InPlace() bool {
	return s.Ready == s.Answered && s.Several == 0 && s.Moved == 0 && s.Weight
}

// Leaving reports whether no target that answered begins new connections to the instance. If not,
// it is to be drained.
func (s Membership) Leaving() bool { return s.Ready == 0 && s.Moved == 0 }

// Drained reports whether the drain has ended: every target has answered, and none has a connection
// of the instance in use. A target that is silent may have some: its caller waits for it as long as
// it would wait for the connections.
func (s Membership) Drained() bool {
	return s.Silent == 0 && s.Answered > 0 && s.Idle == s.Answered && s.Moved == 0
}

// Gone reports whether every target has answered, and none has the instance.
func (s Membership) Gone() bool { return s.Silent == 0 && s.Answered > 0 && s.Has == 0 && s.Moved == 0 }

// Unhealthy reports whether a target that answered sends the instance no traffic for its health,
// and no other one sends it any: what heal.on_load_balancer may rest on.
func (s Membership) Unhealthy() bool { return s.Down > 0 && s.Served == 0 && s.Checking == 0 }
