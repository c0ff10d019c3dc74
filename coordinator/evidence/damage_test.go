package evidence_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/picture"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// recorded puts a group with a size, a status that counted so many records, and instances in slots from 0 on.
func (w *world) recorded(counted int, ids ...string) {
	w.t.Helper()
	w.put(keys.Group("web"), spec("web"))
	for i, id := range ids {
		rec := w.run("web", id)
		rec.Slot = i
		w.put(keys.Instance(id), rec)
	}
	w.put(keys.Status("web"), store.Status{Schema: store.Schema, Group: "web", Records: &counted, Counted: w.content.Revision})
}

// told tells damage as key, kind, slot.
func told(t *testing.T, list []store.Damaged) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, d := range list {
		slot := -1
		if d.Slot != nil {
			slot = *d.Slot
		}
		out[d.Instance+" "+d.What] = slot
	}
	return out
}

// What a new leader cannot remember, the count in the status tells; agents' claims and machines' names tell the slots.
//
// proves SAFE-15
func TestLostRecordsAreFoundByTheirCount(t *testing.T) {
	w := newWorld(t)
	w.recorded(5, "web-0-bbbbbb", "web-1-cccccc")
	w.lead()
	if got := w.group("web").Damaged; len(got) != 3 || got[0].Instance != "" || got[0].Slot != nil {
		t.Fatalf("damaged: %+v", got)
	}
	w.put(keys.Stray("odd"), store.Stray{Schema: store.Schema, Instance: "odd", Claim: &store.Claim{Group: "web", Slot: 4, Managed: true}})
	w.evidence.ListedBy("mem", w.now, []provider.Machine{{Instance: "web-3-dddddd", Group: "web", State: provider.StateRunning}}, w.content)
	got := told(t, w.group("web").Damaged)
	if len(got) != 3 || got["odd lost"] != 4 || got["web-3-dddddd lost"] != 3 || got[" lost"] != -1 {
		t.Errorf("damaged: %v", got)
	}
	w.put(keys.Gone(keys.Instance("web-2-ffffff")), store.Gone{Schema: store.Schema, Instance: "web-2-ffffff", Group: "web"})
	if got := told(t, w.group("web").Damaged); len(got) != 2 {
		t.Errorf("one of them was deleted on purpose, and damaged are %v", got)
	}
	if s := w.evidence.Snapshot(w.content, []string{""}); len(s.Damaged) != 2 {
		t.Errorf("the shard knows of %+v", s.Damaged)
	}
}

// A release acknowledges what the status counted before it.
//
// proves SAFE-15
func TestReleaseAcknowledgesWhatIsNotKnown(t *testing.T) {
	w := newWorld(t)
	w.recorded(5, "web-0-bbbbbb")
	w.put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings(), Reviewed: &store.Reviewed{Damage: 4, Seen: w.content.Revision}})
	w.lead()
	if got := w.group("web").Damaged; len(got) != 0 {
		t.Errorf("damaged: %+v", got)
	}
}

// A machine without a record is known to be unwanted by its note, by another in its slot, or by its group's note: by nothing else.
//
// proves REC-8
func TestWhichMachinesAreUnwanted(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb", "web-1-cccccc")
	w.put(keys.Gone(keys.Group("old")), store.Gone{Schema: store.Schema, Group: "old"})
	w.put(keys.Gone(keys.Instance("web-7-noted")), store.Gone{Schema: store.Schema, Instance: "web-7-noted", Group: "web"})
	w.lead()
	var machines []provider.Machine
	for id, group := range map[string]string{"web-0-second": "web", "web-5-lost": "web", "web-7-noted": "web", "nameless": "web", "old-0-bbbbbb": "old", "other-0-bbbbbb": "other"} {
		machines = append(machines, provider.Machine{Instance: id, Group: group, State: provider.StateRunning})
	}
	w.evidence.ListedBy("mem", w.now, machines, w.content)
	for _, x := range w.evidence.Snapshot(w.content, []string{""}).Extras {
		got := map[string]bool{"gone": x.Gone, "replaced": x.Replaced, "group": x.GroupGone, "damaged": x.Damaged}
		want := map[string]string{"web-0-second": "replaced", "web-5-lost": "damaged", "web-7-noted": "gone", "old-0-bbbbbb": "group"}[x.Instance]
		for what, is := range got {
			if is != (what == want) && !(x.Instance == "other-0-bbbbbb" && what == "damaged") {
				t.Errorf("%s: %s is %t", x.Instance, what, is)
			}
		}
	}
}

// A leader that never read an unreadable instance takes its slot from etcd's history, else from its name.
//
// proves SAFE-16
func TestUnreadableInstanceKeepsItsSlot(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb")
	garbage := func(id string) store.Revision {
		return w.event(store.Event{KV: store.KV{Key: keys.Instance(id), Value: []byte("garbage")}})
	}
	garbage("web-6-gggggg")
	if w.lead(); w.group("web").Damaged[0].Slot == nil || *w.group("web").Damaged[0].Slot != 6 {
		t.Errorf("damaged: %+v", w.group("web").Damaged)
	}
	rev := garbage("adopted")
	if s := w.evidence.Snapshot(w.content, []string{"web"}); s.Stale == "" {
		t.Error("an instance of which no group is known stops nothing")
	}
	wanted := w.evidence.ToRecall(w.content)
	if len(wanted) != 2 || wanted[0].Key != keys.Instance("adopted") || wanted[0].Modified != rev {
		t.Fatalf("to be recalled: %+v", wanted)
	}
	w.evidence.Recalled(wanted[0], store.KV{Key: wanted[0].Key, Modified: 3, Value: store.Encode(store.Instance{Schema: store.Schema, Group: "web", Slot: 1, Managed: true})})
	s := w.evidence.Snapshot(w.content, []string{"web"})
	if got := told(t, s.Groups[0].Damaged); s.Stale != "" || got["adopted unreadable"] != 1 || got["web-6-gggggg unreadable"] != 6 {
		t.Errorf("stale %q, damaged %v", s.Stale, got)
	}
}

// An unreadable alive key is there: nothing begins that follows from its absence.
//
// proves SAFE-16
func TestUnreadableAliveIsNotAbsent(t *testing.T) {
	w := newWorld(t)
	w.recorded(1, "web-0-bbbbbb")
	w.event(store.Event{KV: store.KV{Key: keys.Alive("web-0-bbbbbb"), Value: []byte("garbage")}})
	fresh := picture.NewContent()
	for _, e := range []store.KV{
		{Key: keys.Shard(), Value: store.Encode(w.content.Shard.Record), Modified: 1},
		{Key: keys.Instance("web-0-bbbbbb"), Value: store.Encode(w.content.Instances["web-0-bbbbbb"].Record), Modified: 2},
		{Key: keys.Alive("web-0-bbbbbb"), Value: []byte("garbage"), Modified: 3},
	} {
		fresh.Take(keys, []store.KV{e})
	}
	w.content = fresh
	w.lead()
	w.pass(time.Hour)
	in := w.instance("web", "web-0-bbbbbb")
	if !in.AliveGone.IsZero() || in.AliveUnreadable == "" || !in.Alive.Present() || in.Alive.Modified != 3 {
		t.Errorf("instance: %+v", in)
	}
	if s := w.evidence.Snapshot(w.content, []string{"web"}); s.Stale != "" {
		t.Errorf("one alive key stops all changes: %s", s.Stale)
	}
}
