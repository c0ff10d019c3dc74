package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// LoadBalancer is how a group uses a load balancer. The coordinators are configured with the
// balancers themselves; a group only names them (SEC-7).
type LoadBalancer struct {
	Name string `json:"name"`
	// Port is the port of the members; empty: the port that the provider reports with the address.
	Port     Port           `json:"port,omitempty"`
	Weight   int            `json:"weight,omitempty"` // 0: the balancer's default
	Settings map[string]any `json:"settings,omitempty"`
}

// Traffic is the membership of an instance in a load balancer (LB-1). It is recorded before the
// first call and stays until a listing proves that the balancer no longer has the member. So any
// leader knows what there is to undo.
type Traffic struct {
	Balancer string       `json:"balancer"`
	Address  string       `json:"address"`
	Port     int          `json:"port"`
	State    TrafficState `json:"state"`
	Since    time.Time    `json:"since"`
	// Timer is how long the state is waited for: joining by max_opening_traffic_duration, draining and
	// leaving by drain.timeout. Nil: joining is waited for without end, leaving not at all.
	Timer *Timer `json:"timer,omitempty"`
}

// TrafficState is the wanted state of a membership.
type TrafficState string

// The states of a membership.
const (
	TrafficJoining  TrafficState = "joining"  // to be added; the balancer has not confirmed it yet
	TrafficServing  TrafficState = "serving"  // the balancer has sent it traffic
	TrafficDraining TrafficState = "draining" // to get no new connections
	TrafficLeaving  TrafficState = "leaving"  // to be removed
)

// Wanted reports whether the instance is to be in service.
func (s TrafficState) Wanted() bool { return s == TrafficJoining || s == TrafficServing }

// TimerTraffic returns the name of the timer of a membership.
func TimerTraffic(balancer string) string { return "traffic_" + balancer }

// maxBalancers bounds the load balancers of one group.
const maxBalancers = 16

const inBalancers = "load_balancers[]."

// balancerField returns a field of each load balancer.
func balancerField[T any](path, kind, def, rule, allowed, doc string, get func(*LoadBalancer) T,
	ok func(T) bool,
) Field {
	return Field{
		Path: inBalancers + path, Type: kind, Default: def, Allowed: allowed, Rule: rule, Doc: doc,
		wrong: func(g *Group) []FieldError {
			var out []FieldError
			for i := range g.LoadBalancers {
				if v := get(&g.LoadBalancers[i]); !ok(v) {
					out = append(out, FieldError{
						Path: fmt.Sprintf("load_balancers[%d].%s", i, path), Value: show(v), Allowed: allowed, Rule: rule,
					})
				}
			}
			return out
		},
	}
}

// balancerFields are the fields of a group's load balancers.
var balancerFields = []Field{
	{
		Path: "load_balancers", Type: "list of load balancers", Default: "none", Rule: "LB-1",
		Allowed: fmt.Sprintf("at most %d with different names, and none for a task", maxBalancers),
		Doc:     "The load balancers that send traffic to the instances. A change of the list rolls nothing.",
		wrong:   wrongBalancers,
	},
	balancerField("name", "string", "", "LB-1", "the name of a load balancer of the coordinators",
		"Which load balancer.", func(b *LoadBalancer) string { return b.Name }, nameForm.MatchString),
	balancerField("port", "port", "the port that the provider gives with the address", "LB-1",
		portAllowed+" (a variable of vars or the port of the address)", "The port that the traffic goes to.",
		func(b *LoadBalancer) Port { return b.Port },
		func(p Port) bool { return p == "" || p.ok() }),
	balancerField("weight", "integer", "the balancer's own", "LB-1", "0 to 256; 0 is the balancer's own",
		"The share of the traffic that each instance gets, relative to the others.",
		func(b *LoadBalancer) int { return b.Weight }, func(n int) bool { return n >= 0 && n <= 256 }),
	balancerField("settings", "nested values", "none", "LB-1", "as the balancer allows, at most 64 KiB",
		"What else the balancer wants to know of a member.",
		func(b *LoadBalancer) map[string]any { return b.Settings },
		func(m map[string]any) bool { return len(Encode(m)) <= maxSettings }),
	durationField("max_opening_traffic_duration", "0s", "LB-2",
		"An instance that a load balancer has not called healthy so long after it joined has failed, "+
			"once the balancer answers; 0: no limit.",
		0, 24*time.Hour, func(g *Group) Duration { return g.MaxOpening }),
}

// wrongBalancers judges the list as a whole, and the placeholders in ports: the leader knows the
// port of the address and the variables, and nothing else of a machine.
func wrongBalancers(g *Group) []FieldError {
	var out []FieldError
	wrong := func(path, value, allowed string) {
		out = append(out, FieldError{Path: path, Value: value, Allowed: allowed, Rule: "LB-1"})
	}
	if n := len(g.LoadBalancers); n > maxBalancers {
		wrong("load_balancers", number(n, "load balancer"), fmt.Sprintf("at most %d load balancers", maxBalancers))
	}
	if len(g.LoadBalancers) > 0 && g.Lifecycle == LifecycleTask {
		wrong("load_balancers", number(len(g.LoadBalancers), "load balancer"), "empty: a task serves no traffic")
	}
	first := map[string]int{}
	for i := range g.LoadBalancers {
		b := &g.LoadBalancers[i]
		if earlier, twice := first[b.Name]; twice {
			wrong(fmt.Sprintf("load_balancers[%d].name", i), show(b.Name),
				fmt.Sprintf("a name other than load_balancers[%d] has", earlier))
		} else {
			first[b.Name] = i
		}
		known := []string{"port"}
		for name := range g.Vars {
			known = append(known, name)
		}
		slices.Sort(known)
		known = slices.Compact(known)
		path := fmt.Sprintf("load_balancers[%d].port", i)
		names, open := Placeholders(string(b.Port))
		for _, name := range names {
			if !slices.Contains(known, name) {
				out = append(out, FieldError{
					Path: path, Value: "${" + name + "}", Rule: "LB-1", Name: name, Known: known,
					Allowed: "a variable of vars or the port of the address (" + strings.Join(known, ", ") + ")",
				})
			}
		}
		if open != "" {
			wrong(path, show(open), "closed with }")
		}
	}
	return out
}

// Balancer returns how the group uses the load balancer with a name; nil if it does not.
func (g *Group) Balancer(name string) *LoadBalancer {
	for i := range g.LoadBalancers {
		if g.LoadBalancers[i].Name == name {
			return &g.LoadBalancers[i]
		}
	}
	return nil
}
