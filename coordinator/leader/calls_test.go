package leader_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

func rate(perSecond float64, burst int) store.ShardSettings {
	s := store.DefaultShardSettings()
	s.CreateRate, s.CreateBurst = perSecond, burst
	return s
}

func half(most time.Duration) time.Duration { return most / 2 }

func add(c *leader.Calls, kind plan.CallKind, provider string, rank int, names ...string) {
	for _, name := range names {
		c.Add(plan.Call{Kind: kind, Provider: provider, Instance: name, Rank: rank}, start)
	}
}

func names(begun []leader.Begun) (names []string) {
	for _, b := range begun {
		names = append(names, b.Instance)
	}
	return names
}

// proves REC-9
func TestUrgentCallsBeginFirst(t *testing.T) {
	c := leader.NewCalls([]string{"a"}, rate(1000, 1000), half)
	add(c, plan.CallCreate, "a", 2, "growth-1", "growth-2")
	add(c, plan.CallCreate, "a", 0, "healing-1", "healing-2")
	begun, _ := c.Begin(start, rate(1000, 1000))
	if want := []string{"healing-1", "healing-2", "growth-1", "growth-2"}; !slices.Equal(names(begun), want) {
		t.Errorf("begun %q, want %q", names(begun), want)
	}
}

// A provider whose calls hang delays no other, and no call of another kind.
//
// proves REC-9
func TestCallsAtOnceAreBounded(t *testing.T) {
	settings := rate(1000, 1000)
	c := leader.NewCalls([]string{"a", "b"}, settings, half)
	for i := range 20 {
		add(c, plan.CallCreate, "a", 0, fmt.Sprint("create-", i))
		add(c, plan.CallRemove, "a", 0, fmt.Sprint("remove-", i))
	}
	begun, next := c.Begin(start, settings)
	if len(begun) != 16 || !next.IsZero() {
		t.Errorf("%d calls begin, want 8 of each kind; the next at %s", len(begun), next)
	}
	add(c, plan.CallCreate, "b", 0, "other")
	if other, _ := c.Begin(start, settings); !slices.Equal(names(other), []string{"other"}) {
		t.Errorf("begun %q beside a provider whose calls hang", names(other))
	}
	c.End(begun[0].Call)
	if more, _ := c.Begin(start, settings); len(more) != 1 || more[0].Kind != begun[0].Kind {
		t.Errorf("begun %q once a call has ended", names(more))
	}
}

// proves REC-3, REC-9
func TestCreationsKeepTheRateAndTakeTurns(t *testing.T) {
	settings := rate(1, 1)
	c := leader.NewCalls([]string{"a", "b"}, settings, half)
	for i := range 4 {
		add(c, plan.CallCreate, "a", 0, fmt.Sprint("a", i))
		add(c, plan.CallCreate, "b", 0, fmt.Sprint("b", i))
	}
	var all []string
	now, last := start, start
	for len(all) < 8 {
		begun, next := c.Begin(now, settings)
		for _, b := range begun {
			all, last = append(all, b.Instance), now
			c.End(b.Call)
		}
		if len(all) < 8 && !next.After(now) {
			t.Fatalf("at %s nothing begins, and the next time is %s", now, next)
		}
		now = next
	}
	if want := []string{"a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"}; !slices.Equal(all, want) {
		t.Errorf("begun %q, want %q", all, want)
	}
	if took := last.Sub(start); took < 7*time.Second || took > 8*time.Second {
		t.Errorf("8 creations at 1 a second took %s", took)
	}
}

// A call that waits by a slow rate goes by a faster one soon after that is set.
//
// proves REC-3
func TestRateIsThePresentOne(t *testing.T) {
	c := leader.NewCalls([]string{"a"}, rate(0.001, 1), half)
	add(c, plan.CallCreate, "a", 0, "first", "second")
	if begun, next := c.Begin(start, rate(0.001, 1)); len(begun) != 1 || next.Sub(start) != time.Second {
		t.Errorf("%q begin, the next is looked at in %s", names(begun), next.Sub(start))
	}
	_, next := c.Begin(after(time.Second), rate(10, 10))
	if begun, _ := c.Begin(next, rate(10, 10)); next.Sub(start) > 1200*time.Millisecond || len(begun) != 1 {
		t.Errorf("%q begin %s later", names(begun), next.Sub(start))
	}
}

// The end of a machine for a drill that has waited behind others is planned again before it begins:
// something may have failed meanwhile. Too long after its order it does not begin at all.
//
// proves DAY-6
func TestADrillThatWaitedIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		ordered, waited time.Duration
		begins          bool
	}{
		"not for long":  {0, time.Second, true},
		"for long":      {0, 3 * time.Second, false},
		"its time over": {store.DrillBegins - time.Second, time.Second, false},
	} {
		s := newScript(t, 0)
		for i := range 9 {
			id := fmt.Sprint("web-", i)
			s.write(store.Put(keys.Instance(id), store.Encode(store.Instance{
				Schema: store.Schema, ID: id, Group: "web", Slot: i, Phase: store.Running, Managed: true, Called: true,
				Spec:  store.InstanceSpec{Provider: "mem"},
				Drill: &store.Drill{Request: "r", By: "ada", At: s.now.Add(-c.ordered)},
			})))
		}
		var p plan.Plan
		for i := range 9 {
			id := fmt.Sprint("web-", i)
			p.Calls = append(p.Calls, plan.Call{
				Kind: plan.CallHalt, Instance: id, Group: "web", Provider: "mem", Record: s.content.Instances[id].Modified,
			})
		}
		s.step(leader.Wake{})
		take[leader.Compute](s)
		s.step(leader.Planned{Plan: p})
		first := take[leader.Record](s)
		for range 7 {
			take[leader.Record](s)
		}
		// the record says that it was asked for: a call whose answer is lost is not made again
		written, err := store.Decode[store.Instance](store.KV{Value: first.Writes[0].Value})
		if err != nil || !first.Instance.Drill.Asked || !written.Record.Drill.Asked {
			t.Errorf("%s: recorded %+v, %v", name, written.Record.Drill, err)
		}
		none[leader.Record](s)
		s.now = s.now.Add(c.waited)
		s.heard = s.now
		s.step(leader.Recorded{Operation: first.Operation, Err: store.ErrUnknown})
		if c.begins {
			if r := take[leader.Record](s); r.Kind != plan.CallHalt || r.Instance.ID != "web-8" {
				t.Errorf("%s: recorded %+v", name, r)
			}
			continue
		}
		none[leader.Record](s)
		s.step(leader.Wake{})
		if again := take[leader.Compute](s); !slices.Contains(again.Groups, "web") {
			t.Errorf("%s: planned are %q", name, again.Groups)
		}
		if !s.evidence.MarkBusy("web-8") {
			t.Errorf("%s: the call has not ended", name)
		}
	}
}
