package exec

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// API is the version of the protocol.
const API = 1

// Schema is the protocol as a JSON Schema: requests and answers.
//
//go:embed schema.json
var Schema []byte

// request is what the program reads.
type request struct {
	API      int               `json:"api"`
	Method   string            `json:"method"`
	Deadline string            `json:"deadline"` // RFC 3339: the program is killed then
	Config   map[string]any    `json:"config"`
	Secrets  map[string]string `json:"secrets"`
	Shard    string            `json:"shard,omitempty"`
	Instance string            `json:"instance,omitempty"`
	Params   any               `json:"params"`
}

// answer is what the program writes: one of the two.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *failure        `json:"error"`
}

// failure is an error by its code.
type failure struct {
	Code       string  `json:"code"`
	Scope      string  `json:"scope"`
	Message    string  `json:"message"`
	RetryAfter float64 `json:"retry_after"` // seconds
}

// err is the failure as the contract has it.
func (f *failure) err() error {
	e := &provider.Error{Kind: provider.Kind(f.Code), Scope: clip(f.Scope), Message: clip(f.Message)}
	known := false
	for _, k := range provider.Kinds {
		known = known || k == e.Kind
	}
	if !known {
		return fmt.Errorf("the program answered with the error code %q, which is none: %s", clip(f.Code), e.Message)
	}
	if e.Kind == provider.Throttled {
		if e.After = seconds(f.RetryAfter); e.After <= 0 || e.After > longestThrottle {
			e.After = defaultThrottle
		}
	}
	return e
}

const (
	defaultThrottle = 10 * time.Second
	longestThrottle = 10 * time.Minute
)

// seconds is a duration of the protocol.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// clip bounds what a program may have us say.
func clip(s string) string {
	const most = 500
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

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

// read checks what the program says of a machine: it must be of the shard that was asked for.
func (m *machine) read(shard string) (provider.Machine, error) {
	state := provider.State(m.State)
	switch state {
	case provider.StateStarting, provider.StateRunning, provider.StateStopping, provider.StateStopped,
		provider.StateCrashed, provider.StateFailed, provider.StateUnknown:
	default:
		return provider.Machine{}, fmt.Errorf("machine %q has the state %q, which is none", clip(m.Instance), clip(m.State))
	}
	if m.Instance == "" || m.Ref == "" || m.Shard != shard {
		return provider.Machine{}, fmt.Errorf("machine %q (ref %q) is of shard %q, and %q was asked for; instance, ref and shard must be set",
			clip(m.Instance), clip(m.Ref), clip(m.Shard), shard)
	}
	return provider.Machine{
		Instance: m.Instance, Shard: m.Shard, Group: m.Group, Ref: m.Ref, State: state, Why: clip(m.Why),
		Zone: m.Zone, Address: m.Address, BootID: m.Boot, Call: clip(m.Call),
	}, nil
}
