package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A template is blamed once it has failed three times, in three slots if it may have as many, with
// none becoming healthy in between. What failed before the last progress, on another template, or
// as it was merely started again does not count.
//
// proves FLAP-5
func TestWhenATemplateIsBlamed(t *testing.T) {
	progress := epoch.Add(time.Hour)
	fails := func(template string, at ...time.Time) (out []store.Failure) {
		for _, a := range at {
			out = append(out, store.Failure{Template: template, At: a})
		}
		return out
	}
	after, before := progress.Add(time.Second), progress.Add(-time.Second)
	once := fails("new", after)
	for name, c := range map[string]struct {
		slots [][]store.Failure
		set   func(*store.Rollout, *rollCount)
		want  bool
	}{
		"three slots, at the moment of progress or later": {
			[][]store.Failure{fails("new", progress), once, once, nil, nil}, nil, true,
		},
		"two slots, twice each": {
			[][]store.Failure{fails("new", after, after), fails("new", after, after), nil, nil, nil}, nil, false,
		},
		"one slot, again and again": {[][]store.Failure{fails("new", after, after, after, after), nil, nil}, nil, false},
		"two slots, of a group of two": {
			[][]store.Failure{fails("new", after, after), once}, nil, true,
		},
		"two slots of two, twice in all": {[][]store.Failure{once, once}, nil, false},
		"one slot, the only canary": {
			[][]store.Failure{fails("new", after, after, after), nil, nil},
			func(r *store.Rollout, _ *rollCount) { r.Canary = 1 }, true,
		},
		"one slot, the canary, twice": {
			[][]store.Failure{fails("new", after, after), nil, nil},
			func(r *store.Rollout, _ *rollCount) { r.Canary = 1 }, false,
		},
		"one slot, its canary promoted": {
			[][]store.Failure{fails("new", after, after, after), nil, nil},
			func(r *store.Rollout, _ *rollCount) { r.Canary, r.Promoted = 1, "healthy" }, false,
		},
		"three slots, one before the last progress": {
			[][]store.Failure{fails("new", before), once, once, nil}, nil, false,
		},
		"three slots, one on another template": {[][]store.Failure{fails("old", after), once, once, nil}, nil, false},
		"three slots, all relaunched as they are": {
			[][]store.Failure{once, once, once}, func(_ *store.Rollout, c *rollCount) { c.strange = 0 }, false,
		},
		"three slots, one of another template left": {
			[][]store.Failure{once, once, once}, func(_ *store.Rollout, c *rollCount) { c.strange = 1 }, true,
		},
		"blamed, and the failures are there": {
			[][]store.Failure{once, nil, nil}, func(r *store.Rollout, _ *rollCount) { r.Blamed = "it fails" }, true,
		},
		"blamed, and an operator has reset the slots": {
			[][]store.Failure{nil, nil, nil}, func(r *store.Rollout, _ *rollCount) { r.Blamed = "it fails" }, false,
		},
		"blamed by an analysis, without a failure": {
			[][]store.Failure{nil, nil, nil},
			func(r *store.Rollout, _ *rollCount) { r.Blamed, r.Failed = "too many errors", true }, true,
		},
	} {
		d := draftWith(func(d *draft) {
			d.g, d.spec, d.hash = &Group{}, &store.Group{Size: len(c.slots)}, "new"
			for i, failures := range c.slots {
				sl := &slot{number: i}
				sl.Record.Failures = failures
				d.order = append(d.order, sl)
			}
		})
		d.roll.rollout, d.roll.count.strange = &store.Rollout{Template: "new", Progress: progress}, len(c.slots)
		if c.set != nil {
			c.set(d.roll.rollout, &d.roll.count)
		}
		d.roll.blame()
		if got := d.roll.blamed(); got != c.want {
			t.Errorf("%s: blamed %t: %+v", name, got, d.roll.rollout)
		}
	}
}

// One more instance that is healthy than ever before is progress: failures before it no longer
// count, and a blame ends, unless an analysis or the breaker has stopped the roll. One that
// recovers is none.
//
// proves FLAP-5, ROLL-4
func TestWhatIsProgressOfARoll(t *testing.T) {
	for name, c := range map[string]struct {
		done   int
		set    func(*store.Rollout)
		moved  bool
		blamed bool
	}{
		"one more":                         {3, nil, true, false},
		"as many":                          {2, nil, false, true},
		"fewer, since one has failed":      {1, nil, false, true},
		"as many as before one had failed": {2, func(r *store.Rollout) { r.Done = 1 }, false, true},
		"as before, by a release without most": {
			2, func(r *store.Rollout) { r.Most, r.Done = 0, 2 }, false, true,
		},
		"one more, after an analysis failed": {3, func(r *store.Rollout) { r.Failed = true }, true, true},
		"more than there are slots":          {5, func(r *store.Rollout) { r.Most = 4 }, false, true},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 4 })
		w.now = w.now.Add(time.Minute)
		d := w.drafted()
		r := &store.Rollout{
			Done: 2, Most: 2, Progress: epoch, Blamed: "it fails", BlamedCause: store.Cause{Kind: store.CauseTemplateFails},
			Stalls: &store.Timer{},
		}
		if c.set != nil {
			c.set(r)
		}
		d.roll.rollout, d.roll.count.done = r, c.done
		most := max(r.Most, r.Done)
		d.roll.follow(r)
		if moved := r.Progress.Equal(w.now); moved != c.moved || d.roll.blamed() != c.blamed ||
			(r.BlamedCause.Kind != "") != c.blamed || r.Done != c.done || r.Most != min(4, max(most, c.done)) {
			t.Errorf("%s: progress %t: %+v", name, moved, r)
		}
	}
}
