package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A slot whose instance was lost within storm.window and is replaced already counts as lost, once,
// unless that instance is there still: then it is counted itself.
//
// proves SAFE-2
func TestReplacedLossesCount(t *testing.T) {
	const window = time.Minute
	now := time.Unix(10_000, 0)
	lost := func(id string, ago time.Duration) store.Failure {
		return store.Failure{Instance: id, LostSince: now.Add(-ago)}
	}
	type member struct {
		id    string
		phase store.Phase
		lost  bool
	}
	for name, test := range map[string]struct {
		failures []store.Failure
		members  []member
		want     Tally // of the slot alone
		next     time.Duration
	}{
		"no failures": {nil, []member{{"new", store.Running, false}}, Tally{Of: 1}, 0},
		"lost, and a new one runs": {
			[]store.Failure{lost("old", 20*time.Second)},
			[]member{{"new", store.Running, false}},
			Tally{Lost: 1, Of: 1, Groups: 1},
			40 * time.Second,
		},
		"lost, and a new one boots": {
			[]store.Failure{lost("old", 20*time.Second)},
			[]member{{"new", store.Booting, false}},
			Tally{Lost: 1, Of: 1, Groups: 1},
			40 * time.Second,
		},
		"lost, and none is there": {
			[]store.Failure{lost("old", 20*time.Second)},
			nil,
			Tally{Lost: 1, Of: 1, Groups: 1},
			40 * time.Second,
		},
		"lost twice": {[]store.Failure{
			lost("older", 50*time.Second),
			lost("old", 20*time.Second),
		}, nil, Tally{Lost: 1, Of: 1, Groups: 1}, 40 * time.Second},
		"lost twice, told in another order": {[]store.Failure{
			lost("old", 20*time.Second),
			lost("older", 50*time.Second),
		}, nil, Tally{Lost: 1, Of: 1, Groups: 1}, 40 * time.Second},
		"lost a window ago": {
			[]store.Failure{lost("old", window)},
			[]member{{"new", store.Running, false}},
			Tally{Of: 1},
			0,
		},
		"lost nearly a window ago": {
			[]store.Failure{lost("old", window-1)},
			[]member{{"new", store.Running, false}},
			Tally{Lost: 1, Of: 1, Groups: 1},
			1,
		},
		"failed otherwise": {
			[]store.Failure{{Instance: "old", At: now}},
			[]member{{"new", store.Running, false}},
			Tally{Of: 1},
			0,
		},
		"lost, and there still": {
			[]store.Failure{lost("old", 20*time.Second)},
			[]member{{"old", store.Running, false}},
			Tally{Of: 1},
			0,
		},
		"lost, and being deleted": {
			[]store.Failure{lost("old", 20*time.Second)},
			[]member{{"old", store.Deleting, false}},
			Tally{Lost: 1, Of: 1, Groups: 1},
			40 * time.Second,
		},
		"lost, there still, one before it gone": {
			[]store.Failure{
				lost("older", 30*time.Second),
				lost("old", 20*time.Second),
			},
			[]member{{"old", store.Running, false}},
			Tally{Lost: 1, Of: 1, Groups: 1},
			30 * time.Second,
		},
		"lost, and the new one as well": {
			[]store.Failure{lost("old", 20*time.Second)},
			[]member{{"new", store.Running, true}},
			Tally{Lost: 1, Now: 1, Of: 1, Groups: 1},
			50 * time.Second,
		},
		"lost a moment ahead of our clock": {
			[]store.Failure{lost("old", -59*time.Second)},
			nil,
			Tally{Lost: 1, Of: 1, Groups: 1},
			119 * time.Second,
		},
		"lost in a time that is yet to come": {[]store.Failure{lost("old", -time.Minute)}, nil, Tally{}, 0},
	} {
		rec := store.Slot{Number: 3, Failures: test.failures, Template: "an earlier one"}
		g := &Group{Name: "web", Slots: []store.Versioned[store.Slot]{{Record: store.Slot{Number: 1}}, {Record: rec}}}
		for i, m := range test.members {
			in := Instance{}
			in.Record.ID, in.Record.Managed, in.Record.Slot, in.Record.Phase, in.Created = m.id, true, 3, m.phase,
				store.Revision(i+1)
			in.AliveGone = now.Add(-10 * time.Second)
			g.Instances = append(g.Instances, in)
		}
		accepted := store.Group{Storm: store.StormSpec{Window: store.Duration(window)}}
		g.Status.Record.Accepted = &accepted
		d := newDraft(&Snapshot{Keys: store.KeysOf("test")}, g, now)
		d.spec = &accepted
		for i, m := range d.members {
			m.judgment.Verdict = store.Live
			if test.members[i].lost {
				m.judgment.Verdict = store.Lost
			}
		}
		d.storms.countLosses()
		if d.storms.tally != test.want {
			t.Errorf("%s: %+v, want %+v", name, d.storms.tally, test.want)
		}
		if got := d.next.Sub(now); test.next == 0 && !d.next.IsZero() || test.next > 0 && got != test.next {
			t.Errorf("%s: looked at again in %s, want %s", name, got, test.next)
		}
	}
}

// A machine that stops itself without a lease counts as lost when it is found down, be that
// confirmed or not: since its stream or its lease ended, or, where nothing was seen of these, since
// Lists show it down.
//
// proves SAFE-2, SAFE-9
func TestWhoFencesItselfIsLost(t *testing.T) {
	now := time.Unix(10_000, 0)
	gone, stream, listed := now.Add(-10*time.Second), now.Add(-20*time.Second), now.Add(-30*time.Second)
	for name, test := range map[string]struct {
		do      string
		verdict store.Verdict
		down    bool
		state   store.StreamState // "": its key is gone
		missed  bool
		since   time.Time
	}{
		"suspect and down": {store.LeaseLostPowerOff, store.Suspect, true, "", true, gone},
		"suspect and down, its stream lost": {
			store.LeaseLostPowerOff, store.Suspect, true, store.StreamLost, true,
			stream,
		},
		"suspect and down, overdue": {
			store.LeaseLostPowerOff, store.Suspect, true, store.StreamOverdue,
			true, stream,
		},
		"suspect and down, its stream open": {
			store.LeaseLostPowerOff, store.Suspect, true, store.StreamOpen, true,
			listed,
		},
		"suspect, and the provider says it runs": {store.LeaseLostPowerOff, store.Suspect, false, "", false, gone},
		"suspect and down, and does not fence":   {store.LeaseLostNone, store.Suspect, true, "", false, gone},
		"live, and down by one List": {
			store.LeaseLostPowerOff, store.Live, true, store.StreamOpen, false,
			listed,
		},
		"dead": {
			store.LeaseLostPowerOff, store.Dead, true, store.StreamOpen, true,
			listed,
		},
		"dead, and does not fence": {store.LeaseLostNone, store.Dead, true, "", false, gone},
		"lost, and does not fence": {store.LeaseLostNone, store.Lost, false, "", true, gone},
		"unhealthy": {
			store.LeaseLostPowerOff, store.Unhealthy, true, store.StreamOpen,
			false, listed,
		},
	} {
		in := &Instance{AliveGone: gone, StreamSince: stream.Add(-time.Hour)}
		in.Record.Phase, in.Record.Spec.Report.OnLeaseLost = store.Running, store.LeaseLost{Do: test.do}
		in.Sighting = Sighting{Begun: now, Listed: true, Down: test.down, Since: listed, Times: 1}
		if test.state != "" {
			in.Alive.Modified, in.Alive.Record.State = 1, test.state
			if in.AliveGone = (time.Time{}); test.state != store.StreamOpen {
				in.StreamSince = stream
			}
		}
		m := &member{Instance: in, phase: store.Running, judgment: Judgment{Verdict: test.verdict}}
		if got := m.missed(); got != test.missed {
			t.Errorf("%s: it counts as lost: %t", name, got)
		}
		if got := m.lostSince(); !got.Equal(test.since) {
			t.Errorf("%s: since %s, want %s", name, got, test.since)
		}
	}
}

// stormy is a group of so many, of which some were lost at once and are judged so.
func stormy(t *testing.T, size, lost int, change func(*store.Group)) *world {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) {
		g.Size, g.Budget.MaxExpansion = size, store.Amount(size)
		if change != nil {
			change(g)
		}
	})
	for i := range size {
		w.place(fmt.Sprint("i", i), i, store.Running)
	}
	w.pass(time.Second)
	w.step()
	for i := range lost {
		w.silence(fmt.Sprint("i", i), true)
	}
	for range 20 {
		w.pass(time.Second)
	}
	return w
}

// replaced are the instances that the next plan replaces or removes.
func (w *world) replaced() (ids []string) {
	for _, a := range Compute(w.snapshot(), w.now).Actions {
		if len(w.made(&a)) > 0 || a.To == store.Deleting {
			ids = append(ids, a.Instance)
		}
	}
	return ids
}

// As many losses as storm.min and storm.percent say are a storm, in which no lost instance is
// replaced. One fewer, by either measure, is none; and instances that are dead, unhealthy or
// ordered to go are replaced in any case.
//
// proves SAFE-2, SAFE-6
func TestHowManyLossesAreAStorm(t *testing.T) {
	for name, test := range map[string]struct {
		size, lost int
		spec       func(*store.Group)
		do         func(*world)
		want       []string
	}{
		"half of six":                     {6, 3, nil, nil, nil},
		"less than half of seven":         {7, 3, nil, nil, []string{"i0", "i1", "i2"}},
		"two of two: too few for a storm": {2, 2, nil, nil, []string{"i0", "i1"}},
		"one of one":                      {1, 1, nil, nil, []string{"i0"}},
		"as many as the group says": {
			6, 2, func(g *store.Group) { g.Storm.Min, g.Storm.Percent = 2, 33 }, nil,
			nil,
		},
		"too few for the group": {
			6, 3, func(g *store.Group) { g.Storm.Min = 4 }, nil,
			[]string{"i0", "i1", "i2"},
		},
		"too small a share for the group": {
			6, 3, func(g *store.Group) { g.Storm.Percent = 51 }, nil,
			[]string{"i0", "i1", "i2"},
		},
		"an unhealthy one in it": {6, 3, nil, func(w *world) { w.turn("i5", false) }, []string{"i5"}},
		"one ordered to go in it": {
			6, 3, nil, func(w *world) { w.change("i0", condemned(false)) },
			[]string{"i0"},
		},
		"a dead one in it": {
			6, 4, nil,
			func(w *world) { w.machines["i0"].down = true; w.pass(time.Second) },
			[]string{"i0"},
		},
		"it has long been over": {
			6, 3, nil, func(w *world) { w.overStorm(2 * time.Minute) },
			[]string{"i0", "i1", "i2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := stormy(t, test.size, test.lost, test.spec)
			if test.do != nil {
				test.do(w)
			}
			w.planIsSound()
			got := w.replaced()
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("replaced are %q, want %q", got, test.want)
			}
		})
	}
}

// What falls silent in a long grace, one after the other, is lost at its end all at once. As many
// as make a storm begin one before, though none is judged lost yet; the storm lasts until its
// cooldown is over, so that agents which have not returned by the end of the grace get that time as
// well. Too few are replaced when the grace is over.
//
// proves SAFE-1, SAFE-2
func TestWhatAGraceHoldsBackMakesAStorm(t *testing.T) {
	for name, test := range map[string]struct {
		silent, late, back int // in the grace; 2 s before its end; of these return then
		grace, storm       bool
		want               []string // replaced within a cooldown, and within another minute
		then               []string
	}{
		"half of ten":                {5, 0, 0, true, true, nil, nil},
		"fewer":                      {4, 0, 0, false, false, []string{"i0", "i1", "i2", "i3"}, nil},
		"fewer, and one that joins":  {4, 1, 0, false, true, nil, nil},
		"half of ten, three of back": {5, 0, 3, true, true, nil, []string{"i3", "i4"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 10, 10 })
			for i := range 10 {
				w.place(fmt.Sprint("i", i), i, store.Running)
			}
			storm := func() bool {
				s := read[store.Status](w, w.keys.Status(w.group)).Record.Storm
				return s != nil && s.Ended == ""
			}
			var replaced []string
			second := func() {
				w.pass(time.Second)
				_, done := w.step()
				for _, a := range done {
					if len(w.made(&a)) > 0 {
						replaced = append(replaced, a.Instance)
					}
				}
			}
			second()
			for i := range 200 {
				if i%10 == 0 {
					w.lead.Disturb("etcd was out of reach")
				}
				if n := i / 40; i%40 == 0 && n < test.silent {
					w.silence(fmt.Sprint("i", n), true)
				}
				second()
			}
			if got := storm(); got != test.grace || len(replaced) > 0 {
				t.Fatalf("in the grace: storm %t, replaced %q", got, replaced)
			}
			for w.snapshot().GraceEnd.Sub(w.now) > 2*time.Second {
				second()
			}
			for i := range test.late {
				w.silence(fmt.Sprint("i", test.silent+i), true)
			}
			for i := range test.back {
				w.comeBack(fmt.Sprint("i", i))
			}
			for range 55 {
				second()
			}
			slices.Sort(replaced)
			if got := storm(); got != test.storm || !slices.Equal(replaced, test.want) {
				t.Fatalf("after the grace: storm %t, replaced %q", got, replaced)
			}
			replaced = nil
			for range 75 {
				second()
			}
			slices.Sort(replaced)
			if !slices.Equal(replaced, test.then) {
				t.Errorf("in the end are replaced %q, want %q", replaced, test.then)
			}
		})
	}
}

// overStorm records a storm that an operator ended a while ago. Those that it left are taken up bit
// by bit.
func (w *world) overStorm(ago time.Duration) {
	w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, Storm: &store.Storm{
		Since: w.now, Ended: "ordered by ada", By: "ada",
		Resume: &store.Timer{Start: w.now.Add(-ago), For: store.Duration(time.Minute)},
	}})
	w.leaderChange()
	w.noGrace = true
	w.listDue()
	for id, a := range w.agents {
		if gone := w.now.Add(-time.Minute); !a.silentFrom.IsZero() {
			w.see(id, func(in *Instance) { in.AliveGone, in.LastState = gone, store.StreamLost })
		}
	}
}

// After a storm those that it left are replaced one after another, spread over storm.cooldown,
// each at a time of its own.
//
// proves SAFE-2
func TestWhatAStormLeftIsTakenUpBitByBit(t *testing.T) {
	w := stormy(t, 20, 20, nil)
	var counts []int
	for _, ago := range []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second, 60 * time.Second} {
		w.overStorm(ago)
		counts = append(counts, len(w.replaced()))
	}
	if !slices.IsSorted(counts) || counts[0] > 2 || counts[1] < 1 || counts[2] < 4 || counts[2] > 16 ||
		counts[4] != 20 {
		t.Errorf("taken up are %v of 20 by then", counts)
	}
}

// Machines without a record put the shard on hold if there are two or more, and more than a
// twentieth of the records: unless their agents are known, their records were lost (that is another
// hold), they came only now, or an operator has seen as many.
//
// proves SAFE-12
func TestHowManyExtrasHoldTheShard(t *testing.T) {
	now := epoch.Add(time.Hour)
	poll := store.DefaultShardSettings().ProviderPoll.D()
	for name, test := range map[string]struct {
		extras, recorded int
		each             func(i int, x *Extra)
		reviewed         int // how many an operator has seen; 0: none has looked
		want             bool
	}{
		"none":                            {0, 10, nil, 0, false},
		"one":                             {1, 0, nil, 0, false},
		"two":                             {2, 10, nil, 0, true},
		"two, a twentieth":                {2, 40, nil, 0, false},
		"two, more than a twentieth":      {2, 39, nil, 0, true},
		"three, a twentieth":              {3, 60, nil, 0, false},
		"four, more than a twentieth":     {4, 79, nil, 0, true},
		"two, one of which has its agent": {2, 0, func(i int, x *Extra) { x.Stray = i == 0 }, 0, false},
		"two, one of which was lost":      {2, 0, func(i int, x *Extra) { x.Lost = i == 1 }, 0, false},
		"two, one of which came only now": {
			2, 0, func(i int, x *Extra) { x.Since = x.Since.Add(time.Duration(i)) },
			0, false,
		},
		"two, by now three Lists old":       {2, 0, nil, 0, true},
		"two, which an operator has seen":   {2, 0, nil, 2, false},
		"two, of which one was seen":        {2, 0, nil, 1, true},
		"two, and an operator has seen ten": {2, 0, nil, 10, false},
	} {
		s := Snapshot{
			Keys: store.KeysOf("test"), Recorded: test.recorded,
			Shard: store.Versioned[store.Shard]{Key: store.KeysOf("test").Shard(), Modified: 7},
		}
		s.Shard.Record = store.Shard{Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings()}
		if test.reviewed > 0 {
			s.Shard.Record.Reviewed = &store.Reviewed{Extras: test.reviewed, At: now}
		}
		for i := range test.extras {
			x := Extra{Instance: fmt.Sprint("extra-", i), Group: "web", Provider: "cloud", Since: now.Add(-3 * poll)}
			if test.each != nil {
				test.each(i, &x)
			}
			s.Extras = append(s.Extras, x)
		}
		held := func(s Snapshot) *store.Hold {
			actions, _ := planShard(&s, now)
			for _, a := range actions {
				for _, op := range a.Writes {
					if op.Key != s.Keys.Shard() {
						continue
					}
					v, err := store.Decode[store.Shard](store.KV{Key: op.Key, Value: op.Value})
					if err != nil || v.Record.ID != "s" || !slices.Contains(a.Conditions, store.At(op.Key, 7)) ||
						a.Rule != "SAFE-12" || a.Counterfactual == "" {
						t.Errorf("%s: %+v, %v", name, a, err)
					}
					return v.Record.Hold
				}
			}
			return nil
		}
		hold := held(s)
		if (hold != nil) != test.want {
			t.Errorf("%s: hold %+v", name, hold)
			continue
		}
		if hold == nil {
			continue
		}
		if hold.Extras != test.extras || hold.By != "leasehold" || !hold.At.Equal(now) ||
			!strings.Contains(hold.Why, "extra-0") {
			t.Errorf("%s: hold %+v", name, hold)
		}
		for what, change := range map[string]func(*Snapshot){
			"on hold":          func(s *Snapshot) { s.Shard.Record.Hold = &store.Hold{} },
			"stale":            func(s *Snapshot) { s.Stale = behind },
			"without a record": func(s *Snapshot) { s.Shard.Modified = 0 },
		} {
			other := s
			change(&other)
			if held(other) != nil {
				t.Errorf("%s: a shard that is %s is held", name, what)
			}
		}
	}
}
