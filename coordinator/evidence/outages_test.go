package evidence_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// A failed List begins an outage, and the next List ends it; calls begin one only by errors that do
// not depend on a template, and any answer ends it, other than one without a known meaning. A group
// with a roll is planned at both.
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
	for i, c := range []struct {
		call func(error)
		err  error
		why  string // of the outage then; "": there is none
		news bool
	}{
		{list, throttled, "", false}, // it says nothing, and comes again
		{list, broken, "broken", true},
		{list, errors.New("as broken"), "broken", false}, // the first error stays
		{create, nil, "broken", false},
		{list, nil, "", true},
		{create, broken, "", false},
		{create, provider.ErrInvalid, "", false},
		{create, provider.ErrQuota, "", false},
		{create, provider.ErrCapacity, "", false},
		{create, throttled, throttled.Error(), true},
		{create, broken, throttled.Error(), false},
		{create, provider.ErrInvalid, "", true},
		{restart, refused, refused.Error(), true},
		{restart, nil, "", true},
		{remove, throttled, throttled.Error(), true},
		{list, broken, throttled.Error(), false}, // the earlier one counts
		{remove, nil, "broken", true},
		{list, nil, "", true},
	} {
		w.pass(time.Second)
		w.takeAll()
		begun := w.now
		c.call(c.err)
		out, failing := w.evidence.Snapshot(w.content, []string{"web"}).Outages["mem"]
		if failing != (c.why != "") || out.Why != c.why {
			t.Errorf("step %d: the outage is %+v, want %q", i, out, c.why)
		}
		if c.news && c.why != "" && c.why != "broken" && !out.Since.Equal(begun) {
			t.Errorf("step %d: the outage is since %s, want %s", i, out.Since, begun)
		}
		if planned := slices.Contains(w.takeAll(), "rolling"); planned != c.news {
			t.Errorf("step %d: the group with a roll is planned: %t", i, planned)
		}
	}
}
