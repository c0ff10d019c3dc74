package cli

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// instanceNow describes an instance's special states, for a table; "-" if there are none.
func instanceNow(i store.Instance, now time.Time) string {
	var words []string
	if !i.Managed {
		words = append(words, "on-demand")
	}
	if i.Protected != "" {
		words = append(words, "protected")
	}
	if i.Doomed != nil {
		words = append(words, "doomed")
	}
	if i.Condemned != nil {
		words = append(words, "ordered-to-go")
	}
	if i.Drain != nil && i.Phase == store.Draining {
		words = append(words, "drains:"+drainEnds(*i.Drain, now))
	}
	for _, t := range i.Traffic {
		if t.State != store.TrafficServing {
			words = append(words, string(t.State)+":"+t.Balancer)
		}
	}
	if i.Restart != nil && (i.Phase == store.Stopping || i.Phase == store.Starting || i.Phase == store.Checking) {
		words = append(words, "restart:"+i.Restart.Level)
	}
	return orDash(strings.Join(words, ","))
}

func drainEnds(d store.Drain, now time.Time) string {
	if d.Done != "" {
		return "over"
	}
	return story.Ends(d.Timer, now)
}

// instanceLines describes them in full, one line each.
func instanceLines(i store.Instance, now time.Time) []string {
	var lines []string
	if !i.Managed {
		lines = append(lines, "on demand: it does not count towards the size and is not healed (REC-2)")
	}
	switch i.Protected {
	case "":
	case store.ProtectHeal:
		lines = append(lines, "protected from scale-down, age limits and rolls, and not healed (REC-13)")
	default:
		lines = append(lines, "protected from scale-down, age limits and rolls (REC-13)")
	}
	if d := i.Doomed; d != nil {
		line := fmt.Sprintf("doomed: %s: %s (%s ago)", d.Rule, output.OneLine(reason.Text(d.Cause, d.Why)),
			output.Age(now, d.At))
		if d.Deadline != nil {
			line += ", it ends in " + story.Ends(*d.Deadline, now)
		}
		lines = append(lines, line)
	}
	if d := i.Drain; d != nil {
		lines = append(lines, drainLine(*d, i.ID, now))
	}
	if r := i.Restart; r != nil {
		line := fmt.Sprintf("restart: of the %s, ordered %s ago", r.Level, output.Age(now, r.At))
		if r.Heals {
			line += ", because it had failed"
		}
		lines = append(lines, line)
	}
	for _, t := range i.Traffic {
		line := fmt.Sprintf("load balancer %s: %s for %s, at %s", t.Balancer, t.State, output.Age(now, t.Since),
			net.JoinHostPort(t.Address, strconv.Itoa(t.Port)))
		if t.Timer != nil {
			line += ", which is waited for at most another " + story.Ends(*t.Timer, now)
		}
		lines = append(lines, line)
	}
	if i.Relaunch > 0 {
		lines = append(lines, fmt.Sprintf("relaunched: %s with its group", counted(i.Relaunch, "time", "times")))
	}
	return lines
}

// drainLine returns why an instance drains, and until when.
func drainLine(d store.Drain, id string, now time.Time) string {
	line := fmt.Sprintf("drain: %s: %s", d.Rule, output.OneLine(reason.Text(d.Cause, d.Why)))
	switch {
	case d.Done != "":
		line += "; it is over: " + output.OneLine(d.Done)
	default:
		line += fmt.Sprintf("; ends in %s at the latest, or with leasehold instance drained %s", story.Ends(d.Timer, now), id)
	}
	if d.Lost {
		line += "; if its agent returns, it stays"
	}
	return line
}
