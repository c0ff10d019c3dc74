package judge

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// always is later than everything.
const always = history.Time(1<<63 - 1)

// span is a time from one moment up to another, which is excluded.
type span struct{ from, to history.Time }

func (s span) has(at history.Time) bool { return s.from <= at && at < s.to }

func (s span) meets(o span) bool { return s.from < o.to && o.from < s.to }

// harm is a fault of a machine.
type harm struct {
	span
	kind history.HarmKind
}

// trouble is a fault of the cluster.
type trouble struct {
	span
	history.Trouble
	event history.Event
}

// fate is what really happened to a machine.
type fate struct {
	id     string
	up     []span // its agent ran
	exists []span // there was a machine
	harms  []harm
	shown  []span          // the records said that it is well: see world.looksWell
	told   []history.Event // all events of it, in order
}

// truth is what was done, according to the parties that did it.
type truth struct {
	terms    Terms
	fates    map[string]*fate
	troubles []trouble
	lied     []history.Time // when the provider gave a wrong answer to List
	lines    []history.Time // when etcd's history started over; the first is not among them
}

func (t *truth) of(id string) *fate {
	f := t.fates[id]
	if f == nil {
		f = &fate{id: id}
		t.fates[id] = f
	}
	return f
}

// seek collects the truth.
func (in *inquiry) seek() *truth {
	t := &truth{terms: in.terms, fates: map[string]*fate{}}
	open := map[int]int{}
	alive, reports := map[string]*store.Alive{}, map[string]*store.Report{}
	line := 0
	for _, e := range in.events {
		switch {
		case e.Machine != nil:
			t.of(e.Machine.Instance).step(e, in.terms.Slack)
		case e.Harm != nil:
			t.of(e.Harm.Instance).hurt(e)
		case e.Call != nil && e.Call.Method == history.List && e.Call.Lie != "":
			t.lied = append(t.lied, e.At)
		case e.Trouble != nil && e.Trouble.Ends:
			if n, there := open[e.Trouble.ID]; there {
				t.troubles[n].to = e.At
				delete(open, e.Trouble.ID)
			}
		case e.Trouble != nil:
			open[e.Trouble.ID] = len(t.troubles)
			t.troubles = append(t.troubles, trouble{span{e.At, e.At + 1}, *e.Trouble, e}) // it may end at once
		case e.Change != nil: // all that is found where another line begins comes after that
			if line != 0 && e.Change.Line != line-1 {
				t.lines = append(t.lines, e.At)
				for _, f := range t.fates {
					f.show(e.At, false)
				}
				clear(alive)
				clear(reports)
			}
			line = e.Change.Line + 1
			kind, id, ok := in.keys.Split(e.Change.Key)
			if !ok || kind != store.KindAlive && kind != store.KindReports {
				continue
			}
			if kind == store.KindAlive {
				alive[id] = as[store.Alive](in.decode(e))
			} else {
				reports[id] = as[store.Report](in.decode(e))
			}
			w := world{alive: alive, reports: reports}
			t.of(id).show(e.At, w.looksWell(id))
		}
	}
	return t
}

func last(spans []span) *span {
	if len(spans) == 0 || spans[len(spans)-1].to != always {
		return nil
	}
	return &spans[len(spans)-1]
}

func end(spans []span, at history.Time) {
	if s := last(spans); s != nil {
		s.to = at
	}
}

// late is how much later than a decision the watcher may have seen it. What a call ended counts as
// up for that long: otherwise a machine that was taken down without a reason would seem to have
// been down before.
const late = 10 * time.Second

func (f *fate) step(e history.Event, slack time.Duration) {
	f.told = append(f.told, e)
	switch e.Machine.What {
	case history.Made:
		f.exists = append(f.exists, span{e.At, always})
	case history.Booted:
		end(f.up, e.At)
		f.up = append(f.up, span{e.At, always})
	case history.Ended:
		if e.Machine.Why == history.ByCall {
			end(f.up, e.At.Add(late))
		} else {
			end(f.up, e.At.Add(-slack)) // it was down before that could be seen
		}
	case history.Removed:
		end(f.up, e.At.Add(late))
		end(f.exists, e.At)
	case history.WorkloadBegan, history.WorkloadEnded: // see condemned
	}
}

func (f *fate) hurt(e history.Event) {
	f.told = append(f.told, e)
	if !e.Harm.Ends {
		f.harms = append(f.harms, harm{span{e.At, always}, e.Harm.Kind})
		return
	}
	for i := range f.harms { // a machine with two faults of a kind has it until both are over
		if f.harms[i].kind == e.Harm.Kind && f.harms[i].to == always {
			f.harms[i].to = e.At
			return
		}
	}
}

func (f *fate) show(at history.Time, well bool) {
	switch {
	case !well:
		end(f.shown, at)
	case last(f.shown) == nil:
		f.shown = append(f.shown, span{at, always})
	}
}

// down reports whether a machine was down at a moment, other than by an order just before.
func (t *truth) down(id string, at history.Time) bool {
	f := t.fates[id]
	return f == nil || !slices.ContainsFunc(f.up, func(s span) bool { return s.has(at) })
}

// well reports whether a machine was healthy at a moment, and the coordinators could know it: it
// ran, it had no fault, and since its boot and its last fault the records have shown it as healthy
// once. A machine that came back after a fault while nothing else was wrong counts as known after
// the time that this may take, whatever the records show. A machine that was never healthy is not
// considered here.
func (t *truth) well(id string, at history.Time) bool {
	f := t.fates[id]
	if f == nil || t.down(id, at) {
		return false
	}
	booted := f.bootedBefore(at)
	since, hurt := booted.Add(t.terms.settle()), false
	for _, h := range f.harms {
		if h.from.Add(-t.terms.Slack) > at {
			continue
		}
		if h.to > at {
			return false
		}
		settled := h.to.Add(t.terms.settle())
		if h.kind == history.Exited { // what was killed is started again by itself or by order, which takes a while
			settled = h.to.Add(t.terms.recovery())
		}
		if settled > since {
			since, hurt = settled, true
		}
	}
	if since > at {
		return false
	}
	if f.shownWithin(span{since, at + 1}) {
		return true
	}
	return hurt && at.Sub(since) > t.terms.recovery() && f.shownWithin(span{booted, at}) && !t.troubled(span{since, at})
}

// bootedBefore is when a machine was last booted.
func (f *fate) bootedBefore(at history.Time) history.Time {
	var booted history.Time
	for _, s := range f.up {
		if s.from <= at {
			booted = s.from
		}
	}
	return booted
}

func (f *fate) shownWithin(w span) bool {
	return slices.ContainsFunc(f.shown, func(s span) bool { return s.meets(w) })
}

// troubled reports whether the cluster had a fault at some time of a span, or had not recovered
// from one.
func (t *truth) troubled(w span) bool {
	return slices.ContainsFunc(t.troubles,
		func(tr trouble) bool { return w.meets(span{tr.from, tr.to.Add(t.terms.recovery())}) })
}

// mayBeDead reports whether a coordinator may rightly judge a machine dead: it does not run, or it
// cannot be heard while the provider's lists are wrong.
func (t *truth) mayBeDead(id string, at history.Time) bool {
	if t.down(id, at) {
		return true
	}
	f := t.fates[id]
	unheard := slices.ContainsFunc(f.harms, func(h harm) bool {
		return (h.kind == history.Cut || h.kind == history.Frozen) && h.from <= at && at.Sub(h.from) >= 0 &&
			(h.to == always || at < h.to.Add(t.terms.recovery()))
	})
	return unheard && t.liedWithin(span{at.Add(-2 * t.terms.recovery()), at + 1})
}

// surelyDead reports whether a coordinator has known for long that a machine does not run.
func (t *truth) surelyDead(id string, at history.Time) bool {
	long := t.terms.recovery()
	for _, ago := range []time.Duration{0, long / 2, long} {
		if !t.down(id, at.Add(-ago)) {
			return false
		}
	}
	f := t.fates[id]
	return f != nil && len(f.up) > 0 && f.bootedBefore(at) < at.Add(-long) && !t.troubled(span{at.Add(-long), at + 1})
}

func (t *truth) liedWithin(w span) bool {
	return slices.ContainsFunc(t.lied, w.has)
}

// renewed reports whether etcd's history started over shortly before or after a moment: what was
// written just before may have been lost.
func (t *truth) renewed(at history.Time, within time.Duration) bool {
	return slices.ContainsFunc(t.lines, func(l history.Time) bool {
		return l.Add(-within) <= at && at <= l.Add(within)
	})
}
