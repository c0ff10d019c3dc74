package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// InstanceNow describes an instance's special states, for a table; "-" if there are none.
func InstanceNow(i store.Instance, now time.Time) string {
	var words []string
	if !i.Managed {
		words = append(words, "on-demand")
	}
	if i.Protected != "" {
		word := "protected"
		if p := i.Protection; p != nil && p.Ends != nil {
			word += ":" + Ends(*p.Ends, now)
		}
		words = append(words, word)
	}
	if i.Doomed != nil {
		words = append(words, "doomed")
	}
	if i.Condemned != nil {
		words = append(words, "ordered-to-go")
	}
	if i.Drain != nil && i.Phase == store.Draining {
		words = append(words, "drains:"+DrainEnds(*i.Drain, now))
	}
	for _, t := range i.Traffic {
		if t.State != store.TrafficServing {
			words = append(words, string(t.State)+":"+t.Balancer)
		}
	}
	if i.Restart != nil && (i.Phase == store.Stopping || i.Phase == store.Starting || i.Phase == store.Checking) {
		words = append(words, "restart:"+i.Restart.Level)
	}
	return dashed(strings.Join(words, ","))
}

// ProtectedBy says who protected an instance, why and until when, after a comma; "" if an earlier
// release did not record it.
func ProtectedBy(i store.Instance) string {
	p := i.Protection
	if p == nil {
		return ""
	}
	text := ", by " + p.By
	if p.Ends != nil {
		text += " until " + p.Ends.End().UTC().Format(time.RFC3339)
	}
	if p.Why != "" {
		text += ": " + reason.OneLine(p.Why)
	}
	return text
}

// hostPort returns an address with a port, with IPv6 addresses in brackets.
func hostPort(address string, port int) string {
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	return fmt.Sprintf("%s:%d", address, port)
}

// DrainEnds says in how long a drain ends, or that it is over.
func DrainEnds(d store.Drain, now time.Time) string {
	if d.Done != "" {
		return "over"
	}
	return Ends(d.Timer, now)
}

// InstanceLines describes an instance's special states in full, one line each.
func InstanceLines(i store.Instance, now time.Time) []string {
	var lines []string
	if !i.Managed {
		lines = append(lines, "on demand: it does not count towards the size and is not healed (REC-2)")
	}
	switch i.Protected {
	case "":
	case store.ProtectHeal:
		lines = append(lines, "protected from scale-down, age limits and rolls, and not healed (REC-13)"+ProtectedBy(i))
	default:
		lines = append(lines, "protected from scale-down, age limits and rolls (REC-13)"+ProtectedBy(i))
	}
	if d := i.Doomed; d != nil {
		line := fmt.Sprintf("doomed: %s: %s (%s ago)", d.Rule,
			reason.OneLine(reason.Text(d.Cause, d.Why)), reason.Age(now, d.At))
		if d.Deadline != nil {
			line += ", it ends in " + Ends(*d.Deadline, now)
		}
		lines = append(lines, line)
	}
	if d := i.Drain; d != nil {
		lines = append(lines, drainLine(*d, i.ID, now))
	}
	if w := i.Awaits; w != nil {
		lines = append(lines, "restart: when its workload is idle, or in "+Ends(w.Timer, now)+" (BUSY-1)")
	}
	if r := i.Restart; r != nil {
		line := fmt.Sprintf("restart: of the %s, ordered %s ago", r.Level, reason.Age(now, r.At))
		if r.Heals {
			line += ", because it had failed"
		}
		lines = append(lines, line)
	}
	for _, t := range i.Traffic {
		line := fmt.Sprintf("load balancer %s: %s for %s, at %s", t.Balancer, t.State, reason.Age(now, t.Since),
			hostPort(t.Address, t.Port))
		if t.Timer != nil {
			line += ", which is waited for at most another " + Ends(*t.Timer, now)
		}
		lines = append(lines, line)
	}
	if i.Relaunch > 0 {
		lines = append(lines, fmt.Sprintf("relaunched: %s with its group", reason.Counted(i.Relaunch, "time", "times")))
	}
	return lines
}

// drainLine returns why an instance drains, and until when.
func drainLine(d store.Drain, id string, now time.Time) string {
	line := fmt.Sprintf("drain: %s: %s", d.Rule, reason.OneLine(reason.Text(d.Cause, d.Why)))
	switch {
	case d.Done != "":
		line += "; it is over: " + reason.OneLine(d.Done)
	default:
		line += fmt.Sprintf("; ends in %s at the latest, or with leasehold instance drained %s", Ends(d.Timer, now), id)
	}
	if d.Lost {
		line += "; if its agent returns, it stays"
	}
	return line
}

// AgentLines describes an agent's session and its last report.
func AgentLines(session store.Versioned[store.Alive], report store.Versioned[store.Report], now time.Time) []string {
	var lines []string
	if v := session; v.Present() {
		a := v.Record
		line := fmt.Sprintf("agent: stream %s since %s (%s) at replica %s, rev %d", a.State, Clock(a.Since, now),
			reason.Age(now, a.Since), a.Replica, v.Modified)
		if a.Why != "" && a.State != store.StreamOpen {
			line += ": " + a.Why
		}
		lines = append(lines, line)
	} else {
		lines = append(lines, "agent: no session")
	}
	if v := report; v.Present() {
		r := v.Record
		line := fmt.Sprintf("report: stored %s (%s ago), rev %d: ", Clock(r.Received, now),
			reason.Age(now, r.Received), v.Modified)
		if r.Healthy {
			line += "healthy"
		} else {
			line += "unhealthy: " + r.Why
		}
		for _, c := range r.Checks {
			if c.Name == store.IdleCheck {
				line += "; " + Busy(&r)
			} else if !c.Healthy {
				line += fmt.Sprintf("; check %s fails for %s: %s", strings.TrimSpace(CheckName(c)+" "+c.Progress()),
					reason.Age(now, c.Since), c.Why)
			}
		}
		for _, f := range r.Files {
			if f.State != store.FileDelivered {
				line += "; " + FileLine(f, now)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// unheardAfter is when an agent that has not registered deserves a look: most machines boot sooner.
const unheardAfter = 30 * time.Second

// UnregisteredLines says why the agent of an instance that is booting has not registered, if a
// replica has refused it, or else what to check on its machine: an agent that reaches no
// coordinator leaves no trace here.
func UnregisteredLines(i store.Instance, replicas map[string]store.Versioned[store.Replica], now time.Time) []string {
	if i.Phase != store.Booting {
		return nil
	}
	var lines, addresses []string
	for _, id := range slices.Sorted(maps.Keys(replicas)) {
		r := replicas[id].Record
		if r.Address != "" {
			addresses = append(addresses, r.Address)
		}
		for _, f := range r.Refused {
			if f.Instance != i.ID || f.At.Before(i.Created.Truncate(time.Minute)) {
				continue
			}
			line := fmt.Sprintf("agent: %s refused it %s ago, from %s: %s: %s", id, reason.Age(now, f.At),
				reason.OneLine(f.From), reason.OneLine(f.What), reason.OneLine(f.Why))
			if f.Detail != "" {
				line += fmt.Sprintf(" (%.200s)", reason.OneLine(f.Detail))
			}
			if !f.Proved {
				line += "; the client gave the name without proof"
			}
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 || now.Sub(i.Since) < unheardAfter {
		return lines
	}
	check := "its clock, and its certificate or join token"
	if len(addresses) > 0 {
		check = "whether it reaches " + FewNames(addresses) + ", " + check
	}
	return []string{"agent: no coordinator has heard of it. On its machine, journalctl -u leasehold-agent says why " +
		"(without systemd: agent.log in its state directory); check " + check}
}

// Busy says whether the workload of an instance is busy.
func Busy(r *store.Report) string {
	if r.Idle() {
		return "its workload is idle"
	}
	return "its workload is busy, as far as is known"
}

// CheckName names a check, and says whether it is optional.
func CheckName(c store.CheckReport) string {
	if c.Optional {
		return reason.OneLine(c.Name) + " (optional)"
	}
	return reason.OneLine(c.Name)
}
