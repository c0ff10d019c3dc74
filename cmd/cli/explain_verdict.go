package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// verdict is the verdict on an instance, and its evidence.
type verdict struct {
	Verdict   store.Verdict  `json:"verdict"`
	Rule      string         `json:"rule,omitempty"`
	Why       string         `json:"why,omitempty"`
	Cause     store.Cause    `json:"cause,omitzero"`
	Awaits    store.Awaited  `json:"awaits,omitempty"`
	Journaled *time.Time     `json:"told"`     // when the leader journaled it; nil: computed by this program
	Revision  store.Revision `json:"revision"` // revision of the state that it was judged on
	Evidence  []string       `json:"evidence,omitempty"`
}

// verdictNow returns the verdict on an instance: the leader's last one if it agrees with etcd or
// stands, since the leader knows more, such as the provider's answers.
func verdictNow(sc *scene, id string, verdicts map[string]store.JournalEntry) verdict {
	j := sc.plan.Judgments.Of(id)
	v := verdict{
		Verdict: j.Verdict, Rule: j.Rule, Why: j.Why(), Cause: j.Cause, Awaits: j.Awaits,
		Revision: sc.content.Revision, Evidence: reason.Lines(j.FactsOfRecords()), // this program did not ask the provider
	}
	journaled, found := verdicts[id]
	agrees := journaled.Verdict == j.Verdict || story.Ailing(journaled.Verdict) && story.Ailing(j.Verdict)
	if found && (agrees && (sc.leads() || journaled.Verdict.Failed()) || sc.leads() && sc.stands(id, &journaled)) {
		v = verdict{
			Verdict: journaled.Verdict, Rule: journaled.Rule, Why: reason.Text(journaled.Cause, journaled.Why),
			Journaled: &journaled.At,
			Cause:     reason.Known(journaled.Cause, journaled.Why),
			Awaits:    reason.Awaits(&journaled), Revision: journaled.Revision,
			Evidence: reason.Evidence(&journaled),
		}
	}
	return v
}

// stands reports whether the leader's last verdict holds although the records do not show it.
func (sc *scene) stands(id string, journaled *store.JournalEntry) bool {
	st, c := sc.status(), sc.content
	return story.Stands(journaled, &st, c.Instances[id].Modified, c.Alive[id].Modified, c.Reports[id].Modified)
}

// shown reports whether the verdict says more than the phase does.
func (v verdict) shown() bool { return v.Verdict != "" && v.Verdict != store.Unborn }

func (v verdict) judgment() plan.Judgment {
	return plan.Judgment{Verdict: v.Verdict, Rule: v.Rule, Cause: v.Cause}
}

// source returns who judged, when, and on which revision.
func (v verdict) source(now time.Time) string {
	if v.Journaled == nil {
		return fmt.Sprintf("%s, computed from rev %d", v.Rule, v.Revision)
	}
	return fmt.Sprintf("%s, recorded %s, rev %d", v.Rule, story.Clock(*v.Journaled, now), v.Revision)
}

// lines returns the verdict and its evidence as lines of a story.
func (v verdict) lines(now time.Time) []string {
	if !v.shown() {
		return nil
	}
	lines := []string{fmt.Sprintf("verdict: %s (%s): %s", v.Verdict, v.source(now), v.Why)}
	if story.Ailing(v.Verdict) && len(v.Evidence) > 0 {
		lines = append(lines, "evidence: "+strings.Join(v.Evidence, "; "))
	}
	return lines
}

// ailingLines lists the instances of a group that are not healthy, those with the worst verdict
// first.
func ailingLines(sc *scene, journaled map[string]store.JournalEntry) []string {
	all := map[store.Verdict][]string{}
	for _, i := range sc.instances() {
		v := verdictNow(sc, i.ID, journaled)
		all[v.Verdict] = append(all[v.Verdict],
			fmt.Sprintf("%s is %s (%s): %s", i.ID, strings.ToUpper(string(v.Verdict)), v.source(sc.now), v.Why))
	}
	lines := slices.Concat(all[store.Dead], all[store.Lost], all[store.Unhealthy], all[store.Stuck], all[store.Suspect])
	if more := len(lines) - story.MaxNamed; more > 0 {
		lines = append(lines[:story.MaxNamed],
			counted(more, "more is", "more are")+" not healthy: leasehold instance list -g "+sc.group)
	}
	return lines
}

// suspectUpcoming returns when a suspicion ends at the latest: the lease of a silent agent ends,
// and counts once that is confirmed and no grace period runs.
func suspectUpcoming(sc *scene, i store.Instance, v verdict) []story.Upcoming {
	if v.Verdict != store.Suspect || !i.Phase.Registered() {
		return nil
	}
	alive, ttl := sc.content.Alive[i.ID], i.Spec.Report.LeaseTTL.D()
	settings := sc.content.Shard.Record.Settings
	switch {
	case v.Awaits == store.AwaitsList:
		return []story.Upcoming{{
			At:   sc.now.Add(settings.ProviderPoll.D()),
			What: "by then the provider has been asked about " + i.ID + " once more", Rule: "DET-12",
		}}
	case alive.Present() && alive.Record.State != store.StreamOpen:
		return story.LeaseUpcoming(i, alive.Record)
	case v.Journaled == nil:
		return nil
	case v.Awaits == store.AwaitsCalm:
		back := settings.ReconnectMax.D()
		by := v.Journaled.Add(ttl + back + back/2 + time.Second)
		return []story.Upcoming{{
			At: by, Rule: "SAFE-1", What: "by then agents have had time to return, unless there is another disturbance; " +
				i.ID + " is lost if its agent has not",
		}}
	default:
		by := v.Journaled.Add(max(ttl, longestConfirmation))
		return []story.Upcoming{{At: by, What: "by then it is confirmed that the lease of " + i.ID +
			" has ended, unless its agent reports; it is lost then if no grace runs", Rule: "DET-17"}}
	}
}

// longestConfirmation is how long the end of a short lease is confirmed at most: a replica's
// default session and a second.
const longestConfirmation = 6 * time.Second

// sinceReturn returns the entries since an instance last came back from being lost: earlier
// decisions were taken back.
func sinceReturn(id string, life []store.JournalEntry) []store.JournalEntry {
	for n, e := range slices.Backward(life) {
		if e.Instance == id && e.From == store.Draining && (e.To == store.Running || e.To == store.Checking) {
			return life[n+1:]
		}
	}
	return life
}
