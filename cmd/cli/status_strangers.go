package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// strangers are agents and machines without a record (REC-8).
type strangers struct {
	strays []store.Stray // agents that connect
	extras []store.Extra // machines without an agent
}

// strangersNamed is how many of them are listed one by one; the rest are counted.
const strangersNamed = 5

// readStrangers reads them, without those that have got a record since they were noticed.
func (s *Session) readStrangers(ctx context.Context, keys store.Keys, at store.Revision) (all strangers, err error) {
	strays, err := readKind[store.Stray](ctx, s, keys, store.KindStrays, at)
	if err != nil {
		return all, err
	}
	extras, err := readKind[store.Extra](ctx, s, keys, store.KindExtras, at)
	if err != nil || len(strays)+len(extras) == 0 {
		return all, err
	}
	recorded, err := s.namesOf(ctx, keys.Of(store.KindInstances), at)
	if err != nil {
		return all, err
	}
	for id, stray := range strays {
		if !recorded[id] {
			stray.Instance = id
			all.strays = append(all.strays, stray)
		}
	}
	for id, x := range extras {
		// its record was deleted on purpose, and it is being removed
		if _, heard := strays[id]; !heard && !recorded[id] && !x.Gone {
			x.Instance = id
			all.extras = append(all.extras, x)
		}
	}
	slices.SortFunc(all.strays, func(a, b store.Stray) int { return strings.Compare(a.Instance, b.Instance) })
	slices.SortFunc(all.extras, func(a, b store.Extra) int { return strings.Compare(a.Instance, b.Instance) })
	return all, nil
}

// namesOf returns the names of all keys below a prefix, whether or not they can be read.
func (s *Session) namesOf(ctx context.Context, prefix string, at store.Revision) (map[string]bool, error) {
	l, err := s.list(ctx, prefix, at)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, kv := range l.KVs {
		names[kv.Key[len(prefix):]] = true
	}
	return names, nil
}

func strangerProblems(st shardState, now time.Time) []problem {
	putBack := "leasehold repair restores their records; if etcd's history does not have them, leasehold recover"
	switch {
	case !st.shard.Present():
		putBack = "leave them alone, and repair the shard first"
	case st.shard.Record.Hold == nil:
		putBack = "leasehold repair restores their records; leasehold instance adopt --all, if there are none"
	}
	var found []problem
	if n := len(st.strangers.strays); n > strangersNamed {
		var names []string
		for _, s := range st.strangers.strays[:strangersNamed] {
			names = append(names, s.Instance)
		}
		found = append(found, problem{
			About: st.name, Rule: "REC-8",
			What: fmt.Sprintf("%d agents have no record, %s and others; their workloads keep running", n,
				strings.Join(names, ", ")),
			Next: putBack,
		})
	} else {
		for _, s := range st.strangers.strays {
			next := "leasehold repair restores its record; leasehold instance adopt " + s.Instance + ", if there is none"
			if !st.shard.Present() {
				next = "leave it alone, and repair the shard first"
			}
			found = append(found, problem{
				About: s.Instance, Rule: "REC-8", Next: next,
				What: fmt.Sprintf("an agent at %s reports as this instance, which has no record (%s ago); its workload keeps running", s.From, output.Age(now, s.At)),
			})
		}
	}
	unnoted := 0
	for _, r := range st.replicas {
		unnoted += r.Record.Unnoted
	}
	if unnoted > 0 {
		found = append(found, problem{
			About: st.name, Rule: "REC-8",
			What: fmt.Sprintf("%s no record, and are too many to be listed; their workloads keep running", moreHave(unnoted)),
			Next: putBack,
		})
	}
	if n := len(st.strangers.extras); n > 0 {
		var names []string
		for _, x := range st.strangers.extras[:min(n, strangersNamed)] {
			names = append(names, x.Instance)
		}
		what := fmt.Sprintf("%s the shard's tag, no record and no agent: %s", hasHave(n), strings.Join(names, ", "))
		if n > strangersNamed {
			what += fmt.Sprintf(" and %d more", n-strangersNamed)
		}
		found = append(found, problem{
			About: st.name, Rule: "REC-8", What: what,
			Next: "check them at their provider; leasehold instance adopt ID keeps one",
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
