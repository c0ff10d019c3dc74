package evidence_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// A failed List begins an outage, and the next List ends it; calls begin one only by errors that do
// not depend on a template, and any answer ends it, other than one without a known meaning. A group
// with a roll is planned when an outage turns out to last, and when that ends.
//
// proves ROLL-4
func TestOutages(t *testing.T) {
	broken := errors.New("broken")
	throttled, refused := provider.ThrottledFor(time.Second), error(&provider.Error{Kind: provider.Credentials})
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	status := store.Status{Schema: store.Schema, Group: "rolling", Rollout: &store.Rollout{Template: "t"}}
	w.put(keys.Status("rolling"), status)
	rec := w.content.Instances["web-0"].Record
	list := func(err error) {
		if err != nil {
			w.evidence.NotListed("mem", w.now, err)
		} else {
			w.evidence.ListedBy("mem", w.now, []provider.Machine{{Instance: "web-0"}}, w.content)
		}
	}
	create := func(err error) { w.evidence.Created(rec, w.now, provider.Machine{}, err) }
	restart := func(err error) { w.evidence.Restarted("web-0", "token", err) }
	remove := func(err error) { w.evidence.Removed("web-0", err) }
	list(nil)
	const since = 40 * time.Second // between two of these steps
	for i, c := range []struct {
		call  func(error)
		err   error
		why   string // of the outage then; "": there is none
		steps int    // since it began
		news  bool
	}{
		{list, throttled, throttled.Error(), 0, false},
		{list, nil, "", 0, false},
		{list, broken, "broken", 0, false},
		{list, errors.New("as broken"), "broken", 1, false}, // the first error stays
		{list, broken, "broken", 2, true},
		{create, nil, "broken", 3, false},
		{list, nil, "", 0, true},
		{list, broken, "broken", 0, false},
		{list, nil, "", 0, false}, // a single failure is no news
		{create, broken, "", 0, false},
		{create, provider.ErrInvalid, "", 0, false},
		{create, provider.ErrQuota, "", 0, false},
		{create, provider.ErrCapacity, "", 0, false},
		{create, throttled, throttled.Error(), 0, false},
		{create, broken, throttled.Error(), 1, false},
		{create, throttled, throttled.Error(), 2, true},
		{create, broken, throttled.Error(), 3, false},
		{create, provider.ErrInvalid, "", 0, true},
		{restart, refused, refused.Error(), 0, false},
		{restart, nil, "", 0, false},
		{remove, throttled, throttled.Error(), 0, false},
		{list, broken, throttled.Error(), 1, false}, // the earlier one counts
		{list, broken, throttled.Error(), 2, false}, // neither lasts
		{list, broken, "broken", 2, true},           // the one that lasts counts
		{remove, throttled, "broken", 3, false},     // it had ended, and begins again
		{list, nil, throttled.Error(), 1, true},
		{remove, throttled, throttled.Error(), 2, true},
		{remove, nil, "", 0, true},
		{list, broken, "broken", 0, false},
		{remove, throttled, "broken", 1, false}, // the earlier one counts
		{list, broken, "broken", 2, true},
		{remove, throttled, "broken", 3, false}, // both last
		{list, nil, throttled.Error(), 3, false},
		{remove, nil, "", 0, true},
	} {
		w.pass(since)
		w.takeAll()
		c.call(c.err)
		out, failing := w.evidence.Snapshot(w.content, []string{"web"}).Outages["mem"]
		if failing != (c.why != "") || out.Why != c.why {
			t.Errorf("step %d: the outage is %+v, want %q", i, out, c.why)
		}
		if began := w.now.Add(-time.Duration(c.steps) * since); c.why != "" && !out.Since.Equal(began) {
			t.Errorf("step %d: the outage is since %s, want %s", i, out.Since, began)
		}
		if planned := slices.Contains(w.takeAll(), "rolling"); planned != c.news {
			t.Errorf("step %d: the group with a roll is planned: %t", i, planned)
		}
	}
}

// One call is throttled, and from then on every call fails without a known meaning, as with a bad
// template: no outage lasts, and soon there is none. The same holds if no call is made any more.
//
// proves ROLL-4
func TestOneThrottledCallIsNoOutage(t *testing.T) {
	for _, every := range []time.Duration{10 * time.Second, time.Hour} {
		w := newWorld(t)
		w.run("web", "web-0")
		w.lead()
		rec := w.content.Instances["web-0"].Record
		outage := func() plan.Outage { return w.evidence.Snapshot(w.content, []string{"web"}).Outages["mem"] }
		w.evidence.Created(rec, w.now, provider.Machine{}, provider.ThrottledFor(30*time.Second))
		for begun := w.now; w.now.Sub(begun) < time.Hour; {
			w.pass(every)
			w.evidence.Created(rec, w.now, provider.Machine{}, errors.New("broken"))
			if out := outage(); out.Lasts(w.now) || w.now.Sub(begun) > 3*time.Minute && !out.Since.IsZero() {
				t.Fatalf("after %s: %+v", w.now.Sub(begun), out)
			}
		}
	}
}

// An outage is of the time for which the provider asked, however long that is.
//
// proves ROLL-4
func TestALongThrottlingIsOneOutage(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	begun := w.now
	for range 4 {
		w.evidence.Removed("web-0", provider.ThrottledFor(10*time.Minute))
		w.pass(10 * time.Minute)
	}
	out := w.evidence.Snapshot(w.content, []string{"web"}).Outages["mem"]
	if !out.Since.Equal(begun) || !out.Lasts(w.now) {
		t.Errorf("it began at %s, and is %+v", begun, out)
	}
}

// Creations that fail without a known meaning are an outage if the provider has made a machine of
// their template in their zone: else the template may be why. Any other answer to a creation ends
// it, and it ends by itself when no such creation fails any more.
//
// proves ROLL-4
func TestCreationsOfAKnownTemplateShowAnOutage(t *testing.T) {
	w := newWorld(t)
	recs := map[string]store.Instance{}
	place := func(id, template, provider string, phase store.Phase) {
		rec := w.run("web", id)
		rec.Template, rec.Spec.Provider, rec.Phase = template, provider, phase
		w.put(keys.Instance(id), rec)
		recs[id] = rec
	}
	place("made", "good", "mem", store.Running)
	place("elsewhere", "new", "other", store.Running)
	place("boots", "new", "mem", store.Booting) // it may never register
	place("good", "good", "mem", store.Creating)
	place("zone", "good", "mem", store.Creating)
	place("spot", "good", "mem", store.Creating)
	for id, change := range map[string]func(*store.Instance){
		"zone": func(r *store.Instance) { r.Zone = "b" }, // the template may be wrong there alone
		"spot": func(r *store.Instance) { r.Spec.Spot = true },
	} {
		rec := recs[id]
		change(&rec)
		w.put(keys.Instance(id), rec)
		recs[id] = rec
	}
	place("new", "new", "mem", store.Creating)
	w.lead()
	w.put(keys.Status("rolling"), store.Status{Schema: store.Schema, Group: "rolling", Rollout: &store.Rollout{}})
	broken, other := errors.New("broken"), errors.New("as broken")
	const pace = 40 * time.Second // between two of these steps
	for i, c := range []struct {
		id    string
		err   error
		why   string // of the outage then; "": there is none
		steps int    // since it began
		news  bool
	}{
		{"new", broken, "", 0, false},
		{"zone", broken, "", 0, false},
		{"spot", broken, "", 0, false},
		{"good", broken, "broken", 0, false},
		{"new", other, "broken", 1, false},
		{"good", other, "broken", 2, true},
		{"good", nil, "", 0, true},
		{"good", broken, "broken", 0, false},
		{"new", nil, "", 0, false},
		{"good", other, "as broken", 0, false},
		{"new", provider.ErrInvalid, "", 0, false}, // it answers
		{"good", broken, "broken", 0, false},
		{"new", other, "broken", 1, false},
		{"new", other, "broken", 2, false}, // this shows nothing
		{"new", other, "", 0, false},       // nor is it known for so long
		{"good", broken, "broken", 0, false},
		{"good", provider.ThrottledFor(time.Second), "broken", 1, false},
		{"good", broken, "broken", 2, true},
	} {
		w.pass(pace)
		w.takeAll()
		w.evidence.Created(recs[c.id], w.now, provider.Machine{}, c.err)
		out, failing := w.evidence.Snapshot(w.content, []string{"web"}).Outages["mem"]
		if failing != (c.why != "") || out.Why != c.why {
			t.Errorf("step %d: the outage is %+v, want %q", i, out, c.why)
		}
		if began := w.now.Add(-time.Duration(c.steps) * pace); c.why != "" && !out.Since.Equal(began) {
			t.Errorf("step %d: the outage is since %s, want %s", i, out.Since, began)
		}
		if planned := slices.Contains(w.takeAll(), "rolling"); planned != c.news {
			t.Errorf("step %d: the group with a roll is planned: %t", i, planned)
		}
	}
}
