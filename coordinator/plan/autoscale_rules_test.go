package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/store"
)

// loaded is a world with a group of four warm instances that follows their load. Each has the given
// load of its processors, where 50% is the target, and nothing keeps the group from shrinking.
type loaded struct {
	*world
	scale store.Scale // as the status has it
	edits []func(*draft)
}

func newLoaded(t *testing.T, cpu float64) *loaded {
	t.Helper()
	w := &loaded{world: newTestWorld(t)}
	w.edit(func(g *store.Group) {
		g.Size = 4
		s := store.ScaleSpec{Min: new(1), Max: 20, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
		s.Down.Step = -100 // all at once
		g.Scale = new(s.Complete())
	})
	for i, id := range []string{"a", "b", "c", "d"} {
		w.place(id, i, store.Running)
		w.warm(id, cpu)
	}
	w.pass(0)
	w.noGrace = true
	w.scale = store.Scale{Size: 4, Wish: 1, Asks: 1, Wishes: []store.ScaleWish{
		{Size: 1, Counts: store.Timer{Start: w.now, For: store.Duration(330 * time.Second)}},
	}}
	return w
}

// warm has an instance be healthy for an hour, and tell its load now.
func (w *loaded) warm(id string, cpu float64) {
	w.see(id, func(in *Instance) {
		in.HealthySince, in.PhaseStart, in.ReportSeen = w.now.Add(-time.Hour), w.now.Add(-time.Hour), w.now
		in.Report.Record.Host.Windows = []store.HostWindow{{
			Span: store.Duration(time.Minute), Covered: store.Duration(time.Minute), CPUPercent: cpu,
		}}
	})
}

func (w *loaded) draft(edit func(*draft)) { w.edits = append(w.edits, edit) }

// follows is the part of the status after the load was judged once.
func (w *loaded) follows() (*store.Scale, *draft) {
	w.t.Helper()
	d := w.drafted()
	d.g.Status.Record.Scale = &w.scale
	for _, edit := range w.edits {
		edit(d)
	}
	d.scaler.follow()
	return d.scaler.scale, d
}

// judged has the verdict on an instance be another one, though its number is fresh.
func (w *loaded) judged(id string, v store.Verdict) {
	w.draft(func(d *draft) {
		for _, m := range d.members {
			if m.ID() == id {
				m.judgment.Verdict = v
			}
		}
	})
}

// A group whose load asks for fewer instances shrinks, unless something says that the
// load is not known, that it was larger a while ago, or that nothing may shrink now. Each of these
// is enough by itself.
//
// proves AUTO-2, AUTO-3, AUTO-4, AUTO-5, REC-13, SAFE-3, SAFE-12
func TestWhatKeepsAnIdleGroupAsItIs(t *testing.T) {
	const second, minute = time.Second, time.Minute
	timer := func(left time.Duration) store.Timer { return store.Timer{Start: epoch, For: store.Duration(left)} }
	larger := store.ScaleWish{Size: 4, Counts: store.Timer{Start: epoch.Add(-second), For: store.Duration(2 * second)}}
	silent := func(id string) func(*loaded) {
		return func(w *loaded) { w.see(id, func(in *Instance) { in.ReportSeen = w.now.Add(-3*minute - second) }) }
	}
	outside := func(r query.Reading) func(*loaded) {
		return func(w *loaded) {
			w.edit(func(g *store.Group) {
				g.Scale.Targets = append(g.Scale.Targets, store.ScaleTarget{From: "queue", Value: 100})
			})
			w.draft(func(d *draft) { d.g.Readings = map[string]query.Reading{"queue": r} })
		}
	}
	both := func(edits ...func(*loaded)) func(*loaded) {
		return func(w *loaded) {
			for _, edit := range edits {
				edit(w)
			}
		}
	}
	for name, test := range map[string]struct {
		edit  func(*loaded)
		size  int
		stays store.ScaleStays
	}{
		"nothing":                     {func(*loaded) {}, 1, ""},
		"one of four is silent":       {silent("a"), 2, ""},
		"two of four are silent":      {both(silent("a"), silent("b")), 4, store.ScaleUnknown},
		"all are silent":              {both(silent("a"), silent("b"), silent("c"), silent("d")), 4, store.ScaleUnknown},
		"the wish that counts is new": {func(w *loaded) { w.scale.Wishes = nil }, 4, store.ScaleWindowDown},
		"a larger wish counts": {func(w *loaded) {
			w.scale.Wishes = append([]store.ScaleWish{larger}, w.scale.Wishes...)
		}, 4, store.ScaleWindowDown},
		"a larger wish no longer counts": {func(w *loaded) {
			w.scale.Wishes = append([]store.ScaleWish{larger}, w.scale.Wishes...)
			w.draft(func(d *draft) { d.g.Due = Due{larger.TimerName(): w.now} })
		}, 1, ""},
		"it was not judged for more than a number reaches back": {func(w *loaded) {
			w.draft(func(d *draft) { d.g.Due = Due{w.scale.Wishes[0].TimerName(): w.now.Add(5*minute - 66*second)} })
		}, 4, store.ScaleWindowDown},
		"it was judged a number ago": {func(w *loaded) {
			w.draft(func(d *draft) { d.g.Due = Due{w.scale.Wishes[0].TimerName(): w.now.Add(5*minute - 64*second)} })
		}, 1, ""},
		"it has shrunk a moment ago": {func(w *loaded) { w.scale.Shrunk = new(timer(second)) }, 4, store.ScaleRateDown},
		"a number from outside is not known": {
			outside(query.Reading{Problem: "unreachable"}), 4, store.ScaleSilent,
		},
		"a number from outside is old": {
			outside(query.Reading{Value: 1, Asked: epoch.Add(-query.Fresh - 1)}), 4, store.ScaleSilent,
		},
		"a number from outside is negative": {
			outside(query.Reading{Value: -1, Asked: epoch}), 4, store.ScaleSilent,
		},
		"a number from outside is fresh":   {outside(query.Reading{Value: 1, Asked: epoch}), 1, ""},
		"a number from outside asks for 4": {outside(query.Reading{Value: 400, Asked: epoch}), 4, ""},
		"one of four is lost":              {func(w *loaded) { w.judged("a", store.Lost) }, 2, ""},
		"one of four is suspect":           {func(w *loaded) { w.judged("a", store.Suspect) }, 2, ""},
		"one of four is unhealthy":         {func(w *loaded) { w.turn("a", false); w.pass(0) }, 2, ""},
		"two of four are lost": {func(w *loaded) {
			w.judged("a", store.Lost)
			w.judged("b", store.Lost)
		}, 4, store.ScaleUnknown},
		"two of four are suspect": {func(w *loaded) {
			w.judged("a", store.Suspect)
			w.judged("b", store.Suspect)
		}, 4, store.ScaleUnknown},
		"two of four have been restarted": {func(w *loaded) {
			for _, id := range []string{"a", "b"} {
				w.see(id, func(in *Instance) { in.PhaseStart = w.now.Add(-time.Minute) })
			}
		}, 3, ""},
		"three slots are empty": {func(w *loaded) { w.scale.Size = 4; w.draft(func(d *draft) { d.spec.Size = 7 }) }, 4, ""},
		"one of four is being drained, and busy": {func(w *loaded) {
			w.place("e", 4, store.Draining, func(r *store.Instance) { r.Drain = &store.Drain{Token: "t"} })
			w.warm("e", 100)
			w.pass(0)
		}, 3, ""},
		"a busy instance on demand is not of its size": {func(w *loaded) {
			w.place("e", -1, store.Running)
			w.warm("e", 100)
			w.pass(0)
		}, 1, ""},
		"hold of the shard": {func(w *loaded) {
			w.editShard(func(s *store.Shard) { s.Hold = &store.Hold{By: "ada", At: w.now} })
		}, 4, ""},
		"a pause":       {func(w *loaded) { w.edit(func(g *store.Group) { g.Paused = true }) }, 4, ""},
		"a stale cache": {func(w *loaded) { w.stale = "the watch lags" }, 4, ""},
		"damage": {func(w *loaded) {
			w.draft(func(d *draft) { d.damage.frozen = store.BlockedByDamage })
		}, 4, ""},
		"a group that is stopped": {func(w *loaded) { w.edit(func(g *store.Group) { g.Stopped = true }) }, 4, ""},
		"a group that is being deleted": {
			func(w *loaded) { w.edit(func(g *store.Group) { g.Deleting = true }) }, 4, "",
		},
		"a group that has not started": {func(w *loaded) { w.edit(func(g *store.Group) { g.Unstarted = true }) }, 4, ""},
		"a storm": {func(w *loaded) {
			w.draft(func(d *draft) { d.storms.storm = &store.Storm{} })
		}, 4, store.ScaleStorm},
		"grace": {func(w *loaded) {
			w.draft(func(d *draft) { d.s.GraceEnd = w.now.Add(second) })
		}, 4, store.ScaleGrace},
		"an operator's size": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.ScaleHold = &store.ScaleHold{Size: 4, By: "ada", At: w.now} })
		}, 4, store.ScaleHeld},
		"an operator's size until a time": {func(w *loaded) {
			w.edit(func(g *store.Group) {
				g.ScaleHold = &store.ScaleHold{Size: 4, By: "ada", At: w.now, Until: w.now.Add(second)}
			})
		}, 4, store.ScaleHeld},
		"an operator's size whose time is over": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.ScaleHold = &store.ScaleHold{Size: 4, By: "ada", At: w.now, Until: w.now} })
		}, 1, ""},
		"it is only advised": {
			func(w *loaded) { w.edit(func(g *store.Group) { g.Scale.Mode = store.ScaleAdvise }) }, 4, store.ScaleAdvised,
		},
		"its last judgment was a moment ago": {func(w *loaded) { w.scale.Pace = new(timer(second)) }, 4, ""},
	} {
		w := newLoaded(t, 10)
		test.edit(w)
		got, d := w.follows()
		if got.Size != test.size || got.Stays != test.stays {
			t.Errorf("%s: size %d, stays %q; want %d, %q", name, got.Size, got.Stays, test.size, test.stays)
		}
		told := 0
		for _, n := range d.notes {
			if n.Rule == "AUTO-1" {
				if told++; n.Cause.Load == nil || len(n.Cause.Load.Numbers) == 0 {
					t.Errorf("%s: told without its numbers: %+v", name, n)
				}
			}
		}
		if changes := got.Size != d.spec.Size || got.Advice != 0; changes != (told == 1) || told > 1 {
			t.Errorf("%s: told %d times", name, told)
		}
	}
}

// A release before did not record whether the last change of size was a growth. What it may have
// grown to does not shrink at once, until the size changes again. It recorded no Divided either,
// which is how its records are known.
//
// proves AUTO-2
func TestASizeOfTheReleaseBeforeMayHaveGrown(t *testing.T) {
	changed := &store.Timer{Start: epoch, For: store.Duration(time.Second)}
	for name, c := range map[string]struct {
		divided int
		shrunk  *store.Timer
		grew    bool
		want    bool
	}{
		"it has changed the size":          {0, changed, false, true},
		"it has never changed the size":    {0, nil, false, false},
		"this one, and it has shrunk":      {4, changed, false, false},
		"this one, and it has grown":       {4, changed, true, true},
		"this one, and it never shrank":    {4, nil, false, false},
		"the release before, and a growth": {0, changed, true, true},
	} {
		w := newLoaded(t, 5)
		w.scale.Divided, w.scale.Shrunk, w.scale.Grew = c.divided, c.shrunk, c.grew
		w.scale.Wishes = nil // nothing shrinks now
		if s, _ := w.follows(); s.Grew != c.want || s.Size != 4 {
			t.Errorf("%s: it has grown: %t, size %d", name, s.Grew, s.Size)
		} else if s.Divided == 0 {
			t.Errorf("%s: it stays a record of the release before", name)
		}
	}
}

// A group whose load asks for more grows at once, as far as its step, its bounds and what is known
// let it. Nothing that keeps a group from shrinking keeps it from growing, and what it has grown by
// is remembered, so that the next plan does not do it again.
//
// proves AUTO-1, AUTO-2, AUTO-5
func TestHowABusyGroupGrows(t *testing.T) {
	started := func(w *loaded, since time.Time, ids ...string) {
		for _, id := range ids {
			w.see(id, func(in *Instance) { in.HealthySince = since })
		}
	}
	for name, test := range map[string]struct {
		edit  func(*loaded)
		size  int
		stays store.ScaleStays
	}{
		"at once": {func(*loaded) {}, 8, ""},
		"in a storm and in grace": {func(w *loaded) {
			w.draft(func(d *draft) { d.storms.storm, d.s.GraceEnd = &store.Storm{}, w.now.Add(time.Second) })
		}, 8, ""},
		"in a grace after it was judged before": {func(w *loaded) {
			w.scale.Pace = &store.Timer{Start: w.now.Add(-scalePace), For: store.Duration(scalePace)}
			w.draft(func(d *draft) {
				d.g.Due, d.s.GraceEnd = Due{store.TimerScalePace: w.now}, w.now.Add(time.Minute)
			})
		}, 8, ""},
		"though it has shrunk a moment ago": {func(w *loaded) {
			w.scale.Shrunk = &store.Timer{Start: w.now, For: store.Duration(time.Minute)}
		}, 8, ""},
		"though another number is missing": {func(w *loaded) {
			w.edit(func(g *store.Group) {
				g.Scale.Targets = append(g.Scale.Targets, store.ScaleTarget{From: "queue", Value: 100})
			})
		}, 8, ""},
		"another number asks for more still": {func(w *loaded) {
			w.edit(func(g *store.Group) {
				g.Scale.Targets = append(g.Scale.Targets, store.ScaleTarget{From: "queue", Value: 100})
			})
			w.draft(func(d *draft) {
				d.g.Readings = map[string]query.Reading{"queue": {Value: 710, Asked: w.now.Add(-query.Fresh)}}
			})
		}, 8, ""},
		"to its largest size": {func(w *loaded) { w.edit(func(g *store.Group) { g.Scale.Max = 6 }) }, 6, store.ScaleAtMost},
		"by a step": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.Scale.Up.Step = 1 })
		}, 5, store.ScaleRateUp},
		"not by another step": {func(w *loaded) {
			w.scale.Growths = []store.ScaleGrowth{{
				From: 2, By: 2, Counts: store.Timer{Start: w.now, For: store.Duration(time.Second)},
			}}
		}, 4, store.ScaleRateUp},
		"once a step no longer counts": {func(w *loaded) {
			g := store.ScaleGrowth{From: 2, By: 2, Counts: store.Timer{Start: w.now.Add(-time.Minute), For: 1}}
			w.scale.Growths = []store.ScaleGrowth{g}
			w.draft(func(d *draft) { d.g.Due = Due{g.TimerName(): w.now} })
		}, 8, ""},
		"not before up.window": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.Scale.Up.Window = store.Duration(time.Minute) })
		}, 4, store.ScaleWindowUp},
		"after up.window": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.Scale.Up.Window = store.Duration(time.Minute) })
			w.scale.Rising = &store.Timer{Start: w.now.Add(-time.Minute), For: store.Duration(time.Minute)}
			w.draft(func(d *draft) { d.g.Due = Due{store.TimerScaleRising: w.now} })
		}, 8, ""},
		"not before up.window, by another leader": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.Scale.Up.Window = store.Duration(time.Minute) })
			w.scale.Rising = &store.Timer{Start: w.now.Add(-time.Minute), For: store.Duration(time.Minute)}
			w.draft(func(d *draft) { d.g.Due = Due{store.TimerScaleRising: w.now.Add(1)} })
		}, 4, store.ScaleWindowUp},
		"one of four starts": {func(w *loaded) { started(w, w.now.Add(-2*time.Minute+1), "a") }, 8, ""},
		"one of four has just started": {func(w *loaded) {
			started(w, w.now, "a")
		}, 6, ""},
		"all of them start": {func(w *loaded) {
			started(w, w.now.Add(-2*time.Minute+1), "a", "b", "c", "d")
		}, 4, store.ScaleStarting},
		"all of them have been healthy for warmup": {func(w *loaded) {
			started(w, w.now.Add(-2*time.Minute), "a", "b", "c", "d")
		}, 8, ""},
		"one of four is lost, and told its load before":    {func(w *loaded) { w.judged("a", store.Lost) }, 6, ""},
		"one of four is suspect, and told its load before": {func(w *loaded) { w.judged("a", store.Suspect) }, 6, ""},
		"an average from outside counts for each that is warm": {func(w *loaded) {
			w.edit(func(g *store.Group) {
				g.Scale.Targets = []store.ScaleTarget{{From: "delay", Per: store.PerInstance, Value: 50}}
			})
			w.draft(func(d *draft) { d.g.Readings = map[string]query.Reading{"delay": {Value: 90, Asked: w.now}} })
		}, 8, ""},
		"what is lost carries no load for growth": {func(w *loaded) {
			w.see("a", func(in *Instance) { in.ReportSeen = time.Time{} })
		}, 6, ""},
		"nothing while it is paused": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.Paused = true })
		}, 4, ""},
		"nothing while an operator's size is in force": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.ScaleHold = &store.ScaleHold{Size: 4, By: "ada", At: w.now} })
		}, 4, store.ScaleHeld},
		"nothing where it is only advised": {func(w *loaded) {
			w.edit(func(g *store.Group) { g.Scale.Mode = store.ScaleAdvise })
		}, 4, store.ScaleAdvised},
	} {
		w := newLoaded(t, 90)
		test.edit(w)
		got, d := w.follows()
		if got.Size != test.size || got.Stays != test.stays {
			t.Errorf("%s: size %d, stays %q; want %d, %q", name, got.Size, got.Stays, test.size, test.stays)
		}
		if advises := test.stays == store.ScaleAdvised; advises && got.Advice != 8 || !advises && got.Advice != 0 {
			t.Errorf("%s: advised is %d", name, got.Advice)
		}
		if rises := test.stays == store.ScaleWindowUp; rises != (got.Rising != nil) {
			t.Errorf("%s: it rises since %+v", name, got.Rising)
		}
		if got.Size == 4 {
			continue
		}
		if n := len(got.Growths); n != 1 || got.Growths[0].From != 4 || got.Growths[0].By != got.Size-4 ||
			got.Shrunk == nil || !got.Shrunk.Start.Equal(w.now) {
			t.Errorf("%s: its growth is remembered as %+v, and shrinking waits for %+v", name, got.Growths, got.Shrunk)
		}
		if len(d.notes) != 1 || d.notes[0].Effect.Count != 4 || d.notes[0].Effect.Limit != got.Size {
			t.Errorf("%s: told as %+v", name, d.notes)
		}
	}
}
