package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Strangers are agents and machines without a record (REC-8).
type Strangers struct {
	Strays  []store.Stray // agents that connect
	Extras  []store.Extra // machines without an agent
	Foreign []store.Extra // machines that their provider did not make
}

// AddExtra adds a machine without an agent, unless its record was deleted on purpose: then it is
// being removed.
func (s *Strangers) AddExtra(x store.Extra) {
	switch {
	case x.Foreign:
		s.Foreign = append(s.Foreign, x)
	case !x.Gone:
		s.Extras = append(s.Extras, x)
	}
}

// strangersNamed is the number of strangers that are listed; the rest are counted.
const strangersNamed = 5

// strangerProblems reports agents and machines without a record.
func strangerProblems(st *Shard, now time.Time) []Problem {
	putBack := "leasehold repair restores their records; if etcd's history does not have them, leasehold recover"
	switch {
	case !st.Shard.Present():
		putBack = "leave them alone, and repair the shard first"
	case st.Shard.Record.Hold == nil:
		putBack = "leasehold repair restores their records; leasehold instance adopt --all, if there are none"
	}
	var found []Problem
	if n := len(st.Strangers.Strays); n > strangersNamed {
		var names []string
		for _, s := range st.Strangers.Strays[:strangersNamed] {
			names = append(names, s.Instance)
		}
		found = append(found, Problem{
			About: st.Name, Rule: "REC-8",
			What: fmt.Sprintf("%d agents have no record, %s and others; their workloads keep running", n,
				strings.Join(names, ", ")),
			Remedies: Advise(putBack),
		})
	} else {
		for _, s := range st.Strangers.Strays {
			next := "leasehold repair restores its record; leasehold instance adopt " + s.Instance + ", if there is none"
			if !st.Shard.Present() {
				next = "leave it alone, and repair the shard first"
			}
			found = append(found, Problem{
				About: s.Instance, Rule: "REC-8", Remedies: Advise(next),
				What: fmt.Sprintf("an agent at %s reports as this instance, which has no record (%s ago); "+
					"its workload keeps running", s.From, reason.Age(now, s.At)),
			})
		}
	}
	unnoted := 0
	for _, r := range st.Replicas {
		unnoted += r.Record.Unnoted
	}
	if unnoted > 0 {
		found = append(found, Problem{
			About: st.Name, Rule: "REC-8",
			What: fmt.Sprintf("%s no record, and are too many to be listed; their workloads keep running",
				moreHave(unnoted)),
			Remedies: Advise(putBack),
		})
	}
	if n := len(st.Strangers.Extras); n > 0 {
		var names []string
		for _, x := range st.Strangers.Extras[:min(n, strangersNamed)] {
			names = append(names, x.Instance)
		}
		what := fmt.Sprintf("%s the shard's tag, no record and no agent: %s", hasHave(n), strings.Join(names, ", "))
		if n > strangersNamed {
			what += fmt.Sprintf(" and %d more", n-strangersNamed)
		}
		found = append(found, Problem{
			About: st.Name, Rule: "REC-8", What: what,
			Remedies: Advise("check them at their provider; leasehold instance adopt ID keeps one"),
		})
	}
	if n := len(st.Strangers.Foreign); n > 0 {
		var refs []string
		for _, x := range st.Strangers.Foreign[:min(n, strangersNamed)] {
			refs = append(refs, x.Ref)
		}
		what := fmt.Sprintf("%s the tags of an instance without a record, not made by Leasehold and left alone: %s",
			hasHave(n), strings.Join(refs, ", "))
		if n > strangersNamed {
			what += fmt.Sprintf(" and %d more", n-strangersNamed)
		}
		found = append(found, Problem{
			About: st.Name, Rule: "PROV-4", What: what,
			Remedies: Advise("remove it, or the tags, at the provider"),
		})
	}
	return found
}

func hasHave(n int) string {
	if n == 1 {
		return "1 machine has"
	}
	return fmt.Sprintf("%d machines have", n)
}

func moreHave(n int) string {
	if n == 1 {
		return "1 more agent has"
	}
	return fmt.Sprintf("%d more agents have", n)
}
