package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Group is what an operator wants: the spec in groups/<name>. It is stored complete, with every
// default written out, so that what etcdctl shows is what is in force.
type Group struct {
	Schema    int               `json:"schema"`
	Name      string            `json:"name"`
	Size      int               `json:"size"`
	Lifecycle string            `json:"lifecycle"`
	Labels    map[string]string `json:"labels,omitempty"`
	Provider  string            `json:"provider"`
	Template  Template          `json:"template"`
	Workload  Workload          `json:"workload"`
	Vars      map[string]string `json:"vars,omitempty"`
	// environment variable of the workload → name of the secret (SEC-6)
	Secrets             map[string]string `json:"secrets,omitempty"`
	Report              ReportSpec        `json:"report"`
	Checks              []Check           `json:"checks,omitempty"`
	Files               []File            `json:"files,omitempty"`
	RegistrationTimeout Duration          `json:"registration_timeout"`
	MaxChecking         Duration          `json:"max_checking_health_duration"`
	Heal                HealSpec          `json:"heal"`
	Budget              Budget            `json:"budget"`
	BudgetGroup         string            `json:"budget_group,omitzero"` // see ShardSettings.BudgetGroups (REC-18)
	Spread              Spread            `json:"spread,omitzero"`       // over the zones (REC-17)
	Rollout             RolloutSpec       `json:"rollout"`
	Windows             []Window          `json:"windows,omitempty"` // ROLL-6
	Freeze              FreezeSpec        `json:"freeze,omitzero"`
	Drills              []DrillSpec       `json:"drills,omitempty"` // DAY-6
	Flap                FlapSpec          `json:"flap"`
	Storm               StormSpec         `json:"storm"`
	Expiry              ExpirySpec        `json:"expiry,omitzero"`
	Drain               DrainSpec         `json:"drain"`
	Busy                BusySpec          `json:"busy,omitzero"`
	Spot                SpotSpec          `json:"spot"`
	Capacity            CapacitySpec      `json:"capacity,omitzero"`
	Scale               *ScaleSpec        `json:"scale,omitempty"` // AUTO-1; nil: the size is Size
	Slots               SlotsSpec         `json:"slots,omitzero"`
	OnDemandAge         Duration          `json:"on_demand_age,omitempty"`
	Agent               AgentSpec         `json:"agent,omitzero"`
	StopTimeout         Duration          `json:"stop_timeout"`

	// no part of the template: a change rolls nothing (LB-1)
	LoadBalancers []LoadBalancer `json:"load_balancers,omitempty"`
	MaxOpening    Duration       `json:"max_opening_traffic_duration,omitempty"` // LB-2; 0: unlimited

	OperatorState
}

// OperatorState is the part of a spec that commands set and no file does.
type OperatorState struct {
	Paused    bool     `json:"paused,omitempty"`    // REC-13, by group pause
	Deleting  bool     `json:"deleting,omitempty"`  // REC-7, by group delete
	Stopped   bool     `json:"stopped,omitempty"`   // REC-11, by group stop: no instances, the size is kept
	Unstarted bool     `json:"unstarted,omitempty"` // REC-11, by group apply --no-start: not started yet
	Relaunch  Relaunch `json:"relaunch,omitzero"`   // ROLL-1, by group restart
	Source    string   `json:"source,omitempty"`    // REC-7, by apply --source: what its file comes from
	// AUTO-3, by group scale of a group whose size follows its load
	ScaleHold *ScaleHold `json:"scale_hold,omitempty"`
}

// MaxSource bounds OperatorState.Source, in bytes.
const MaxSource = 200

// Relaunch counts how often an operator had all instances of a group relaunched. An instance that
// went through fewer is outdated.
type Relaunch struct {
	Number int    `json:"number"`
	Action string `json:"action"` // ActionRestart or ActionRecreate
}

// Template is what a machine is. The provider validates its own part, Settings.
type Template struct {
	InstanceType  string            `json:"instance_type,omitempty"`
	InstanceTypes []string          `json:"instance_types,omitempty"` // instead of the one
	Zones         []string          `json:"zones,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	Settings      map[string]any    `json:"settings,omitempty"`
}

// Types returns the instance types that will do, in order of preference; none: the provider's
// choice.
func (t Template) Types() []string {
	if t.InstanceType != "" {
		return []string{t.InstanceType}
	}
	return t.InstanceTypes
}

// Workload is what the agent runs on the machine, if anything.
type Workload struct {
	Run []string `json:"run,omitempty"`
}

// ReportSpec sets how often agents report, and when silence is loss (DET-1, DET-2).
type ReportSpec struct {
	Interval    Duration  `json:"interval"`
	LeaseTTL    Duration  `json:"lease_ttl"`
	OnLeaseLost LeaseLost `json:"on_lease_lost"`
}

// HealSpec sets how failed instances are healed (HEAL-1).
type HealSpec struct {
	Policy string `json:"policy"`
	// OnLoadBalancer: what a load balancer calls down has failed (LB-2).
	OnLoadBalancer bool `json:"on_load_balancer,omitempty"`
	// MaxUnhealthy: while more of the group fail their checks, none is healed for that (ROLL-7); nil:
	// however many they are.
	MaxUnhealthy *Amount `json:"max_unhealthy,omitempty"`
}

// RolloutSpec sets how a change of the template reaches the instances (ROLL-1 to ROLL-4).
type RolloutSpec struct {
	Strategy         string   `json:"strategy"`
	MinimalAction    string   `json:"minimal_action"`
	StartupDuration  Duration `json:"startup_duration"`
	ProgressDeadline Duration `json:"progress_deadline"`

	Canary         Amount    `json:"canary,omitempty"`          // ROLL-5: so many first; 0: none
	CanaryDuration *Duration `json:"canary_duration,omitempty"` // nil: DefaultCanaryDuration; 0: until group promote
	Bake           Duration  `json:"bake,omitempty"`            // ROLL-8
	Order          string    `json:"order,omitempty"`           // "" or OrderZone
	AutoRollback   bool      `json:"auto_rollback,omitempty"`   // ROLL-5

	Analysis []Analysis `json:"analysis,omitempty"` // ROLL-5
}

// DefaultCanaryDuration is how long canaries have to be healthy.
const DefaultCanaryDuration = Duration(10 * time.Minute)

// CanaryWait returns how long canaries have to be healthy before the others follow; promoted: an
// operator has to say so.
func (r *RolloutSpec) CanaryWait() (wait time.Duration, promoted bool) {
	d := DefaultCanaryDuration
	if r.CanaryDuration != nil {
		d = *r.CanaryDuration
	}
	return max(d, r.Bake).D(), d == 0
}

// Canaries returns how many instances of a group are changed first. Others always remain.
func (g *Group) Canaries() int {
	if g.Rollout.Canary == 0 || g.Size < 2 {
		return 0
	}
	return min(max(1, g.Rollout.Canary.Up(g.Size)), g.Size-1)
}

// FlapSpec sets how long to wait before retrying what failed several times, and when to give up
// (FLAP-1 to FLAP-4).
type FlapSpec struct {
	Failures    int      `json:"failures"`
	Window      Duration `json:"window"`
	MinDelay    Duration `json:"min_delay"`
	MaxDelay    Duration `json:"max_delay"`
	Noise       Duration `json:"noise"`
	GiveUpAfter int      `json:"give_up_after"` // failures; 0: never
	GiveUpTime  Duration `json:"give_up_time"`
	Reset       Duration `json:"reset"`
}

// StormSpec sets how many losses at once are a storm, in which nothing lost is replaced (SAFE-2).
type StormSpec struct {
	Min        int      `json:"min"`
	Percent    int      `json:"percent"`
	Window     Duration `json:"window"`
	Cooldown   Duration `json:"cooldown"`
	ProbeAfter Duration `json:"probe_after"` // 0: never
}

// ExpirySpec sets how old instances may become (EXP-1). Nil is the shard's value, 0 is off.
type ExpirySpec struct {
	EligibleAge *Duration `json:"eligible_age,omitempty"`
	ForcedAge   *Duration `json:"forced_age,omitempty"`
	ForcedGrace *Duration `json:"forced_grace,omitempty"` // nil: DefaultForcedGrace
}

// DrainSpec sets how an instance leaves (DRAIN-1). Without a hook nothing is waited for.
type DrainSpec struct {
	Timeout Duration `json:"timeout"`
	Hook    []string `json:"hook,omitempty"`
}

// SpotSpec sets whether a group's machines may be taken away by their provider (SPOT-1, SPOT-3).
type SpotSpec struct {
	Enabled     bool     `json:"enabled"`
	MaxLifetime Duration `json:"max_lifetime"`
	NoticeSpec
}

// CapacitySpec divides a group between machines on demand and spot machines (SPOT-4). The zero
// value is a group that is not divided: see SpotSpec.Enabled.
type CapacitySpec struct {
	OnDemandBase  int       `json:"on_demand_base,omitempty"`
	Spot          int       `json:"spot,omitempty"`           // percent of what is beyond OnDemandBase
	Fallback      string    `json:"fallback,omitempty"`       // "": FallbackOnDemand
	FallbackAfter *Duration `json:"fallback_after,omitempty"` // nil: DefaultFallbackAfter
	ReturnAfter   *Duration `json:"return_after,omitempty"`   // nil: DefaultReturnAfter; 0: never
}

// The defaults of CapacitySpec.
const (
	DefaultFallbackAfter = Duration(2 * time.Minute)
	DefaultReturnAfter   = Duration(30 * time.Minute)
)

// Waits reports whether an instance waits for spot capacity, however long that takes.
func (c CapacitySpec) Waits() bool { return c.Fallback == FallbackWait }

// Patience returns how long spot capacity is asked for before an instance is made on demand.
func (c CapacitySpec) Patience() time.Duration {
	if c.FallbackAfter == nil {
		return DefaultFallbackAfter.D()
	}
	return c.FallbackAfter.D()
}

// Return returns how long after a fallback the first instance tries to return to spot; 0: never.
func (c CapacitySpec) Return() time.Duration {
	if c.ReturnAfter == nil {
		return DefaultReturnAfter.D()
	}
	return c.ReturnAfter.D()
}

// complete fills in the defaults, and leaves a group without shares as it was before there were
// any: the release before refuses fields that it does not know.
func (c *CapacitySpec) complete() {
	full := CapacitySpec{OnDemandBase: c.OnDemandBase, Spot: c.Spot, Fallback: cmp.Or(c.Fallback, FallbackOnDemand)}
	patience, back := Duration(c.Patience()), Duration(c.Return())
	full.FallbackAfter, full.ReturnAfter = &patience, &back
	if full.OnDemandBase == 0 && full.Spot == 0 && full.Fallback == FallbackOnDemand &&
		patience == DefaultFallbackAfter && back == DefaultReturnAfter {
		full = CapacitySpec{}
	}
	*c = full
}

// OnDemand returns how many of a number of instances are to be on demand.
func (c CapacitySpec) OnDemand(size int) int {
	base := min(c.OnDemandBase, size)
	return base + ((size-base)*(100-c.Spot)+99)/100
}

// NoticeSpec says where agents look for the word that their machine will be taken away (SPOT-1).
type NoticeSpec struct {
	Source   string `json:"source,omitempty"`   // NoticeNone, NoticeAWS, NoticeGCP, NoticeAzure or NoticeFile
	File     string `json:"file,omitempty"`     // of NoticeFile
	Endpoint string `json:"endpoint,omitempty"` // of the others: instead of the cloud's own address
}

// Watched reports whether there is anything to look at.
func (n NoticeSpec) Watched() bool { return n.Source != "" && n.Source != NoticeNone }

// The values of Lifecycle, Heal.Policy, Spread, Rollout.Strategy, Capacity.Fallback, Spot.Source
// and of actions that change what runs.
const (
	LifecycleService = "service"
	LifecycleTask    = "task"

	HealRestart  = "restart"
	HealRecreate = "recreate"
	HealNone     = "none"

	SpreadAtCreation Spread = "at_creation"
	SpreadEven       Spread = "even"

	StrategyProactive     = "proactive"
	StrategyOpportunistic = "opportunistic"

	OrderAny  = "any"
	OrderZone = "zone"

	FallbackOnDemand = "on_demand"
	FallbackWait     = "wait"

	NoticeNone  = "none"
	NoticeAWS   = "aws"
	NoticeGCP   = "gcp"
	NoticeAzure = "azure"
	NoticeFile  = "file"

	ActionLiveUpdate = "live_update"
	ActionRestart    = "restart"
	ActionRecreate   = "recreate"
)

// DefaultGroup returns a group with all defaults, without the fields that an operator has to set. A
// lease_ttl of 0 means its default, which depends on the interval: see Complete.
func DefaultGroup() Group {
	return Group{
		Schema:              Schema,
		Lifecycle:           LifecycleService,
		Report:              ReportSpec{Interval: Duration(5 * time.Second)},
		RegistrationTimeout: Duration(5 * time.Minute),
		MaxChecking:         Duration(10 * time.Minute),
		Heal:                HealSpec{Policy: HealRecreate},
		Budget:              Budget{MaxExpansion: 1},
		Rollout: RolloutSpec{
			Strategy:         StrategyProactive,
			MinimalAction:    ActionLiveUpdate,
			ProgressDeadline: Duration(10 * time.Minute),
		},
		Flap: FlapSpec{
			Failures:   3,
			Window:     Duration(5 * time.Minute),
			MinDelay:   Duration(30 * time.Second),
			MaxDelay:   Duration(16 * time.Minute),
			Noise:      Duration(5 * time.Second),
			GiveUpTime: Duration(72 * time.Hour),
			Reset:      Duration(5 * time.Minute),
		},
		Storm: StormSpec{
			Min:        3,
			Percent:    50,
			Window:     Duration(time.Minute),
			Cooldown:   Duration(time.Minute),
			ProbeAfter: Duration(5 * time.Minute),
		},
		Drain:       DrainSpec{Timeout: Duration(5 * time.Minute)},
		Spot:        SpotSpec{MaxLifetime: Duration(24 * time.Hour), NoticeSpec: NoticeSpec{Source: NoticeNone}},
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
	completeChecks(g.Checks)
	completeFiles(g.Files)
	g.Capacity.complete()
	if g.Scale != nil {
		full := g.Scale.Complete()
		g.Scale = &full
	}
	if g.Expiry.ForcedGrace != nil && *g.Expiry.ForcedGrace == DefaultForcedGrace {
		g.Expiry.ForcedGrace = nil
	}
	if b := g.Busy.Timeout; b != nil && *b == DefaultBusyTimeout {
		g.Busy.Timeout = nil
	}
	if w := g.Agent.Within; w != nil && *w == DefaultAgentWithin {
		g.Agent.Within = nil
	}
	if g.Agent.AtOnce == 1 {
		g.Agent.AtOnce = 0
	}
	if g.Rollout.Order == OrderAny {
		g.Rollout.Order = "" // a spec is the same before and after it was stored
	}
}

// Spread is whether a group keeps its zones even, or only places new instances evenly.
type Spread string

// IsZero reports whether it is the default, which is not written: the release before refuses fields
// that it does not know.
func (s Spread) IsZero() bool { return s == "" || s == SpreadAtCreation }

// UnmarshalText reads the default as the empty value, as it is stored: a spec is equal before and
// after it was stored.
func (s *Spread) UnmarshalText(text []byte) error {
	if *s = Spread(text); *s == SpreadAtCreation {
		*s = ""
	}
	return nil
}

// ReadGroup reads a spec: defaults for what is left out, an error for an unknown field, a newer
// schema or a value that is not allowed. The error joins a *FieldError for each field that is
// wrong.
func ReadGroup(value []byte) (Group, error) {
	g, err := decodeGroup(value)
	if err != nil {
		return g, err
	}
	return g, g.Validate()
}

// decodeGroup reads a spec and fills in defaults. It judges no values.
func decodeGroup(value []byte) (Group, error) {
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
	if err := knownChecks(value); err != nil {
		return Group{}, err
	}
	g.Complete()
	return g, nil
}

// Restore puts back what instances were made from: what a rollback restores (ROLL-4).
func (g *Group) Restore(good InstanceSpec) {
	g.Provider, g.Template, g.Workload, g.Vars, g.Secrets = good.Provider, good.Template, good.Workload, good.Vars,
		good.Secrets
	g.Checks, g.Files, g.Slots, g.Busy.BusyProbe = good.Checks, good.Files, good.Slots, good.Busy
}

// InstanceSpec returns the part of the spec that a machine is made from. Of a group that is divided
// between spot machines and others, it is a spot machine's.
func (g Group) InstanceSpec() InstanceSpec {
	var notices NoticeSpec
	if g.Spot.Watched() {
		notices = g.Spot.NoticeSpec
	}
	return InstanceSpec{
		Provider:            g.Provider,
		Template:            g.Template,
		Workload:            g.Workload,
		Vars:                g.Vars,
		Secrets:             g.Secrets,
		Report:              g.Report,
		Checks:              g.Checks,
		Files:               g.Files,
		RegistrationTimeout: g.RegistrationTimeout,
		MaxChecking:         g.MaxChecking,
		StopTimeout:         g.StopTimeout,
		Drain:               g.Drain,
		Busy:                g.Busy.BusyProbe,
		Lifecycle:           g.Lifecycle,
		Slots:               g.Slots,
		Spot:                g.Spot.Enabled || g.Capacity.Spot > 0,
		Notices:             notices,
	}
}

// TemplateHash identifies a template: an instance made from another one is outdated (ROLL-1).
// Timers are no part of it, as changing them needs no new machine.
func (s InstanceSpec) TemplateHash() string {
	sum := sha256.Sum256(Encode(struct {
		Provider string
		Template Template
		Workload Workload
		Vars     map[string]string
		Checks   []Check           `json:",omitempty"` // what has none has the hash that earlier versions gave it
		Secrets  map[string]string `json:",omitempty"`
		Slots    SlotsSpec         `json:",omitzero"`
		Files    []File            `json:",omitempty"`
		Busy     BusyProbe         `json:",omitzero"`
	}{s.Provider, s.Template, s.Workload, s.Vars, s.Checks, s.Secrets, s.Slots, s.Files, s.Busy}))
	return "t" + hex.EncodeToString(sum[:4])
}

// ConfigHash identifies the configuration that an agent can receive while its machine runs
// (FILE-3).
func (s InstanceSpec) ConfigHash() string {
	sum := sha256.Sum256(Encode(struct {
		Workload Workload
		Vars     map[string]string
		Checks   []Check           `json:",omitempty"`
		Secrets  map[string]string `json:",omitempty"`
		Files    []File            `json:",omitempty"`
		Busy     BusyProbe         `json:",omitzero"`
	}{s.Workload, s.Vars, s.Checks, s.Secrets, s.Files, s.Busy}))
	return "c" + hex.EncodeToString(sum[:4])
}
