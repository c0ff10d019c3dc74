package story

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
)

const (
	// webhookLate is how long a webhook may fail before that is a problem: receivers restart.
	webhookLate = time.Minute
	// deadLetterShown is how long an event that was given up is a problem.
	deadLetterShown = 24 * time.Hour
	// webhookLeft is the age from which a pending event shows that no replica sends it: otherwise
	// it would have been given up.
	webhookLeft = 2 * time.Hour
)

// webhookProblems reports webhooks that take no events, and those that missed some (WEB-3).
func webhookProblems(st *Shard, now time.Time) []Problem {
	var found []Problem
	for _, v := range st.Webhooks {
		w := &v.Record
		switch failing := now.Sub(w.Since); {
		case w.Since.IsZero() || failing <= webhookLate:
		case st.Leads && failing > webhookLeft:
			found = append(found, Problem{
				About: "webhook " + w.Name, Rule: "WEB-3",
				What: fmt.Sprintf("its events wait for %s, and the leader does not know it", reason.Age(now, w.Since)),
				Remedies: Advise("name it in the file that --providers names, on each coordinator; " +
					"if it is no longer wanted: etcdctl del " + v.Key),
			})
		default:
			found = append(found, Problem{
				About: "webhook " + w.Name, Rule: "WEB-3",
				What: fmt.Sprintf("it has taken no event for %s: %.200s; each is tried for an hour",
					reason.Age(now, w.Since), w.Why),
				Remedies: Advise("check its receiver, and on the leader's host: leasehold webhook test " +
					w.Name + " --providers FILE"),
			})
		}
		var recent int
		for _, l := range w.DeadLetters {
			if now.Sub(l.GivenUp) < deadLetterShown {
				recent++
			}
		}
		if recent > 0 {
			last := w.DeadLetters[len(w.DeadLetters)-1]
			found = append(found, Problem{
				About: "webhook " + w.Name, Rule: "WEB-3",
				What: fmt.Sprintf("%s given up, the last %s ago (%s %s): %.200s",
					reason.Counted(recent, "event was", "events were"), reason.Age(now, last.GivenUp), last.Rule,
					cmp.Or(last.Instance, last.Group, st.Name), last.Why),
				Remedies: Advise("leasehold webhook list -o yaml shows them; this is shown for a day"),
			})
		}
	}
	return found
}
