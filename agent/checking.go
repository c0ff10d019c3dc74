package agent

import (
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/checks"
	"github.com/leasehold/leasehold/agent/protocol"
)

// Checks are the application checks (DET-9).
type Checks interface {
	// Want sets the checks to run from now on. Setting the same again changes nothing.
	Want(w checks.Wanted)
	// States returns the state of each check without waiting.
	States() []checks.State
	// Changed signals that a check has a new verdict.
	Changed() <-chan struct{}
	// Close ends the checks and waits.
	Close()
}

// verdicts are the checks' verdicts as the state file has them.
type verdicts struct {
	Boot   string                    `json:"boot"` // boot in which they were reached
	Checks map[string]checks.Verdict `json:"checks,omitempty"`
}

// wantChecks runs the checks of the current assignment, or none while the workload may not run. New
// checks begin with the assumed verdict. While the workload waits for a lease, the checks wait too
// and keep their known verdicts.
func (a *Agent) wantChecks(assume bool, known map[string]checks.Verdict) {
	if a.stopped {
		a.kept = known
		a.deps.Checks.Want(checks.Wanted{})
		return
	}
	a.kept = nil
	w := checks.Wanted{Vars: a.assignment.Vars, Assume: assume, Known: known}
	if a.mayRun {
		w.Specs = a.assignment.specs()
	}
	a.deps.Checks.Want(w)
}

// checkAfresh discards every verdict, because the workload was or will be restarted.
func (a *Agent) checkAfresh() {
	a.deps.Checks.Want(checks.Wanted{})
	a.wantChecks(false, nil)
}

// verdictsNow returns the verdicts for a later run of the agent.
func (a *Agent) verdictsNow() *verdicts {
	v := verdicts{Boot: a.cfg.BootID, Checks: a.currentVerdicts()}
	if len(v.Checks) == 0 {
		return nil
	}
	return &v
}

// currentVerdicts returns the current verdicts, by the check's name.
func (a *Agent) currentVerdicts() map[string]checks.Verdict {
	out := maps.Clone(a.kept)
	if out == nil {
		out = map[string]checks.Verdict{}
	}
	for _, s := range a.deps.Checks.States() {
		out[s.Name] = s.Verdict
	}
	return out
}

// knownVerdicts returns the verdicts of the former run of the agent. After a reboot checks start
// over: the workload has been restarted, and its group allows an instance time to become healthy
// (DET-10).
func (a *Agent) knownVerdicts() map[string]checks.Verdict {
	if v := a.assignment.Verdicts; v != nil && v.Boot == a.cfg.BootID {
		return v.Checks
	}
	return nil
}

// specs returns the checks as received. It drops entries of a newer agent that this one cannot
// read: a replica sends them again.
func (d assignment) specs() []*protocol.CheckSpec {
	var out []*protocol.CheckSpec
	for _, raw := range d.Checks {
		var spec protocol.CheckSpec
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, &spec) == nil {
			out = append(out, &spec)
		}
	}
	return out
}

// keepSpecs encodes checks for specs.
func keepSpecs(specs []*protocol.CheckSpec) []json.RawMessage {
	var out []json.RawMessage
	for _, spec := range specs {
		if raw, err := protojson.Marshal(spec); err == nil { // decoded values can be encoded
			out = append(out, raw)
		}
	}
	return out
}

func sameSpecs(a, b []*protocol.CheckSpec) bool {
	return slices.EqualFunc(a, b, func(x, y *protocol.CheckSpec) bool { return proto.Equal(x, y) })
}

// checksKnown reports whether the checks to run are known. If the bootstrap document says that
// there are checks, they arrive with the welcome message.
func (a *Agent) checksKnown() bool {
	return a.heard || a.assignment.ConfigHash != "" || !a.cfg.Bootstrap.Checked
}

// undecided reports whether a check that came with an update has no result yet. Until it has one
// the update is not confirmed, so that a roll does not continue with the next instance while a
// check fails.
func (a *Agent) undecided() bool {
	return slices.ContainsFunc(a.deps.Checks.States(),
		func(s checks.State) bool { return s.Pending && s.Healthy && !s.Optional })
}

// confirmed returns the hash of the configuration that is applied and, if it has checks, checked.
func (a *Agent) confirmed() string {
	if !a.undecided() && a.settled() {
		a.confirmedHash = a.assignment.ConfigHash
	}
	return a.confirmedHash
}

// health returns the verdict over all checks, and why it is not healthy.
func health(known bool, list []*protocol.Check) (healthy bool, why string) {
	if !known {
		return false, "it is not known yet what to check"
	}
	for _, c := range list {
		if !c.GetHealthy() && !c.GetOptional() {
			return false, c.GetName() + ": " + c.GetWhy()
		}
	}
	return true, ""
}

func checkReport(s checks.State) *protocol.Check {
	c := &protocol.Check{
		Name: s.Name, Kind: s.Kind, Healthy: s.Healthy, Optional: s.Optional, Pending: s.Pending, Why: s.Why,
		Since:   timestamppb.New(s.Since),
		Against: uint32(s.Against), Threshold: uint32(s.Threshold),
	}
	if s.Took > 0 {
		c.Took = durationpb.New(s.Took)
	}
	return c
}
