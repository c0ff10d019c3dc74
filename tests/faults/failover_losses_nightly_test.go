//go:build nightly

package faults

import (
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/stage"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// What TestLeaderIsKilledUnderLoad must not find, it would find.
func TestLossesAreSeen(t *testing.T) {
	t.Parallel()
	keys := store.KeysOf("default")
	w := &seen{
		t: t, keys: keys, instances: map[string]store.Instance{}, alive: map[string]store.Alive{},
		line: map[string]store.KV{},
	}
	at := store.Revision(0)
	put := func(key string, record any) {
		at++
		w.take(store.Event{KV: store.KV{Key: key, Value: store.Encode(record), Created: at, Modified: at}})
	}
	remove := func(key string) {
		at++
		w.take(store.Event{KV: store.KV{Key: key, Modified: at}, Deleted: true})
	}
	lead := func(replica string) string {
		key := keys.Leader(store.LeaseID(at + 1))
		put(key, store.Leader{Schema: store.Schema, Replica: replica})
		return key
	}
	instance := func(id string, phase store.Phase) {
		put(keys.Instance(id), store.Instance{Schema: store.Schema, ID: id, Group: busyGroup, Phase: phase})
	}
	alive := func(id, replica string) {
		put(keys.Alive(id), store.Alive{Schema: store.Schema, Instance: id, Replica: replica, State: store.StreamOpen})
	}
	first := lead("a")
	lead("b")
	for _, id := range []string{"stays", "leaves"} {
		instance(id, store.Running)
		alive(id, "a")
	}
	w.expect("a")
	remove(first)
	if k := w.kill(); k.Next != "b" || k.Elected == 0 || k.Wrote != 0 || k.Acted != 0 || k.Served != 2 {
		t.Errorf("b is first in line, and has done nothing: %+v", k)
	}
	put(keys.Event(time.Now(), "1"), store.JournalEntry{Schema: store.Schema, By: "b"})
	instance("leaves", store.Deleting)
	if k := w.kill(); k.Wrote == 0 || k.Acted == 0 || w.over() {
		t.Errorf("b has acted, and no replica has its stream: %+v", k)
	}
	alive("stays", "b")
	alive("leaves", "c")
	if k := w.kill(); len(k.Back) != 2 || !w.over() {
		t.Errorf("all have their streams: %+v", k)
	}

	remove(keys.Alive("leaves"))
	if lost, judged := w.losses(); len(lost)+len(judged) != 0 {
		t.Errorf("nothing is lost yet: %v, %v", lost, judged)
	}
	remove(keys.Alive("stays"))
	put(keys.Event(time.Now(), "2"),
		store.JournalEntry{Schema: store.Schema, By: "b", Instance: "stays", Verdict: store.Lost})
	if lost, judged := w.losses(); len(lost) != 1 || len(judged) != 1 {
		t.Errorf("one lease is lost, and one instance judged: %v, %v", lost, judged)
	}
}

func TestRepeatedCallsAreSeen(t *testing.T) {
	t.Parallel()
	create := swarm.Asked{Call: fake.CallCreate, Instance: "web-1"}
	call := func(replica string, begun, ended int64) swarm.Asked {
		c := create
		c.Replica = replica
		c.Begun, c.Ended = history.Time(begun), history.Time(ended)
		return c
	}
	for name, c := range map[string]struct {
		calls              []swarm.Asked
		overlapping, again int
	}{
		"one after the other":        {[]swarm.Asked{call("a", 1, 2), call("a", 3, 4)}, 0, 1},
		"beside one that was killed": {[]swarm.Asked{call("a", 1, 9), call("b", 3, 4)}, 0, 1},
		"at the same time":           {[]swarm.Asked{call("a", 1, 4), call("a", 3, 5)}, 1, 1},
		"beside one under way":       {[]swarm.Asked{call("a", 1, 0), call("a", 3, 5)}, 1, 1},
	} {
		if overlapping, again := repeats(c.calls); len(overlapping) != c.overlapping || again != c.again {
			t.Errorf("%s: overlapping %v, asked again %d", name, overlapping, again)
		}
	}
}

// Agents that do not get to run are seen, once.
func TestStarvedAgentsAreSeen(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.Plan{Programs: built, Replicas: 1})
	_, err := s.Control.Starved()
	must(t, err)
	const frozen = 3 * time.Second
	s.Swarm.Signal(syscall.SIGSTOP)
	s.Pass(frozen)
	s.Swarm.Signal(syscall.SIGCONT)
	starved := func() time.Duration {
		longest, err := s.Control.Starved()
		must(t, err)
		return longest
	}
	s.Await("the pause being seen", func() bool { return starved() > frozen-time.Second })
	if again := starved(); again > frozen-time.Second {
		t.Errorf("frozen for %s once, it says %s again", frozen, again)
	}
}
