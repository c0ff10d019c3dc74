package exec

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/leasehold/leasehold/provider"
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
	API          int      `json:"api"`
	Name         string   `json:"name"` // of the program, with its version
	Zones        []string `json:"zones"`
	Consistency  float64  `json:"consistency"`  // seconds
	CallTimeout  float64  `json:"call_timeout"` // seconds
	MaxBootstrap int      `json:"max_bootstrap"`
	Capabilities struct {
		Boots     bool `json:"boots"`
		Crashes   bool `json:"crashes"`
		Remembers bool `json:"remembers"`
		Console   bool `json:"console"`
		Copies    bool `json:"copies"`
		Validate  bool `json:"validate"`
	} `json:"capabilities"`
	Settings json.RawMessage `json:"settings"`
}

// templateParams are the provider's part of a template.
type templateParams struct {
	InstanceTypes []string       `json:"instance_types"` // in order of preference
	Zones         []string       `json:"zones,omitempty"`
	Spot          bool           `json:"spot"`
	Settings      map[string]any `json:"settings"`
}

func templateOf(t provider.Template) templateParams {
	p := templateParams{InstanceTypes: t.InstanceTypes, Zones: t.Zones, Spot: t.Spot, Settings: t.Settings}
	if p.InstanceTypes == nil {
		p.InstanceTypes = []string{}
	}
	if p.Settings == nil {
		p.Settings = map[string]any{}
	}
	return p
}

// createParams make a machine. Later versions add disks and addresses; a program ignores
// parameters that it does not know.
type createParams struct {
	templateParams
	Zone      string            `json:"zone"`
	Group     string            `json:"group"`
	Slot      int               `json:"slot"`
	Tags      map[string]string `json:"tags"` // to put on the machine, beside its shard and instance
	Bootstrap string            `json:"bootstrap"`
	UserData  string            `json:"user_data"`
	Call      string            `json:"call"`

	token string // in the bootstrap document: it is shown nowhere
}

type copyParams struct {
	Ref  string `json:"ref"`
	Call string `json:"call"`
}

type stopParams struct {
	Timeout float64 `json:"timeout"` // seconds
}

type restartParams struct {
	Boot string `json:"boot"` // that is to be ended; empty: whatever boot there is
}

type listParams struct {
	Page string `json:"page"` // empty: the first
}

// listResult is one page.
type listResult struct {
	Machines []machine `json:"machines"`
	Next     string    `json:"next"`     // the next page; empty on the last
	Complete bool      `json:"complete"` // set on the last page: without it a List is an error
}

// Veil hides secrets in the states' reasons.
func (r *listResult) Veil(veil func(string) string) {
	for i := range r.Machines {
		r.Machines[i].Veil(veil)
	}
}

type consoleResult struct {
	Tail []byte `json:"tail"` // base64
}

// machine is a machine as the program sees it.
type machine struct {
	Instance string `json:"instance"`
	Shard    string `json:"shard"`
	Group    string `json:"group"`
	Ref      string `json:"ref"`
	State    string `json:"state"`
	Why      string `json:"why"`
	Zone     string `json:"zone"`
	Address  string `json:"address"`
	Boot     string `json:"boot"`
	Call     string `json:"call"`
}

// Veil hides secrets in the state's reason.
func (m *machine) Veil(veil func(string) string) { m.Why = veil(m.Why) }

// read checks what the program says of a machine: it must be of the shard that was asked for.
func (m *machine) read(shard string) (provider.Machine, error) {
	state := provider.State(m.State)
	switch state {
	case provider.StateStarting, provider.StateRunning, provider.StateStopping, provider.StateStopped,
		provider.StateCrashed, provider.StateFailed, provider.StateUnknown:
	default:
		return provider.Machine{}, fmt.Errorf("machine %q has the unknown state %q", program.Clip(m.Instance),
			program.Clip(m.State))
	}
	if m.Instance == "" || m.Ref == "" || m.Shard != shard {
		return provider.Machine{}, fmt.Errorf("machine %q (ref %q) is of shard %q, and %q was asked "+
			"for; instance, ref and shard must be set",
			program.Clip(m.Instance), program.Clip(m.Ref), program.Clip(m.Shard), shard)
	}
	return provider.Machine{
		Instance: m.Instance, Shard: m.Shard, Group: m.Group, Ref: m.Ref, State: state, Why: program.Clip(m.Why),
		Zone: m.Zone, Address: m.Address, BootID: m.Boot, Call: program.Clip(m.Call),
	}, nil
}
