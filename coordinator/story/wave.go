package story

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// maxWaves is how many upgrades of agents are described at once.
const maxWaves = 3

// installAgents is what an operator does about agents that no wave upgrades.
const installAgents = "install the coordinators' version of the agent on these machines, a few at a time"

// upgradesAgents reports whether the group's agents are upgraded in waves.
func (g Known) upgradesAgents() bool { return !g.Gone() && g.Spec.Agent.Version != "" }

// otherAgentsNext is what to do about agents of another version than their coordinator's. Agents
// of a group that upgrades them come to its version by themselves, and a package that is installed
// by hand would undo that (PROV-7).
func otherAgentsNext(groups []Known, version string) string {
	var waves []string
	left := false // groups whose agents are left alone
	for _, g := range groups {
		switch w := g.Status.Record.Agents; {
		case w == nil && g.upgradesAgents():
			waves = append(waves, g.Name+": it begins when a coordinator serves a signed agent")
		case w == nil:
			left = left || !g.Gone()
		case w.Done == w.Of && w.Of > 0 && w.Version != version:
			waves = append(waves, fmt.Sprintf("%s: all %d agents are of %s, the next wave begins when the coordinators serve "+
				"their own version, and agent.version allows it", g.Name, w.Of, reason.OneLine(w.Version)))
		case w.Done < w.Of:
			waves = append(waves, fmt.Sprintf("%s: %d of %s %s of %s, %s", g.Name, w.Done,
				reason.Number(w.Of, "agent"), reason.Verb(w.Done, "is", "are"), reason.OneLine(w.Version),
				waveGoesOn(g.Name, g.Status.Record)))
		}
	}
	if len(waves) == 0 {
		return installAgents
	}
	if more := len(waves) - maxWaves; more > 0 {
		waves = append(waves[:maxWaves], "and "+reason.Counted(more, "more group", "more groups"))
	}
	next := "agents are upgraded in waves: " + strings.Join(waves, "; ")
	if left {
		next += "; in groups without agent.version, " + installAgents
	}
	return next
}

// unblockWave is what an operator does about an upgrade of agents that cannot go on; nil for other
// work (PROV-7).
func unblockWave(group string, b *store.Blocked) Remedies {
	another := Advise("leasehold group edit " + group + ", for another agent.version")
	switch b.Kind {
	case store.BlockedByNoRelease:
		next := Advise("put the agent and its .sig (leasehold upgrade sign) into the directory of the coordinators' " +
			"--agents, and restart them one after the other")
		if b.Of.Name == store.AgentAuto {
			return next
		}
		return next.Or(another)
	case store.BlockedByOldCoordinator:
		return Advise("upgrade coordinator " + b.Of.Other + ": leasehold upgrade check --to " + reason.OneLine(b.Of.Name) +
			" lists the steps").Or(another)
	case store.BlockedByUpgradeStopped:
		return Advise("once " + b.Of.Other + " can run it, leasehold group retry " + group).Or(another)
	default:
		return nil
	}
}

// WaveNow describes an upgrade of agents that is under way, and when it goes on; "" if none is, or
// if it has stopped.
func WaveNow(st store.Status) string {
	w := st.Agents
	if w == nil || w.Done >= w.Of || w.Stopped != "" {
		return ""
	}
	return fmt.Sprintf("%d of %s %s of %s, %s", w.Done, reason.Number(w.Of, "agent"), reason.Verb(w.Done, "is", "are"),
		reason.OneLine(w.Version), waveGoesOn("", st))
}

// waveGoesOn is when the next agent of a wave that is not complete is offered the version.
func waveGoesOn(group string, st store.Status) string {
	if st.Agents.Stopped != "" {
		return "and the wave has stopped: leasehold group retry " + group
	}
	for i := range st.Blocked {
		if b := &st.Blocked[i]; b.Work == store.WorkUpgrade && b.Instance == "" {
			if until := reason.Until(b); until != "" {
				return "the next follows when " + reason.OneLine(until)
			}
		}
	}
	return "the next follows when the one before it has proved the version"
}
