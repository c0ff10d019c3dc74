package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Group is what an operator wants: the spec in groups/<name>. It is stored complete, with every default written
// out, so that what etcdctl shows is what is in force.
type Group struct {
	Schema              int               `json:"schema"`
	Name                string            `json:"name"`
	Size                int               `json:"size"`
	Lifecycle           string            `json:"lifecycle"`
	Labels              map[string]string `json:"labels,omitempty"`
	Provider            string            `json:"provider"`
	Template            Template          `json:"template"`
	Workload            Workload          `json:"workload"`
	Vars                map[string]string `json:"vars,omitempty"`
	Report              ReportSpec        `json:"report"`
	RegistrationTimeout Duration          `json:"registration_timeout"`
	MaxChecking         Duration          `json:"max_checking_health_duration"`
	Heal                HealSpec          `json:"heal"`
	Budget              Budget            `json:"budget"`
	Flap                FlapSpec          `json:"flap"`
	StopTimeout         Duration          `json:"stop_timeout"`
	Paused              bool              `json:"paused,omitempty"`   // REC-13, by group pause
	Deleting            bool              `json:"deleting,omitempty"` // REC-7, by group delete
}

// Template is what a machine is. The provider validates its own part, Settings.
type Template struct {
	InstanceType string            `json:"instance_type,omitempty"`
	Zones        []string          `json:"zones,omitempty"`
	Settings     map[string]string `json:"settings,omitempty"`
}

// Workload is what the agent runs on the machine, if anything.
type Workload struct {
	Run []string `json:"run,omitempty"`
}

// ReportSpec says how often agents report, and when silence is loss (DET-1, DET-2).
type ReportSpec struct {
	Interval Duration `json:"interval"`
	LeaseTTL Duration `json:"lease_ttl"`
}

// HealSpec says how failed instances are healed (HEAL-1).
type HealSpec struct {
	Policy string `json:"policy"`
}

// Budget bounds what happens at once (HEAL-2, HEAL-3, HEAL-7).
type Budget struct {
	MaxUnavailable int `json:"max_unavailable"`
	MaxExpansion   int `json:"max_expansion"`
	MaxCreating    int `json:"max_creating"`
	MaxDeleting    int `json:"max_deleting"`
}

// FlapSpec says how long to wait before trying again what failed several times (FLAP-1, FLAP-2).
type FlapSpec struct {
	Failures int      `json:"failures"`
	Window   Duration `json:"window"`
	MinDelay Duration `json:"min_delay"`
	MaxDelay Duration `json:"max_delay"`
	Reset    Duration `json:"reset"`
}

// The values of Lifecycle and Heal.Policy.
const (
	LifecycleService = "service"
	HealRecreate     = "recreate"
	HealNone         = "none"
)

// DefaultGroup is a group in which only what the operator must say is missing. A lease_ttl of 0 stands for its default,
// which depends on the interval: see Complete.
func DefaultGroup() Group {
	return Group{
		Schema:              Schema,
		Lifecycle:           LifecycleService,
		Report:              ReportSpec{Interval: Duration(5 * time.Second)},
		RegistrationTimeout: Duration(5 * time.Minute),
		MaxChecking:         Duration(10 * time.Minute),
		Heal:                HealSpec{Policy: HealRecreate},
		Budget:              Budget{MaxExpansion: 1},
		Flap: FlapSpec{
			Failures: 3,
			Window:   Duration(5 * time.Minute),
			MinDelay: Duration(30 * time.Second),
			MaxDelay: Duration(16 * time.Minute),
			Reset:    Duration(5 * time.Minute),
		},
		StopTimeout: Duration(30 * time.Second),
	}
}

// Complete fills in the defaults that depend on other fields.
func (g *Group) Complete() {
	if g.Report.LeaseTTL == 0 {
		g.Report.LeaseTTL = 3*g.Report.Interval + Duration(2*time.Second)
		if r := g.Report.LeaseTTL.D() % time.Second; r != 0 {
			g.Report.LeaseTTL += Duration(time.Second - r)
		}
	}
}

// ReadGroup reads a spec: defaults for what is left out, an error for an unknown field, a newer schema or a
// value that is not allowed. The error joins a *FieldError for each field that is wrong.
func ReadGroup(value []byte) (Group, error) {
	if err := checkSchema(value); err != nil {
		return Group{}, err
	}
	g := DefaultGroup()
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&g); err != nil {
		return Group{}, err
	}
	if dec.More() {
		return Group{}, fmt.Errorf("something follows the group's JSON object")
	}
	g.Complete()
	return g, g.Validate()
}

// InstanceSpec is the part of the spec that a machine is made from.
func (g Group) InstanceSpec() InstanceSpec {
	return InstanceSpec{
		Provider:            g.Provider,
		Template:            g.Template,
		Workload:            g.Workload,
		Vars:                g.Vars,
		Report:              g.Report,
		RegistrationTimeout: g.RegistrationTimeout,
		MaxChecking:         g.MaxChecking,
		StopTimeout:         g.StopTimeout,
	}
}

// TemplateHash tells templates apart: an instance made from another one is outdated (ROLL-1). Timers are
// no part of it, as changing them needs no new machine.
func (s InstanceSpec) TemplateHash() string {
	sum := sha256.Sum256(Encode(struct {
		Provider string
		Template Template
		Workload Workload
		Vars     map[string]string
	}{s.Provider, s.Template, s.Workload, s.Vars}))
	return "t" + hex.EncodeToString(sum[:4])
}
