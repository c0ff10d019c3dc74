package command

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/program"
)

// API is the version of the protocol.
const API = 1

// Schema is the protocol as a JSON Schema: requests and answers.
//
//go:embed schema.json
var Schema []byte

// description answers describe.
type description struct {
	API          int     `json:"api"`
	Name         string  `json:"name"`         // of the program, with its version
	Consistency  float64 `json:"consistency"`  // seconds
	CallTimeout  float64 `json:"call_timeout"` // seconds
	Capabilities struct {
		Named       bool `json:"named"`
		Health      bool `json:"health"`
		Connections bool `json:"connections"`
		DrainEnds   bool `json:"drain_ends"`
		Leaves      bool `json:"leaves"`
		Weights     bool `json:"weights"`
	} `json:"capabilities"`
	Settings json.RawMessage `json:"settings"`
}

// memberParams are where a member is. Weight and settings are for add.
type memberParams struct {
	Address  string         `json:"address"`
	Port     int            `json:"port"`
	Weight   int            `json:"weight,omitempty"`
	Settings map[string]any `json:"settings,omitempty"`
}

type listParams struct {
	Recorded []record `json:"recorded"`
}

// record is a member that the coordinator has recorded.
type record struct {
	Instance string `json:"instance"`
	Address  string `json:"address"`
	Port     int    `json:"port"`
}

// listResult is a complete list.
type listResult struct {
	Targets  []target `json:"targets"`
	Complete bool     `json:"complete"` // without it a list is an error
}

type target struct {
	Name    string   `json:"name"`
	Error   string   `json:"error"` // it did not answer
	Members []member `json:"members"`
	Foreign int      `json:"foreign"`
}

type member struct {
	record
	Weight      int    `json:"weight"`
	State       string `json:"state"`
	Health      string `json:"health"`
	Why         string `json:"why"`
	Connections *int   `json:"connections"` // absent: unknown
}

// Veil hides secrets in errors and reasons.
func (r *listResult) Veil(veil func(string) string) {
	for i := range r.Targets {
		t := &r.Targets[i]
		t.Error = veil(t.Error)
		for j := range t.Members {
			t.Members[j].Why = veil(t.Members[j].Why)
		}
	}
}

// read checks a program's list. One inconsistent entry makes the whole list an error.
func (r *listResult) read(shard string, named bool, recorded []balancer.Member) (balancer.Listing, error) {
	var l balancer.Listing
	switch {
	case !r.Complete:
		return l, errors.New("the list must say \"complete\": true: a part proves nothing")
	case len(r.Targets) == 0:
		return l, errors.New("the list names no target")
	}
	known := map[record]bool{}
	for _, m := range recorded {
		known[record{m.Instance, m.Address, m.Port}] = true
	}
	seen := map[string]bool{}
	for _, t := range r.Targets {
		if t.Name == "" || seen[t.Name] || t.Foreign < 0 {
			return l, fmt.Errorf("target %q: each has a name of its own, and counts what is foreign", program.Clip(t.Name))
		}
		seen[t.Name] = true
		out := balancer.Target{Name: program.Clip(t.Name), Foreign: t.Foreign}
		if t.Error != "" {
			out.Err = errors.New(program.Clip(t.Error))
			l.Targets = append(l.Targets, out)
			continue
		}
		of := map[record]bool{}
		for _, m := range t.Members {
			status, err := m.read(shard)
			switch {
			case err != nil:
			case of[m.record]:
				err = errors.New("is listed twice")
			case !named && !known[m.record]:
				err = errors.New("is not recorded, and a program without the capability \"named\" cannot know it")
			}
			if err != nil {
				return l, fmt.Errorf("target %q: member %q: %w", out.Name, program.Clip(m.Instance), err)
			}
			of[m.record] = true
			out.Members = append(out.Members, status)
		}
		l.Targets = append(l.Targets, out)
	}
	return l, nil
}

func (m *member) read(shard string) (balancer.Status, error) {
	s := balancer.Status{
		Member: balancer.Member{
			Instance: m.Instance, Address: m.Address, Port: m.Port, Use: balancer.Use{Weight: m.Weight},
		},
		State: balancer.State(m.State), Health: balancer.Health(m.Health), Why: program.Clip(m.Why),
		Connections: balancer.UnknownConnections,
	}
	if s.Health == "" {
		s.Health = balancer.HealthUnknown
	}
	if m.Connections != nil {
		s.Connections = *m.Connections
	}
	switch s.State {
	case balancer.Ready, balancer.Draining, balancer.Disabled:
	default:
		return s, fmt.Errorf("has the unknown state %q", program.Clip(m.State))
	}
	switch s.Health {
	case balancer.HealthUnknown, balancer.Checking, balancer.Up, balancer.Down:
	default:
		return s, fmt.Errorf("has the unknown health %q", program.Clip(m.Health))
	}
	if s.Connections < balancer.UnknownConnections {
		return s, fmt.Errorf("has %d connections", s.Connections)
	}
	if err := balancer.Check(shard, s.Member); err != nil {
		return s, errors.New(err.Error()) // without its kind: the program's answer is invalid, not the request
	}
	return s, nil
}
