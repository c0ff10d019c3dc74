package judge

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// Tell formats violations for people: what was broken, and the evidence below it. Times are
// relative to the violation.
func Tell(violations []Violation) string {
	if len(violations) == 0 {
		return "no violation\n"
	}
	var b strings.Builder
	for i, v := range violations {
		fmt.Fprintf(&b, "%d. %s at %s: %s\n", i+1, v.Rule, time.Duration(v.At).Round(time.Millisecond), v.What)
		for _, e := range v.Evidence {
			fmt.Fprintf(&b, "     %9s  %s\n", fmt.Sprintf("%+.3fs", e.At.Sub(v.At).Seconds()), tellEvent(e))
		}
	}
	return b.String()
}

func tellEvent(e history.Event) string {
	switch {
	case e.Call != nil:
		c := e.Call
		if !c.Ended {
			return fmt.Sprintf("call %d of %s begins: %s %s", c.ID, c.Replica, c.Method, c.Instance)
		}
		return fmt.Sprintf("call %d of %s ends: %s %s %s%s", c.ID, c.Replica, c.Method, c.Instance,
			cmp.Or(c.Err, "well"), after(", made wrong: ", c.Lie))
	case e.Machine != nil:
		return fmt.Sprintf("machine %s %s%s", e.Machine.Instance, e.Machine.What, after(" by ", e.Machine.Why))
	case e.Harm != nil:
		if e.Harm.Ends {
			return fmt.Sprintf("machine %s is no longer %s", e.Harm.Instance, e.Harm.Kind)
		}
		return fmt.Sprintf("machine %s is %s", e.Harm.Instance, e.Harm.Kind)
	case e.Trouble != nil:
		if e.Trouble.Ends {
			return fmt.Sprintf("trouble %d is over: %s", e.Trouble.ID, e.Trouble.Kind)
		}
		return fmt.Sprintf("trouble %d: %s, %s", e.Trouble.ID, e.Trouble.Kind, e.Trouble.What)
	case e.Change != nil:
		return tellChange(e.Change)
	case e.Commit != nil:
		return fmt.Sprintf("transaction %d of %s: %s %s", e.Commit.ID, e.Commit.Replica, e.Commit.Outcome,
			strings.Join(e.Commit.Keys, " "))
	case e.Order != nil:
		return "operator: " + strings.Join(e.Order.Command, " ") + after(": ", e.Order.Err)
	case e.Mark != nil:
		return fmt.Sprintf("%s %s", e.Mark.What, e.Mark.Text)
	case e.Membership != nil:
		m := e.Membership
		if m.What == history.Listed {
			return fmt.Sprintf("the load balancer tells %s that it sends traffic to %v", m.Replica, m.Ready)
		}
		return fmt.Sprintf("load balancer: %s %s%s%s", m.Instance, m.What, after(" at ", m.Call), after(" by ", m.Replica))
	case e.Torn != nil:
		return fmt.Sprintf("file %s of %s: %s", e.Torn.Path, e.Torn.Instance, e.Torn.What)
	case e.Certificate != nil:
		return fmt.Sprintf("file %s of %s: certificate %s, which lasts %s", e.Certificate.Path, e.Certificate.Instance,
			e.Certificate.Serial, e.Certificate.Left.Round(time.Millisecond))
	case e.Leaked != nil:
		return fmt.Sprintf("private key of %s in %s: %s", e.Leaked.Instance, e.Leaked.Where, e.Leaked.As)
	case e.Left != nil:
		return "left: " + e.Left.What
	default:
		return "?"
	}
}

func tellChange(c *history.Change) string {
	where := fmt.Sprintf("rev %d", c.Revision)
	if c.Line > 0 {
		where = fmt.Sprintf("line %d rev %d", c.Line, c.Revision)
	}
	name := c.Key
	if shard, ok := store.ShardOf(c.Key); ok {
		kind, rest, _ := store.KeysOf(shard).Split(c.Key)
		if kind == store.KindEvents {
			if v, err := store.Decode[store.JournalEntry](store.KV{Key: c.Key, Value: c.Value}); err == nil &&
				!c.Deleted {
				j := v.Record
				step := ""
				if j.From != "" || j.To != "" {
					step = fmt.Sprintf(" (%s to %s)", cmp.Or(string(j.From), "nothing"),
						cmp.Or(string(j.To), "nothing"))
				}
				return fmt.Sprintf("%s journal of %s: %s %s%s: %s%s%s", where, j.By, cmp.Or(j.Instance, j.Group),
					j.What, step, j.Rule, after(", ", j.Why), after("; ", strings.Join(reason.Evidence(&j), "; ")))
			}
		}
		name = strings.TrimSuffix(kind+"/"+rest, "/")
		if kind == store.KindInstances && !c.Deleted {
			if v, err := store.Decode[store.Instance](store.KV{Key: c.Key, Value: c.Value}); err == nil {
				return fmt.Sprintf("%s %s is %s%s: %s, %s", where, name, v.Record.Phase,
					after(", in the place of ", v.Record.Replaces), v.Record.Last.Rule, v.Record.Last.Why)
			}
		}
	}
	if c.Deleted {
		return where + " " + name + " is gone"
	}
	const most = 200
	return fmt.Sprintf("%s %s = %.*s", where, name, most, c.Value)
}

// after puts something before a text, if there is a text.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
