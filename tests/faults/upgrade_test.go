package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/previous"
	"github.com/leasehold/leasehold/tests/stage"
)

// upgrade is a cluster of two releases.
type upgrade struct {
	*stage.Stage
	before, now *stage.Programs
	builds      map[string]*stage.Programs // of replicas, where it is not now
	agents      map[string]string          // version of each agent's program, by program
}

// A cluster of the release before goes over to this one, replica by replica, while machines have
// agents of both, and one replica and some agents go back in between. Nothing is made or destroyed
// for it, and what an operator orders then is done.
//
// proves SAFE-5, DET-8
func TestUpgradeFromThePreviousRelease(t *testing.T) {
	t.Parallel()
	u := newUpgrade(t)
	const size = 6
	if err := u.Control.RunAgents(u.before.Path(previous.Agent)); err != nil {
		t.Fatal(err)
	}
	web := []string{"template: {instance_type: small}", "budget: {max_unavailable: 0, max_expansion: 3}"}
	u.Apply("web", size, web...)
	instances := u.Instances("web")
	mark := u.Settle()

	// An operator's automation upgrades some agents too early: replicas of the release before serve
	// them.
	u.exchange(u.now, instances[:2]...)
	u.awaitServed("agents of both releases at replicas of the release before", instances[:2], instances[2:])

	for _, id := range []string{"a", "b"} {
		u.become(id, u.now)
	}
	u.become("b", u.before) // something was not right with it
	u.exchange(u.before, instances[0])
	u.become("b", u.now)
	u.become("c", u.now)
	u.awaitServed("agents of both releases at replicas of this one", instances[1:2], append(instances[2:], instances[0]))
	u.NothingDone(mark, "replicas and agents upgraded, some of them back and forth")

	// New machines have new agents, and a roll brings them everywhere.
	if err := u.Control.RunAgents(u.now.Path(previous.Agent)); err != nil {
		t.Fatal(err)
	}
	web[0] = "template: {instance_type: large}"
	u.Order("web", size, web...)
	u.Await("the roll", func() bool {
		return u.Complete("web", size) && !slices.ContainsFunc(u.Instances("web"), mark.Has)
	})
	if c := u.Since(mark); c.Created != size || c.Destroyed != size || c.Judged != 0 || c.Made != size {
		t.Errorf("a roll of %d machines: %s", size, c)
	}
	u.served(u.Instances("web"), nil)

	// The operator's program of the release before still can see and order.
	for _, args := range [][]string{{"status"}, {"group", "scale", "web", "5", "--confirm=web"}, {"instance", "list"}} {
		if out, err := u.TryWith(u.before, args...); err != nil {
			t.Errorf("leasehold %s, of the release before: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	u.Await("what it ordered", func() bool { return u.Complete("web", size-1) })
}

func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	now, err := stage.Build()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := now.Remove(); err != nil {
			t.Error(err)
		}
	})
	const newer = "this-release"
	if err := now.Make(previous.Agent, "github.com/leasehold/leasehold/cmd/leasehold-agent", "-ldflags",
		"-X main.version="+newer); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := previous.Install(dir); err != nil {
		t.Fatal(err)
	}
	older, err := previous.Version()
	if err != nil {
		t.Fatal(err)
	}
	before := stage.Built(dir)
	u := &upgrade{before: before, now: now, builds: map[string]*stage.Programs{"a": before, "b": before, "c": before}}
	u.agents = map[string]string{now.Path(previous.Agent): newer, before.Path(previous.Agent): older}
	u.Stage = stage.New(t, stage.Plan{
		Programs: now, Builds: u.builds, Again: "go test ./tests/faults -run " + t.Name(),
		Replicas: 3,
	})
	return u
}

// become has a replica end in order, and start again as another build.
func (u *upgrade) become(id string, build *stage.Programs) {
	u.T.Helper()
	since := stage.Records[store.Replica](u.Stage, store.KindReplicas)[id].Record.Since
	u.Replicas[id].Terminate()
	select {
	case <-u.Replicas[id].Ended():
	case <-time.After(stage.Longest):
		u.T.Fatalf("replica %s does not end", id)
	}
	u.builds[id] = build
	u.StartReplica(id)
	u.Await("replica "+id+" at work, and every stream open", func() bool {
		r := stage.Records[store.Replica](u.Stage, store.KindReplicas)
		return len(r) == 3 && r[id].Record.Since.After(since) && u.Leader() != "" && u.Open() == len(u.Instances("web"))
	})
}

// exchange has agents replaced in place, while their machines go on.
func (u *upgrade) exchange(build *stage.Programs, instances ...string) {
	u.T.Helper()
	program := build.Path(previous.Agent)
	if err := u.Control.ExchangeAgents(program, instances...); err != nil {
		u.T.Fatal(err)
	}
	u.Await("agents being another build", func() bool {
		alive := stage.Records[store.Alive](u.Stage, store.KindAlive)
		for _, id := range instances {
			if a := alive[id].Record; a.Agent != u.agents[program] || a.State != store.StreamOpen {
				return false
			}
		}
		return true
	})
}

// awaitServed waits for calm, in which every lease would have ended that is not renewed, and says
// which agents are of which release.
func (u *upgrade) awaitServed(what string, newer, older []string) {
	u.T.Helper()
	u.T.Logf("%s: %d of this release, %d of the one before", what, len(newer), len(older))
	u.AwaitCalm()
	u.served(newer, older)
}

func (u *upgrade) served(newer, older []string) {
	u.T.Helper()
	alive := stage.Records[store.Alive](u.Stage, store.KindAlive)
	for build, ids := range map[*stage.Programs][]string{u.now: newer, u.before: older} {
		for _, id := range ids {
			if a := alive[id].Record; a.State != store.StreamOpen || a.Agent != u.agents[build.Path(previous.Agent)] {
				u.T.Errorf("%s: stream %q, agent %q, want it open and %q", id, a.State, a.Agent,
					u.agents[build.Path(previous.Agent)])
			}
		}
	}
}
