package balancer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Listing is a balancer's members, target by target.
type Listing struct {
	Targets []Target
}

// Target is one target's members. If Err is set, the target did not answer, or not completely:
// nothing is known of its members.
type Target struct {
	Name    string
	Members []Status
	Foreign int // entries that are not the shard's
	Err     error
}

// Each asks all targets at once, so that a slow target delays no other.
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

// Listed returns the result of a List of these targets: an error if the call's context has ended,
// or if no target answered.
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

// Failure returns the errors of all targets that did not answer, or nil. A call to several targets
// fails if one of them does.
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

// Has returns the members of an instance as the targets list them, at any address, each once. To
// remove an instance completely, the caller removes each of them: Remove of the recorded member
// leaves a member at another address alone.
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

// Membership counts how the targets list an instance. Every number but Silent counts targets that
// answered.
type Membership struct {
	Silent   int // did not answer: their members are unknown
	Answered int

	Has     int // have the member, at the recorded address
	Several int // have it more than once
	Moved   int // members of the instance at another address; only named balancers show these

	Ready    int // begin new connections to it, by its state
	Draining int
	Disabled int

	// Of the targets that have it ready:
	Served   int // send it traffic: its checks pass, or there are none
	Up       int
	Checking int
	Down     int

	// Idle: have no connection of it in use, and begin none. Targets without the member are idle
	// too.
	Idle int
	// Connections in use; UnknownConnections if one of them does not know.
	Connections int
	Weight      bool // all targets that have it give it the wanted weight
}

// Of returns the membership of an instance. The member is the caller's record.
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

// count adds one target's entries of the instance: none, one or several.
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
		if want := cmp.Or(weight, st.DefaultWeight); want != 0 && st.Weight != want {
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
// traffic, and at least one answered. A silent target neither confirms the instance nor delays its
// confirmation: if it answers later without the member, the instance is no longer confirmed, and is
// added there.
func (s Membership) Confirmed() bool { return s.Answered > 0 && s.Served == s.Answered && s.Moved == 0 }

// InPlace reports whether every target that answered has the member with its wanted settings. If
// not, the caller adds it, whatever its health.
func (s Membership) InPlace() bool {
	return s.Ready == s.Answered && s.Several == 0 && s.Moved == 0 && s.Weight
}

// Leaving reports whether no target that answered begins new connections to the instance. If one
// does, the caller drains it.
func (s Membership) Leaving() bool { return s.Ready == 0 && s.Moved == 0 }

// Drained reports whether the drain has ended: every target has answered, and none has a connection
// of the instance in use. A silent target may have some: the caller waits for it as long as for
// connections.
func (s Membership) Drained() bool {
	return s.Silent == 0 && s.Answered > 0 && s.Idle == s.Answered && s.Moved == 0
}

// Gone reports whether every target has answered, and none has the instance.
func (s Membership) Gone() bool { return s.Silent == 0 && s.Answered > 0 && s.Has == 0 && s.Moved == 0 }

// Unhealthy reports whether a target that answered sends the instance no traffic because of its
// health, and no other target sends it any. heal.on_load_balancer rests on it.
func (s Membership) Unhealthy() bool { return s.Down > 0 && s.Served == 0 && s.Checking == 0 }
