//go:build nightly

package faults

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/cluster"
	"github.com/leasehold/leasehold/tests/faults/growth"
	"github.com/leasehold/leasehold/tests/faults/trouble"
)

var soakFlag = flag.Duration("soak", time.Second,
	"for how long TestSoak goes on; it ends with the round in which that is over")

// What ordinarily takes hours or days to come round takes minutes here, so that all of it has come
// round in the first third.
const (
	soakEventsKept   = 4 * time.Minute
	soakCompactAfter = 2 * time.Minute
)

// What would end the processes that are followed, or do what only the coordinators are to do:
// history is compacted by them.
var soakWithout = []string{
	"replica-killed", "replica-stopped", "replicas-all-killed", "member-killed", "member-wiped", "quorum-lost",
	"etcd-compacted", "etcd-emptied", "etcd-older",
}

// Rounds of troubles, edits and quiet, for an hour. In each quiet it is read what everybody uses.
// After warm-up nothing may grow: no memory, goroutines and file descriptors of replicas, agents
// and members of etcd, and nothing that etcd keeps. All is judged as any other run.
//
// Unless it is told to go on (make soak), it plays one round, which shows that all of that can be
// read.
//
// proves ELECT-3
func TestSoak(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Config{Numbers: true, Settings: func(s *store.ShardSettings) {
		after := store.Duration(soakCompactAfter)
		s.EventsKept, s.CompactAfter = store.Duration(soakEventsKept), &after
	}})
	began := time.Now()
	readings := &readings{of: map[string]*growth.Series{}, processes: map[string]int{}}
	judged := time.Duration(0) // so long did it take to judge
	for seed := *firstFlag; time.Since(began) < *soakFlag; seed++ {
		plan, err := trouble.Make(seed, trouble.Terms{Troubles: 6, Within: 20 * time.Second, Without: soakWithout})
		must(t, err)
		if err := trouble.Play(t.Context(), c, plan); err != nil {
			t.Errorf("a trouble could not be undone: %v", err)
		}
		c.Heal()
		if missing := c.AwaitQuiet(cluster.Bound); missing != "" {
			t.Fatalf("seed %d: %s after all troubles were over: %s", seed, cluster.Bound, missing)
		}
		now, err := c.Vitals()
		must(t, err)
		for _, of := range readings.take(now) {
			t.Errorf("seed %d: %s is another process than before, and it was not killed", seed, of)
		}
		c.Say("%s, seed %d: %s", time.Since(began).Round(time.Second), seed, tellVitals(now))
		must(t, os.WriteFile(filepath.Join(c.Dir, "vitals.txt"), []byte(growth.Table(readings.all())), 0o600))
		// To judge all that was so far costs more with each round. So it is done as often as it
		// costs a tenth of the time.
		if asked := time.Now(); judged < time.Since(began)/10 {
			if len(c.Verdict()) > 0 {
				return
			}
			judged += time.Since(asked)
		}
	}
	c.Finish()
	all := readings.all()
	c.Say("judged in %s; what was used:\n%s", judged.Round(time.Second), growth.Table(all))
	for _, s := range all {
		if s.Judge().Grows() {
			t.Error(s.Tell())
		}
	}
}

// allowances are what may vary. What is not named here must not grow by more than a tenth and a
// few.
var allowances = map[string]growth.Allowance{
	cluster.Memory:    {Share: 0.15, More: 4 << 20},
	cluster.HeapInUse: {Share: 0.15, More: 4 << 20},
	cluster.HeapGoal:  {Share: 0.15, More: 4 << 20},
	cluster.State:     {Share: 0.15, More: 64 << 10},
	cluster.DataInUse: {Share: 0.15, More: 1 << 20}, // of history of two minutes, in which more happened or less
	cluster.DataFile:  {Share: 0.10, More: 2 << 20},
	cluster.Revisions: {Share: 0.25, More: 200},
	cluster.Keys:      {Share: 0.15, More: 60},
	// The journal's entries of some minutes are most keys there are, and more or fewer.
	cluster.KeysOf + store.KindEvents: {Share: 0.25, More: 60},
}

// etcdsLog is how much more memory members of etcd may have in the end: each keeps its log of up to
// 10,000 requests there, and an hour may have fewer.
const etcdsLog = 3 * 10_000 * 1024

// readings are all of a run.
type readings struct {
	of        map[string]*growth.Series
	order     []string
	rounds    int
	processes map[string]int // of replicas and members
}

// moves says that a replica uses more for as long as it leads, or has others to serve. It is judged
// of all of a kind together, and strictly.
func moves(v cluster.Vital) (of string, does bool) {
	who, _, _ := strings.Cut(v.Of, " ")
	switch v.What {
	case cluster.Memory, cluster.HeapInUse, cluster.HeapGoal, cluster.Goroutines, cluster.Descriptors, cluster.Threads:
		return "all " + who + "s", who == "replica" || who == "member"
	}
	return "", false
}

// take adds what was read in one round, and says which process is not the same as in the round
// before.
func (r *readings) take(now []cluster.Vital) (replaced []string) {
	r.rounds++
	together := map[cluster.Vital]float64{}
	for _, v := range now {
		if all, does := moves(v); does {
			together[cluster.Vital{Of: all, What: v.What}] += v.Value
		}
		if was, known := r.processes[v.Of]; known && was != v.Process && !slices.Contains(replaced, v.Of) {
			replaced = append(replaced, v.Of)
		}
		if !strings.HasPrefix(v.Of, "agent ") {
			r.processes[v.Of] = v.Process
		}
		r.add(v)
	}
	for v, sum := range together {
		v.Value = sum
		r.add(v)
	}
	for _, one := range r.of {
		if strings.HasPrefix(one.What, cluster.KeysOf) && len(one.Values) < r.rounds {
			one.Values = append(one.Values, 0) // there are none now
		}
	}
	return replaced
}

func (r *readings) add(v cluster.Vital) {
	name := fmt.Sprint(v.Of, "#", v.Process, " ", v.What)
	one := r.of[name]
	if one == nil {
		one = &growth.Series{Of: v.Of, What: v.What, May: growth.Allowance{Share: 0.1, More: 8}}
		if may, there := allowances[v.What]; there {
			one.May = may
		}
		if _, does := moves(v); does {
			one.May.Share = 1
		}
		if v.Of == "all members" && v.What == cluster.Memory {
			one.May.More = etcdsLog
		}
		switch v.What {
		case cluster.Memory, cluster.HeapInUse, cluster.HeapGoal, cluster.State, cluster.DataInUse, cluster.DataFile:
			one.Unit = growth.Bytes
		}
		if strings.HasPrefix(v.What, cluster.KeysOf) {
			one.Values = make([]float64, r.rounds-1) // there were none
		}
		r.of[name] = one
		r.order = append(r.order, name)
	}
	one.Values = append(one.Values, v.Value)
}

// all are the series of everybody that lived for long enough. Of the agents, of which there are
// many, it is those that grew most.
func (r *readings) all() []growth.Series {
	var out []growth.Series
	agents := map[string][]growth.Series{}
	for _, name := range r.order {
		one := r.of[name]
		switch {
		case !strings.HasPrefix(one.Of, "agent "):
			out = append(out, *one)
		case one.Judge().Known:
			agents[one.What] = append(agents[one.What], *one)
		}
	}
	slices.SortStableFunc(out, func(a, b growth.Series) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.What, b.What))
	})
	for _, what := range slices.Sorted(maps.Keys(agents)) {
		of := agents[what]
		slices.SortStableFunc(of, func(a, b growth.Series) int { return cmp.Compare(excess(b), excess(a)) })
		worst := of[0]
		worst.Of = fmt.Sprintf("%s, worst of %d", worst.Of, len(of))
		out = append(out, worst)
	}
	return out
}

// excess is how much a series is above what it may be; below zero if it is not.
func excess(s growth.Series) float64 {
	v := s.Judge()
	return (v.After - v.Most) / max(1, v.Most)
}

// tellVitals is a round in one line.
func tellVitals(now []cluster.Vital) string {
	sums := map[string]float64{}
	for _, v := range now {
		who, _, _ := strings.Cut(v.Of, " ")
		sums[who+" "+v.What] += v.Value
	}
	mib := func(what string) string { return fmt.Sprintf("%.1f", sums[what]/(1<<20)) }
	return fmt.Sprintf("replicas %s MiB, heap %s (goal %s), %.0f goroutines, %.0f descriptors; agents %s MiB; "+
		"members %s MiB, data %s in files of %s MiB; %.0f keys (%.0f events), %.0f leases, %.0f revisions",
		mib("replica "+cluster.Memory), mib("replica "+cluster.HeapInUse), mib("replica "+cluster.HeapGoal),
		sums["replica "+cluster.Goroutines], sums["replica "+cluster.Descriptors],
		mib("agent "+cluster.Memory), mib("member "+cluster.Memory), mib("member "+cluster.DataInUse),
		mib("member "+cluster.DataFile),
		sums["etcd "+cluster.Keys], sums["etcd "+cluster.KeysOf+store.KindEvents], sums["etcd "+cluster.Leases],
		sums["member "+cluster.Revisions]/3)
}
