package balancer

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Listing is what a balancer has, target by target.
type Listing struct {
	Targets []Target
}

// Target is what one target has. If Err is set, the target did not answer, or not in full: then nothing
// is known of its members.
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

// Listed is what a List returns of its targets: an error if the call's context has ended, or if none of
// them answered.
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

// Failure is the error of all targets that did not answer, or nil. A call to several targets fails with
// it if one of them does.
func Failure(targets []Target) error {
	var errs []error
	for _, t := range targets {
		if t.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.Name, t.Err))
		}
	}
	return errors.Join(errs...)
}

// Silent are the targets that did not answer.
func (l Listing) Silent() (names []string) {
	for _, t := range l.Targets {
		if t.Err != nil {
			names = append(names, t.Name)
		}
	}
	return names
}

// Standing is how an instance stands over all targets. Every number but Silent counts targets that
// answered.
type Standing struct {
	Silent   int // targets that did not answer: what they have is unknown
	Answered int
	Has      int // have the member, at the address recorded
	Moved    int // have a member of the instance at another address; only named balancers show that
	Ready    int
	Draining int
	Disabled int
	Up       int
	Checking int
	Down     int // those that say so, of a member that is ready
	Served   int // ready, and up or not checked by the target
	Idle     int // draining or disabled, without a connection in use; or without the member
	// Connections in use, over all targets that answered; UnknownConnections if one of them does not
	// count.
	Connections int
	Weight      bool // all that have it give it the weight wanted
}

// Of is how an instance stands. The member is as the caller has recorded it.
func (l Listing) Of(m Member) Standing {
	s := Standing{Weight: true}
	for _, t := range l.Targets {
		if t.Err != nil {
			s.Silent++
			continue
		}
		s.Answered++
		has := false
		for _, st := range t.Members {
			if st.Instance != m.Instance {
				continue
			}
			if st.Address != m.Address || st.Port != m.Port {
				s.Moved++
				continue
			}
			has = true
			s.count(st, m.Weight)
		}
		if !has {
			s.Idle++
		}
	}
	return s
}

func (s *Standing) count(st Status, weight int) {
	s.Has++
	if weight != 0 && st.Weight != weight {
		s.Weight = false
	}
	switch st.State {
	case Ready:
		s.Ready++
		switch st.Health {
		case Up:
			s.Up++
			s.Served++
		case HealthUnknown:
			s.Served++
		case Checking:
			s.Checking++
		case Down:
			s.Down++
		}
	case Draining:
		s.Draining++
	case Disabled:
		s.Disabled++
	}
	switch {
	case st.Connections == UnknownConnections:
		s.Connections = UnknownConnections
	case s.Connections != UnknownConnections:
		s.Connections += st.Connections
	}
	if st.State != Ready && st.Connections == 0 {
		s.Idle++
	}
}

// Confirmed reports whether the instance is in service: every target that answered sends it traffic,
// and at least one answered. A target that is silent neither confirms it nor holds it up: when it
// answers again without the member, the instance is confirmed no longer, and is added there.
func (s Standing) Confirmed() bool { return s.Answered > 0 && s.Served == s.Answered && s.Moved == 0 }

// InPlace reports whether every target that answered has the member as it is to be. If not, it is to be
// added, whatever its health.
func (s Standing) InPlace() bool {
	return s.Ready == s.Answered && s.Has == s.Answered && s.Moved == 0 && s.Weight
}

// Leaving reports whether no target that answered begins new connections to the instance. If not, it is
// to be drained.
func (s Standing) Leaving() bool { return s.Ready == 0 && s.Moved == 0 }

// Drained reports whether the drain has ended: every target has answered, and none has a connection of
// the instance in use. A target that is silent may have some: its caller waits for it as long as it
// would wait for the connections.
func (s Standing) Drained() bool {
	return s.Silent == 0 && s.Answered > 0 && s.Idle == s.Answered && s.Moved == 0
}

// Gone reports whether every target has answered, and none has the instance.
func (s Standing) Gone() bool { return s.Silent == 0 && s.Answered > 0 && s.Has == 0 && s.Moved == 0 }

// Unhealthy reports whether a target that answered sends the instance no traffic for its health, and
// no other one sends it any: what heal.on_load_balancer may rest on.
func (s Standing) Unhealthy() bool { return s.Down > 0 && s.Served == 0 && s.Checking == 0 }
