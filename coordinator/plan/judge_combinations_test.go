package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Every combination of what the evidence can say: what must hold for all of them.
//
// proves DET-4, DET-5, DET-17, SAFE-1
func TestJudgeEveryCombination(t *testing.T) {
	streams := map[string]twist{
		"open": stream(store.StreamOpen), "overdue": stream(store.StreamOverdue), "lost": stream(store.StreamLost),
		"left": stream(store.StreamLeft), "moved": stream(store.StreamMoved),
		"gone now": gone(0, store.StreamLost), "gone long ago": gone(time.Hour, store.StreamOpen),
		"gone, unknown": gone(20*time.Second, ""),
	}
	sightings := map[string]twist{
		"no list": noList, "runs": func(*subject) {}, "down": down(1), "down twice": down(2), "unlisted": unlisted(1),
		"unlisted twice":     unlisted(2),
		"unlisted too early": func(x *subject) { unlisted(9)(x); provableIn(time.Second)(x) },
	}
	reports := map[string]twist{
		"healthy": func(*subject) {}, "unhealthy": unhealthy, "none": noReport,
		"of another boot": otherBoot,
	}
	ages := map[string]twist{"young": phaseFor(time.Second), "old": phaseFor(time.Hour)}
	graces := map[string]twist{"grace": graceFor(time.Minute), "no grace": func(*subject) {}}
	judged := map[store.Verdict]int{}
	for _, p := range store.Phases {
		for sn, st := range streams {
			for gn, see := range sightings {
				for rn, rep := range reports {
					for an, age := range ages {
						for cn, grace := range graces {
							x := newSubject()
							for _, twist := range []twist{phase(p), rep, st, see, age, grace} {
								twist(x)
							}
							j := x.judge()
							judged[j.Verdict]++
							if problem := absurd(x, j, sn, gn, cn); problem != "" {
								t.Errorf("%s, stream %s, provider %s, report %s, %s, %s: judged %s by %s: %s", p, sn,
									gn, rn, an, cn, j.Verdict, j.Rule, problem)
							}
						}
					}
				}
			}
		}
	}
	for _, v := range []store.Verdict{
		store.Unborn, store.Live, store.Suspect, store.Unhealthy, store.Lost, store.Dead,
		store.Stuck,
	} {
		if judged[v] == 0 {
			t.Errorf("no combination is judged %s", v)
		}
	}
}

// absurd returns what is wrong with a judgment, from the rules' words alone.
func absurd(x *subject, j Judgment, streamIs, providerSays, grace string) string {
	absent := strings.HasPrefix(streamIs, "gone")
	switch j.Verdict {
	case store.Dead:
		if providerSays == "no list" || providerSays == "runs" || providerSays == "unlisted too early" {
			return "the provider did not say so"
		}
		if strings.HasPrefix(providerSays, "unlisted") && !absent && streamIs != "lost" {
			return "its agent was heard since"
		}
		if providerSays == "down" && streamIs == "open" {
			return "its agent reports, and one list is not enough"
		}
		if strings.HasPrefix(providerSays, "down") && x.Record.Phase == store.Stopping &&
			(x.Record.Restart == nil || x.Record.Restart.Level == store.RestartMachine) {
			return "we are restarting its machine"
		}
	case store.Lost:
		switch {
		case !absent:
			return "it holds its lease"
		case grace == "grace":
			return "in the time of grace"
		case streamIs == "gone now":
			return "not confirmed yet"
		case !x.Record.Phase.Registered():
			return "its agent never had a lease"
		case strings.HasPrefix(providerSays, "down"):
			return "the provider says that it is dead"
		}
	case store.Stuck:
		if grace == "grace" {
			return "a timer fires in the time of grace"
		}
		restarting := x.Record.Phase == store.Stopping || x.Record.Phase == store.Starting
		if x.Record.Phase != store.Checking && x.Record.Phase.Registered() && !restarting {
			return "nothing was waited for"
		}
	case store.Unhealthy:
		if streamIs != "open" && streamIs != "moved" {
			return "what it said last is no longer evidence"
		}
	case store.Live:
		if x.Record.Phase != store.Finished &&
			(absent || streamIs == "lost" || streamIs == "overdue" || streamIs == "left") {
			return "nothing is heard of it"
		}
	default:
	}
	if !j.Until.IsZero() && !j.Until.After(x.now) {
		return "until is not in the future"
	}
	return ""
}
