package store

import (
	"cmp"
	"regexp"
	"time"
)

// AgentSpec is which version of the agent a group's machines are to run (PROV-7). It is no part of
// the template: a change rolls nothing.
type AgentSpec struct {
	Version   string    `json:"version,omitempty"` // "": agents are left alone; AgentAuto: the latest that is served
	AtOnce    Amount    `json:"at_once,omitempty"` // 0: one
	Within    *Duration `json:"within,omitempty"`  // nil: DefaultAgentWithin
	Downgrade bool      `json:"downgrade,omitempty"`
}

// AgentAuto stands for the latest version that coordinators serve.
const AgentAuto = "auto"

// DefaultAgentWithin is how soon a new version must be acknowledged.
const DefaultAgentWithin = Duration(2 * time.Minute)

// Limit returns how soon a new version must be acknowledged.
func (a *AgentSpec) Limit() time.Duration {
	if a.Within == nil {
		return DefaultAgentWithin.D()
	}
	return a.Within.D()
}

// AgentFetchTime is how long an agent may take to download a version, and to go back from it.
const AgentFetchTime = 7 * time.Minute

// AgentUpgrade is an offer of another version to an instance's agent.
type AgentUpgrade struct {
	Version   string   `json:"version"`
	Token     string   `json:"token"` // distinguishes this offer from others in the agent's report
	Within    Duration `json:"within"`
	Downgrade bool     `json:"downgrade,omitempty"`
	// Installed: the agent reports this version, and has not proved yet that it works.
	Installed bool `json:"installed,omitempty"`
	// Withdrawn: the offer is no longer sent, but the agent may have begun before.
	Withdrawn bool  `json:"withdrawn,omitempty"`
	Timer     Timer `json:"timer"` // without an answer, or a proof, until then it has failed
}

// TimerUpgrade is the timer of an offer.
const TimerUpgrade = "upgrade"

// AgentRelease is a version of the agent that a replica serves, with its signed statement.
type AgentRelease struct {
	Version   string `json:"version"`
	Platform  string `json:"platform"`
	Statement string `json:"statement"`
	Path      string `json:"path"`
}

// AgentWave is the way of a version to the agents of a group.
type AgentWave struct {
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	Done    int       `json:"done"` // instances whose agents are of the version
	Of      int       `json:"of"`
	Proved  bool      `json:"proved,omitempty"` // one has proved it: more than one at a time may follow
	// Stopped is the instance whose agent did not reach the version, and Why; "": none.
	Stopped string    `json:"stopped,omitempty"`
	Why     string    `json:"why,omitempty"`
	At      time.Time `json:"at,omitzero"`
	// Forgiven are the tokens of offers whose failures do not count: those before the wave, in a
	// drill, or before an operator ordered another try. For a report without a token it is the
	// instance.
	Forgiven []string `json:"forgiven,omitempty"`
}

// The results of an offer, as agents report them.
const (
	UpgradeInstalled = "installed"
	UpgradeRefused   = "refused"
	UpgradeFailed    = "failed"
	UpgradeBack      = "back"
)

// UpgradeReport is how the last offer to an agent ended.
type UpgradeReport struct {
	Token   string `json:"token"`
	Version string `json:"version,omitempty"`
	Result  string `json:"result"`
	Why     string `json:"why,omitempty"`
}

// Same reports whether two reports are equal; nil is a report of nothing.
func (u *UpgradeReport) Same(o *UpgradeReport) bool {
	return u == o || u != nil && o != nil && *u == *o
}

var versionForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]{0,60}$`)

// agentFields are the fields of a group's agent.
var agentFields = []Field{
	{
		Path: "agent.version", Type: "string", Default: "none: agents are left alone", Rule: "PROV-7",
		Allowed: `"auto" or a version like v1.2.0`,
		Doc: "The version that agents are offered, one wave after the other; auto: the latest that coordinators serve. " +
			"Agents install only what their release key has signed. Workloads go on.",
		value: func(g *Group) any { return g.Agent.Version },
		ok: func(g *Group) bool {
			v := g.Agent.Version
			return v == "" || v == AgentAuto || versionForm.MatchString(v)
		},
	},
	amountField("agent.at_once", "1", "PROV-7",
		"How many agents are upgraded at once, after the first one alone. A percentage is rounded up.",
		func(g *Group) *Amount { return new(cmp.Or(g.Agent.AtOnce, Amount(1))) }),
	durationField("agent.within", "2m", "PROV-7",
		"How soon a coordinator must acknowledge a new version, and how long its agent must then be connected and "+
			"healthy. Without an acknowledgement the machine goes back by itself. In either case the upgrade stops.",
		10*time.Second, time.Hour,
		func(g *Group) Duration { return Duration(g.Agent.Limit()) }),
	{
		Path: "agent.downgrade", Type: "boolean", Default: "false", Allowed: "true or false", Rule: "PROV-7",
		Doc:   "An earlier version than the agent's may be installed, if its signed statement allows that too.",
		value: func(g *Group) any { return g.Agent.Downgrade },
		ok:    func(*Group) bool { return true },
	},
}
