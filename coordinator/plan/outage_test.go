package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The deadline of a roll stands still while a provider of the group fails, once it has been seen to
// fail for a minute. It does not while a machine of the new template shows how that works.
//
// proves ROLL-4
func TestAnOutageIsNoStall(t *testing.T) {
	deadline := store.DefaultGroup().Rollout.ProgressDeadline.D()
	over := deadline + time.Second
	restarting := func(level string) func(*store.Instance) {
		return func(r *store.Instance) {
			r.Restart = &store.Restart{Level: level, Rule: "ROLL-2", Token: "t"}
		}
	}
	for name, c := range map[string]struct {
		provider string        // that fails; "": the group's
		fails    time.Duration // for so long
		seen     time.Duration // it was last known to fail so long ago
		stood    time.Duration // the roll has made no progress for so long
		place    func(w *world)
		waits    bool // the deadline stands still
		stalls   bool
	}{
		"there is none":                       {stood: over, stalls: true},
		"there is one":                        {fails: time.Minute, stood: over, waits: true},
		"it is long before the deadline":      {fails: time.Minute, stood: time.Minute, waits: true},
		"it has just begun":                   {fails: time.Minute - 1, stood: over},
		"it was seen once":                    {fails: 2 * time.Minute, seen: 2 * time.Minute, stood: over},
		"it asks to wait for long":            {fails: 2 * time.Minute, seen: -time.Minute, stood: over, waits: true},
		"it has begun well before":            {fails: time.Minute - 1, stood: time.Minute},
		"it is of a provider of old machines": {provider: "former", fails: time.Hour, stood: over, waits: true},
		"it is of another provider":           {provider: "other", fails: time.Hour, stood: over, stalls: true},
		"a machine is to be created": {
			fails: time.Hour, stood: over, waits: true, place: func(w *world) { w.place("new", 3, store.Creating) },
		},
		"the provider says that the template is wrong": {
			fails: time.Hour, stood: over, stalls: true, place: func(w *world) {
				w.place("new", 3, store.Creating)
				w.knows["new"] = []func(*Instance){func(in *Instance) { in.Calls.WrongTemplate = true }}
			},
		},
		"a machine boots": {
			fails: time.Hour, stood: over, stalls: true, place: func(w *world) { w.place("new", 3, store.Booting) },
		},
		"a machine is checked": {
			fails: time.Hour, stood: over, stalls: true, place: func(w *world) { w.place("new", 3, store.Checking) },
		},
		"a machine is unhealthy": {
			fails: time.Hour, stood: over, stalls: true, place: func(w *world) {
				w.place("new", 3, store.Running)
				w.agents["new"].healthy = false
				w.report("new")
			},
		},
		"a machine is healthy": {
			fails: time.Hour, stood: over, waits: true, place: func(w *world) { w.place("new", 3, store.Running) },
		},
		"a machine leaves": {
			fails: time.Hour, stood: over, waits: true, place: func(w *world) { w.place("new", 3, store.Draining) },
		},
		"the provider is to restart a machine": {
			fails: time.Hour, stood: over, waits: true,
			place: func(w *world) { w.place("new", 3, store.Stopping, restarting(store.RestartMachine)) },
		},
		"an agent restarts a workload": {
			fails: time.Hour, stood: over, stalls: true,
			place: func(w *world) { w.place("new", 3, store.Stopping, restarting(store.RestartWorkload)) },
		},
		"the template is blamed": {
			fails: time.Hour, stood: over, stalls: true, place: func(w *world) {
				st := read[store.Status](w, w.keys.Status(w.group)).Record
				st.Rollout.Blamed, st.Rollout.Failed = "as a test says", true
				w.put(w.keys.Status(w.group), st)
			},
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 4 })
		for slot, id := range []string{"a", "b", "c"} {
			w.place(id, slot, store.Running, outdated, func(r *store.Instance) { r.Spec.Provider = "former" })
		}
		d := w.drafted()
		st := store.Status{Schema: store.Schema, Group: w.group, Rollout: d.roll.rollout}
		w.put(w.keys.Status(w.group), st)
		w.lead.Snapshot(w.everything()) // the deadline is seen to begin
		if c.place != nil {
			c.place(w)
		}
		w.now = w.now.Add(c.stood)
		w.noGrace = true
		w.outages = map[string]Outage{}
		if c.fails > 0 {
			if c.provider == "" {
				c.provider = cloud
			}
			w.outages[c.provider] = Outage{
				Since: w.now.Add(-c.fails), Last: w.now.Add(-c.seen), Until: w.now.Add(time.Second), Why: "broken",
			}
		}
		d = w.drafted()
		r := d.roll.rollout
		if stalls := r.Stalled != ""; stalls != c.stalls || (r.Stalls == nil) != (c.waits || c.stalls) {
			t.Errorf("%s: stalled %q, deadline %+v", name, r.Stalled, r.Stalls)
		}
		i := slices.IndexFunc(d.blocked, func(b store.Blocked) bool { return b.Kind == store.BlockedByOutage })
		switch {
		case i >= 0 != c.waits:
			t.Errorf("%s: blocked by %+v", name, d.blocked)
		case i >= 0 && (d.blocked[i].Of.Name != c.provider || d.blocked[i].Of.Text != "broken" ||
			!d.blocked[i].Of.Since.Equal(w.now.Add(-c.fails))):
			t.Errorf("%s: blocked by %+v", name, d.blocked[i].Of)
		}
		if c.fails == time.Minute-1 && c.stood < over && !d.next.Equal(w.now.Add(1)) {
			t.Errorf("%s: planned again only at %s", name, d.next)
		}
		next := time.Second // whether it still lasts then
		if !c.waits {
			next = outageLook
		}
		if c.fails > 0 && c.stood == over && !c.stalls && d.next.After(w.now.Add(next)) {
			t.Errorf("%s: planned again only at %s", name, d.next)
		}
	}
}

// The deadline starts over after an outage, and again after each. All in all a roll may stand for
// twice its deadline while its provider works; after progress or a pause the count starts over.
//
// proves ROLL-4
func TestOutagesThatComeBackOnlyLengthenTheDeadline(t *testing.T) {
	deadline := store.DefaultGroup().Rollout.ProgressDeadline.D()
	healthy := func(w *world) { w.place("new", 3, store.Running) }
	pause := func(w *world) { w.edit(func(g *store.Group) { g.Paused = true }) }
	resume := func(w *world) { w.edit(func(g *store.Group) { g.Paused = false }) }
	for name, c := range map[string]struct {
		works, fails time.Duration // in turn
		times        int           // how often it fails
		do           map[time.Duration]func(*world)
		stood        time.Duration // when it is stalled: without the outages
	}{
		"none":                          {works: time.Hour, stood: deadline},
		"one, at the end":               {works: 9 * time.Minute, fails: 30 * time.Minute, times: 1, stood: 19 * time.Minute},
		"one, at the beginning":         {works: time.Minute, fails: 30 * time.Minute, times: 1, stood: 11 * time.Minute},
		"two, just before the deadline": {works: 9 * time.Minute, fails: 3 * time.Minute, times: 2, stood: 20 * time.Minute},
		"all the time":                  {works: 9 * time.Minute, fails: 3 * time.Minute, times: 99, stood: 20 * time.Minute},
		"ever so often":                 {works: time.Minute, fails: 2 * time.Minute, times: 99, stood: 20 * time.Minute},
		"progress in between": {
			works: 9 * time.Minute, fails: 3 * time.Minute, times: 99, stood: 35 * time.Minute,
			do: map[time.Duration]func(*world){15 * time.Minute: healthy},
		},
		"a pause in between": {
			works: 9 * time.Minute, fails: 3 * time.Minute, times: 99, stood: 36 * time.Minute,
			do: map[time.Duration]func(*world){15 * time.Minute: pause, 16 * time.Minute: resume},
		},
	} {
		w := newTestWorld(t)
		w.noGrace = true
		w.edit(func(g *store.Group) { g.Size = 4 })
		for slot, id := range []string{"a", "b", "c"} {
			w.place(id, slot, store.Running, outdated)
		}
		var stood time.Duration // without the outages
		look := func() *store.Rollout {
			r := w.drafted().roll.rollout
			w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, Rollout: r})
			w.lead.Snapshot(w.everything()) // the deadline is seen to begin
			return r
		}
		look()
		for phase := 0; w.now.Sub(epoch) < 24*time.Hour; {
			w.outages = map[string]Outage{}
			look()
			begun, fails := w.now, phase%2 == 1
			length := c.works
			if fails {
				length = c.fails
			} else if phase/2 >= c.times {
				length = time.Hour
			}
			for w.now.Sub(begun) < length {
				w.now = w.now.Add(time.Minute)
				if fails {
					w.outages[cloud] = Outage{Since: begun, Last: w.now, Until: w.now.Add(time.Minute), Why: "broken"}
				} else if stood += time.Minute; c.do[stood] != nil {
					c.do[stood](w)
				}
				if look().Stalled != "" {
					break
				}
			}
			if read[store.Status](w, w.keys.Status(w.group)).Record.Rollout.Stalled != "" {
				break
			}
			phase++
		}
		if stood != c.stood {
			t.Errorf("%s: stalled after %s, want %s", name, stood, c.stood)
		}
	}
}

// While an outage lasts, the time in which an instance shows how the new template works counts,
// also if the next one has to be created meanwhile.
//
// proves ROLL-4
func TestAnOutageDoesNotHideATemplateThatFails(t *testing.T) {
	w := newTestWorld(t)
	w.noGrace = true
	w.edit(func(g *store.Group) { g.Size = 4 })
	for slot, id := range []string{"a", "b", "c"} {
		w.place(id, slot, store.Running, outdated)
	}
	var failed time.Duration // for so long an instance of the new template was there and not healthy
	phase := store.Creating
	w.place("new", 3, phase)
	for minute := range 100 {
		w.now = w.now.Add(time.Minute)
		w.outages = map[string]Outage{cloud: {Since: epoch.Add(time.Second), Last: w.now, Why: "broken"}}
		r := w.drafted().roll.rollout
		w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, Rollout: r})
		w.lead.Snapshot(w.everything()) // the deadline is seen to begin
		if r.Stalled != "" {
			break
		}
		if phase == store.Booting {
			failed += time.Minute
		}
		if phase = store.Booting; minute%5 == 4 { // it has failed, and another one is made
			phase = store.Creating
		}
		w.change("new", func(r *store.Instance) { r.Phase = phase })
	}
	if most := 2 * store.DefaultGroup().Rollout.ProgressDeadline.D(); failed < most/2 || failed > most+5*time.Minute {
		t.Errorf("stalled after instances failed for %s", failed)
	}
}
