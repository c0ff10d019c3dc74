package evidence_test

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Every request is shown once: to its group, to the shard, or as lost; not at all if a record that
// cannot be read may be meant.
func TestWhereRequestsGo(t *testing.T) {
	w := newWorld(t)
	w.lead()
	w.put(keys.Group("web"), spec("web"))
	w.run("web", "web-0")
	w.run("web", "web-1")
	w.event(store.Event{KV: store.KV{Key: keys.Instance("web-9"), Value: []byte(`{"schema": 99}`)}})
	for id, r := range map[string]store.Request{
		"4": {Kind: store.RequestReplace, Instance: "web-0"}, "1": {Kind: store.RequestDelete, Instance: "web-1"},
		"3": {Kind: store.RequestCreate, Group: "web"}, "5": {Kind: store.RequestCreate, Group: "nowhere"},
		"2": {Kind: store.RequestReplace, Instance: "unknown", Group: "web"},
		"7": {Kind: store.RequestAdopt, Instance: "extra", Group: "web"},
		"6": {Kind: store.RequestEvacuate, Zone: "a"},
		"8": {Kind: store.RequestReplace, Instance: "web-9", Group: "web"},
	} {
		w.evidence.TakeDirty(w.content.Revision, w.now)
		r.Schema = store.Schema
		w.put(keys.Request(id), r)
		if got := w.evidence.TakeDirty(w.content.Revision, w.now); !slices.Contains(got, "") &&
			!slices.Contains(got, "web") {
			t.Errorf("request %s has %q planned", id, got)
		}
	}
	ids := func(of []store.Versioned[store.Request]) (ids []string) {
		for _, r := range of {
			ids = append(ids, r.Record.ID)
		}
		return ids
	}
	shows := func(group, orders, lost []string) {
		t.Helper()
		s := w.evidence.Snapshot(w.content, []string{"", "nowhere", "web"})
		if len(s.Groups[0].Requests) != 0 {
			t.Errorf("a group of which there is nothing has requests: %v", ids(s.Groups[0].Requests))
		}
		if a, b, c := ids(s.Groups[1].Requests), ids(s.Orders),
			ids(s.Lost); !slices.Equal(a, group) || !slices.Equal(b, orders) || !slices.Equal(c, lost) {
			t.Errorf("of the group %q, of the shard %q, lost %q; want %q, %q, %q", a, b, c, group, orders, lost)
		}
	}
	shows([]string{"1", "3", "4"}, []string{"6"}, []string{"2", "5"}) // what 7 is for may yet be listed
	list := func(machines ...provider.Machine) {
		t.Helper()
		w.evidence.TakeDirty(w.content.Revision, w.now)
		w.evidence.ListedBy("mem", w.now, machines, w.content)
		if got := w.evidence.TakeDirty(w.content.Revision, w.now); !slices.Contains(got, "") {
			t.Errorf("planned are %q", got)
		}
	}
	list(provider.Machine{Instance: "extra", Group: "web"}, provider.Machine{Instance: "web-0"},
		provider.Machine{Instance: "web-1"}, provider.Machine{Instance: "other", Group: "web"})
	shows([]string{"1", "3", "4", "7"}, []string{"6"}, []string{"2", "5"})
	if x := w.group("web").Extras; len(x) != 1 || x[0].Instance != "extra" {
		t.Errorf("to be adopted are %+v", x)
	}
	list(provider.Machine{Instance: "extra", Group: "nowhere"}, provider.Machine{Instance: "other", Group: "web"})
	shows([]string{"1", "3", "4"}, []string{"6"}, []string{"2", "5", "7"})
	if x := w.group("web").Extras; len(x) != 0 {
		t.Errorf("to be adopted are %+v", x)
	}
	if s := w.evidence.Snapshot(w.content, []string{"web"}); len(s.Orders)+len(s.Lost) != 0 {
		t.Errorf("one group's snapshot has the shard's requests: %+v", s)
	}
	w.evidence.TakeDirty(w.content.Revision, w.now)
	w.remove(keys.Instance("web-1"))
	if got := w.evidence.TakeDirty(w.content.Revision, w.now); !slices.Equal(got, []string{"", "web"}) {
		t.Errorf("an instance with an order goes: %q is planned", got)
	}
	shows([]string{"3", "4"}, []string{"6"}, []string{"1", "2", "5", "7"})
	w.remove(keys.Instance("web-0"))
	w.evidence.TakeDirty(w.content.Revision, w.now)
	w.remove(keys.Group("web"))
	if got := w.evidence.TakeDirty(w.content.Revision, w.now); !slices.Contains(got, "") {
		t.Errorf("a group with an order goes: %q is planned", got)
	}
	w.remove(keys.Request("8"))
	shows(nil, []string{"6"}, []string{"1", "2", "3", "4", "5", "7"})
}

// proves REC-8: a machine that was taken up is no extra any more, also not after its record is
// gone, however old the last List is.
func TestWhatHasARecordIsNotExtra(t *testing.T) {
	w := newWorld(t)
	w.run("web", "web-0")
	w.lead()
	extras := func() (ids []string) {
		for _, x := range w.evidence.Snapshot(w.content, []string{""}).Extras {
			ids = append(ids, x.Instance)
		}
		return ids
	}
	w.event(store.Event{KV: store.KV{Key: keys.Instance("spoiled"), Value: []byte("{")}})
	w.evidence.ListedBy("mem", w.now,
		[]provider.Machine{{Instance: "web-0"}, {Instance: "spoiled"}, {Instance: "extra", Group: "web"}}, w.content)
	if got := extras(); !slices.Equal(got, []string{"extra"}) {
		t.Fatalf("extra are %q", got)
	}
	w.put(keys.Instance("extra"), store.Instance{
		Schema: store.Schema, ID: "extra", Group: "web", Slot: -1,
		Phase: store.Deleting,
	})
	if got := extras(); len(got) != 0 {
		t.Errorf("it has a record, and extra are %q", got)
	}
	w.remove(keys.Instance("extra"))
	if got := extras(); len(got) != 0 {
		t.Errorf("its record is gone, nothing was listed since, and extra are %q", got)
	}
}
