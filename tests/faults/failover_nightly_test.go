//go:build nightly

package faults

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/disk"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/stage"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

var (
	killsFlag      = flag.Int("kills", 2, "how often the leader is killed")
	resignsFlag    = flag.Int("resigns", 1, "how often it is told to end, after that")
	agentsFlag     = flag.Int("agents", 60, "how many agents report meanwhile")
	operationsFlag = flag.Int("operations", 10, "how many operations are in flight at each kill, 100 at most")
	sessionFlag    = flag.Duration("session", 3*time.Second, "TTL of the replicas' sessions")
	stillFlag      = flag.Duration("still", 0, "for how long at a time etcd's disk takes no write; 0: it is not slow")
	figuresFlag    = flag.String("figures", "", "a file for what was measured, as JSON; none: it is shown alone")
)

const (
	// createTakes is how long a provider takes to make a machine: longer than a failover, so that
	// the next leader comes while calls of the one that was killed are still under way.
	createTakes = 7 * time.Second
	// callTimeout is the provider's. For so long a leader keeps the records of machines that it has
	// removed, as calls of those before it may be under way.
	callTimeout = 15 * time.Second
	// callsOfAKind are as many as a replica has under way at once. The other operations wait for
	// their turn.
	callsOfAKind = 8
	// reports come as often as a thousand agents, etcd and coordinators can on two processors. Leases
	// are shorter than callTimeout, for which a round lasts at least: so one that is not renews is
	// seen to end within it.
	reports = 3 * time.Second
	// applyStep is by how many machines a group grows at a time.
	applyStep = 250
	// maxStarved is for how long the agents' process may be kept from running. A report passes
	// through a dozen goroutines and processes, and a lease ends 8 s after a report is due: where
	// each waits for longer than this, leases end though nothing of Leasehold is wrong.
	maxStarved = reports / 3
	// thawed is for how long a slow disk takes writes, between the times for which it does not.
	thawed = 20 * time.Millisecond
)

// The leader is killed while many agents report and many operations are in flight, again and again.
// No agent loses its lease, none is judged, every operation is carried out, and none is carried out
// twice. How long all that takes is measured, and not judged.
//
// proves SAFE-7, SAFE-8, SAFE-1, SAFE-11, ELECT-2, ELECT-3
func TestLeaderIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFailover(t)
	defer f.tell() // also what was measured until something went wrong
	for n := range *killsFlag {
		k := f.round((*stage.Program).Kill)
		t.Logf("kill %d: %s", n+1, k)
		f.figures.Kills = append(f.figures.Kills, k)
	}
	for n := range *resignsFlag {
		k := f.round((*stage.Program).Terminate)
		t.Logf("resignation %d: %s", n+1, k)
		f.figures.Resigned = append(f.figures.Resigned, k)
	}
	f.count()
}

// failover is a stage with two groups: one whose agents report, and one whose machines are
// exchanged.
type failover struct {
	*stage.Stage
	seen    *seen
	figures figures
	agents  []string // of the machines that are left alone
}

const (
	calmGroup = "web"
	busyGroup = "busy"
)

func newFailover(t *testing.T) *failover {
	t.Helper()
	plan := stage.Plan{
		Programs: built, Replicas: 3, Members: 3, Interval: reports, CallTimeout: callTimeout,
		SessionTTL: *sessionFlag,
		Again: fmt.Sprintf("make failover KILLS=%d RESIGNS=%d AGENTS=%d OPERATIONS=%d SESSION=%s STILL=%s", *killsFlag,
			*resignsFlag, *agentsFlag, *operationsFlag, *sessionFlag, *stillFlag),
	}
	var slow *disk.Ext4
	if *stillFlag > 0 {
		var err error
		slow, err = disk.MountExt4(3 << 30) // sparse
		must(t, err)
		plan.Disk = slow.Dir
		t.Cleanup(func() { must(t, slow.Close()) })
	}
	f := &failover{Stage: stage.New(t, plan)}
	f.figures = figures{
		Agents: *agentsFlag, Operations: *operationsFlag, LoadBefore: load(t), Session: span(*sessionFlag),
		Still: span(*stillFlag),
	}
	for size := min(applyStep, *agentsFlag); ; size = min(size+applyStep, *agentsFlag) {
		f.Apply(calmGroup, size)
		if size == *agentsFlag {
			break
		}
	}
	f.Apply(busyGroup, *operationsFlag, fmt.Sprintf("budget: {max_expansion: %d}", *operationsFlag))
	f.agents = f.Instances(calmGroup)
	f.seen = see(f.Stage)
	_, err := f.Control.Starved() // making a thousand agents at once is not measured
	must(t, err)
	if slow != nil {
		slow.Slow(*stillFlag, thawed)
	}
	return f
}

// Await is Stage's, as long as the machine lets the agents run.
func (f *failover) Await(what string, condition func() bool) {
	f.T.Helper()
	f.Stage.Await(what, func() bool {
		f.mustRun()
		return condition()
	})
}

// mustRun ends the test without a verdict if the agents did not get to run.
func (f *failover) mustRun() {
	f.T.Helper()
	longest, err := f.Control.Starved()
	must(f.T, err)
	if f.figures.Starved = max(f.figures.Starved, span(longest)); f.figures.Starved > span(maxStarved) {
		f.T.Fatalf("the machine is too busy for this measurement: the agents' process did not get to run for %s, "+
			"of %s that it may; this says nothing about Leasehold: run it again beside less other work",
			f.figures.Starved, span(maxStarved))
	}
}

// tell shows what was measured, and keeps it if so wished.
func (f *failover) tell() {
	f.figures.LoadAfter = load(f.T)
	f.figures.LeasesLost, f.figures.Judged = f.seen.losses()
	f.figures.Deposed = f.seen.elections() - len(f.figures.Kills) - len(f.figures.Resigned)
	f.T.Logf("\n%s", f.figures)
	if *figuresFlag == "" {
		return
	}
	if err := f.figures.write(*figuresFlag); err != nil {
		f.T.Error(err)
	}
}

// round orders a new machine in the place of each of a group, ends the leader when that is in full
// swing, and waits until all of it is done.
func (f *failover) round(end func(*stage.Program)) kill {
	f.T.Helper()
	before := f.Instances(busyGroup)
	must(f.T, f.Control.Slow(fake.CallCreate, createTakes))
	f.Leasehold("group", "restart", busyGroup, "--recreate")
	underWay := 0
	f.Await(fmt.Sprintf("%d operations being in flight", *operationsFlag), func() bool {
		underWay = 0
		for _, a := range f.calls(history.Now()) {
			if a.Call == fake.CallCreate {
				underWay++
			}
		}
		return f.seen.inFlight(busyGroup) >= *operationsFlag && underWay >= min(callsOfAKind, *operationsFlag)
	})
	leader := f.Leader()
	since := stage.Records[store.Replica](f.Stage, store.KindReplicas)[leader].Record.Since
	at := f.seen.expect(leader)
	end(f.Replicas[leader])
	inFlight := f.seen.inFlight(busyGroup)

	var called history.Time
	f.Await("a call by another leader", func() bool {
		for _, a := range f.calls(at) {
			if a.Begun > at && a.Replica != leader {
				called = a.Begun
				return true
			}
		}
		return false
	})
	must(f.T, f.Control.Slow(fake.CallCreate, 0))
	f.Await("another leader that acts, and agents that are served again", f.seen.over)
	k := f.seen.kill()
	k.InFlight, k.UnderWay, k.Called = inFlight, underWay, span(called.Sub(at))

	<-f.Replicas[leader].Ended()
	f.StartReplica(leader)
	f.Await("every operation being carried out, and all agents served", func() bool {
		r := stage.Records[store.Replica](f.Stage, store.KindReplicas)
		return r[leader].Record.Since.After(since) && len(r) == 3 && f.seen.inFlight(busyGroup) == 0 &&
			f.Complete(busyGroup, *operationsFlag) &&
			!slices.ContainsFunc(f.Instances(busyGroup), func(id string) bool { return slices.Contains(before, id) }) &&
			f.Complete(calmGroup, *agentsFlag)
	})
	k.Done = span(history.Now().Sub(at))
	return k
}

func (f *failover) calls(since history.Time) []swarm.Asked {
	f.T.Helper()
	all, err := f.Control.Calls(since)
	must(f.T, err)
	return all
}

// count says what was lost and what was done twice, from etcd's records and the provider's ledger.
// All of it should be nothing.
func (f *failover) count() {
	f.T.Helper()
	f.mustRun()
	if now := f.Instances(calmGroup); !slices.Equal(now, f.agents) {
		f.T.Errorf("unexpected machines: there were %v, and there are %v", f.agents, now)
	}
	fig := &f.figures
	fig.LeasesLost, fig.Judged = f.seen.losses()
	fig.Counted = true
	ledger, err := f.Control.Ledger()
	must(f.T, err)
	bySlot := map[int]int{}
	existing := 0
	for _, life := range ledger {
		fig.Made += life.Made
		if life.Exists() {
			existing++
		}
		if life.Made > 1 || life.Deleted > 1 {
			fig.Double = append(fig.Double, life.Instance)
		}
		if life.Group == busyGroup {
			bySlot[life.Slot] += life.Made
		}
	}
	rounds := len(fig.Kills) + len(fig.Resigned) + 1
	for slot, made := range bySlot {
		if made > rounds {
			fig.Double = append(fig.Double, fmt.Sprintf("slot %d: %d machines in place of %d", slot, made, rounds))
		}
	}
	fig.Overlapping, fig.AskedAgain = repeats(f.calls(0))

	f.none("leases of agents that live, which etcd has ended", fig.LeasesLost)
	f.none("instances judged lost, dead, unhealthy or stuck", fig.Judged)
	f.none("operations carried out twice", fig.Double)
	f.none("calls of one replica for one instance at the same time", fig.Overlapping)
	if ordered := *agentsFlag + *operationsFlag*rounds; fig.Made != ordered {
		f.T.Errorf("%d machines were ordered, and %d made", ordered, fig.Made)
	}
	if wanted := *agentsFlag + *operationsFlag; existing != wanted {
		f.T.Errorf("%d machines are wanted, and there are %d", wanted, existing)
	}
}

func (f *failover) none(what string, found []string) {
	f.T.Helper()
	if len(found) > 0 {
		f.T.Errorf("%d %s: %v", len(found), what, found[:min(len(found), 20)])
	}
}

// repeats are the calls that a replica began for an instance while another of its own for it was
// under way, and how many machines were asked for again.
func repeats(all []swarm.Asked) (overlapping []string, again int) {
	last := map[string]swarm.Asked{}
	creates := map[string]int{}
	for _, a := range all {
		if before := last[a.Instance]; before.Begun != 0 && before.Replica == a.Replica &&
			(before.Ended == 0 || before.Ended > a.Begun) {
			overlapping = append(overlapping,
				fmt.Sprintf("%s of %s by %s during %s", a.Call, a.Instance, a.Replica, before.Call))
		}
		last[a.Instance] = a
		if a.Call == fake.CallCreate {
			if creates[a.Instance]++; creates[a.Instance] > 1 {
				again++
			}
		}
	}
	return overlapping, again
}
