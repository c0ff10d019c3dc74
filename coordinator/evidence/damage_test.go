package evidence_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// recorded puts a group with a size, a status that counted so many records, and instances in slots
// from 0 on.
func (w *world) recorded(counted int, ids ...string) {
	w.t.Helper()
	w.put(keys.Group("web"), spec("web"))
	for i, id := range ids {
		rec := w.run("web", id)
		rec.Slot = i
		w.put(keys.Instance(id), rec)
	}
	w.put(keys.Status("web"), store.Status{
		Schema: store.Schema, Group: "web", Records: &counted,
		Counted: w.content.Revision,
	})
}

// told returns the damage as key, kind, slot.
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

// What a new leader cannot remember, the count in the status tells; agents' claims and machines'
// names tell the slots.
//
// proves SAFE-15
func TestLostRecordsAreFoundByTheirCount(t *testing.T) {
	w := newWorld(t)
	w.recorded(5, "web-0-bbbbbb", "web-1-cccccc")
	w.lead()
	if got := w.group("web").Damaged; len(got) != 3 || got[0].Instance != "" || got[0].Slot != nil {
		t.Fatalf("damaged: %+v", got)
	}
	w.put(keys.Stray("odd"), store.Stray{
		Schema: store.Schema, Instance: "odd",
		Claim: &store.Claim{Group: "web", Slot: 4, Managed: true},
	})
	w.evidence.ListedBy("mem", w.now,
		[]provider.Machine{{Instance: "web-3-dddddd", Group: "web", State: provider.StateRunning}}, w.content)
	got := told(t, w.group("web").Damaged)
	if len(got) != 3 || got["odd lost"] != 4 || got["web-3-dddddd lost"] != 3 || got[" lost"] != -1 {
		t.Errorf("damaged: %v", got)
	}
	w.put(keys.Gone(keys.Instance("web-2-ffffff")),
		store.Gone{Schema: store.Schema, Instance: "web-2-ffffff", Group: "web"})
	if got := told(t, w.group("web").Damaged); len(got) != 2 {
		t.Errorf("one of them was deleted on purpose, and damaged are %v", got)
	}
	if s := w.evidence.Snapshot(w.content, []string{""}); len(s.Damaged) != 2 {
		t.Errorf("the shard knows of %+v", s.Damaged)
	}
}

// A record that is lost again after it was whole is another loss, which no review of the first
// acknowledges.
//
// proves SAFE-15
func TestDamageThatComesAgainIsAnother(t *testing.T) {
	w := newWorld(t)
	w.recorded(5, "web-0-bbbbbb", "web-1-cccccc")
	w.lead()
	odd := func() store.Revision {
		w.put(keys.Stray("odd"), store.Stray{
			Schema: store.Schema, Instance: "odd", Claim: &store.Claim{Group: "web", Slot: 4, Managed: true},
		})
		for _, d := range w.group("web").Damaged {
			if d.Instance == "odd" {
				return d.Seen
			}
		}
		t.Fatalf("damaged: %+v", w.group("web").Damaged)
		return 0
	}
	first := odd()
	if again := odd(); again != first {
		t.Errorf("damage that goes on was first seen at %d, and then at %d", first, again)
	}
	w.remove(keys.Stray("odd"))
	w.group("web")
	if again := odd(); again <= first {
		t.Errorf("it was seen at %d, and after it was whole at %d", first, again)
	}
}

// A release acknowledges what the status counted before it.
//
// proves SAFE-15
func TestReleaseAcknowledgesWhatIsNotKnown(t *testing.T) {
	w := newWorld(t)
	w.recorded(5, "web-0-bbbbbb")
	w.put(keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings(),
		Reviewed: &store.Reviewed{Damage: 4, Seen: w.content.Revision},
	})
	w.lead()
	if got := w.group("web").Damaged; len(got) != 0 {
		t.Errorf("damaged: %+v", got)
	}
}

// A machine without a record is known to be unwanted by its note, by another in its slot, or by its
// group's note: by nothing else.
//
// proves REC-8
func TestWhichMachinesAreUnwanted(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb", "web-1-cccccc")
	w.put(keys.Gone(keys.Group("old")), store.Gone{Schema: store.Schema, Group: "old"})
	w.put(keys.Gone(keys.Instance("web-7-noted")),
		store.Gone{Schema: store.Schema, Instance: "web-7-noted", Group: "web"})
	w.lead()
	var machines []provider.Machine
	for id, group := range map[string]string{
		"web-0-second": "web", "web-5-lost": "web", "web-7-noted": "web",
		"nameless": "web", "old-0-bbbbbb": "old", "other-0-bbbbbb": "other",
	} {
		machines = append(machines, provider.Machine{Instance: id, Group: group, State: provider.StateRunning})
	}
	w.evidence.ListedBy("mem", w.now, machines, w.content)
	for _, x := range w.evidence.Snapshot(w.content, []string{""}).Extras {
		got := map[string]bool{"gone": x.Gone, "replaced": x.Replaced, "group": x.GroupGone, "damaged": x.Damaged}
		want := map[string]string{
			"web-0-second": "replaced", "web-5-lost": "damaged", "web-7-noted": "gone",
			"old-0-bbbbbb": "group",
		}[x.Instance]
		for what, ok := range got {
			if ok != (what == want) && !(x.Instance == "other-0-bbbbbb" && what == "damaged") {
				t.Errorf("%s: %s is %t", x.Instance, what, ok)
			}
		}
	}
}

// A leader that never read an unreadable instance takes its slot from etcd's history, else from its
// name.
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
	if s := w.evidence.Snapshot(w.content, []string{"web"}); s.Stale.Kind == "" {
		t.Error("an instance of which no group is known stops nothing")
	}
	wanted := w.evidence.ToRecall(w.content)
	if len(wanted) != 2 || wanted[0].Key != keys.Instance("adopted") || wanted[0].Modified != rev {
		t.Fatalf("to be recalled: %+v", wanted)
	}
	w.evidence.Recalled(wanted[0],
		store.KV{
			Key: wanted[0].Key, Modified: 3,
			Value: store.Encode(store.Instance{Schema: store.Schema, Group: "web", Slot: 1, Managed: true}),
		})
	s := w.evidence.Snapshot(w.content, []string{"web"})
	if got := told(t, s.Groups[0].Damaged); s.Stale.Kind != "" || got["adopted unreadable"] != 1 ||
		got["web-6-gggggg unreadable"] != 6 {
		t.Errorf("stale %v, damaged %v", s.Stale, got)
	}
}

// An unreadable alive key is there: nothing begins that follows from its absence.
//
// proves SAFE-16
func TestUnreadableAliveIsNotAbsent(t *testing.T) {
	w := newWorld(t)
	w.recorded(1, "web-0-bbbbbb")
	w.event(store.Event{KV: store.KV{Key: keys.Alive("web-0-bbbbbb"), Value: []byte("garbage")}})
	fresh := cache.NewContent()
	for _, e := range []store.KV{
		{Key: keys.Shard(), Value: store.Encode(w.content.Shard.Record), Modified: 1},
		{
			Key: keys.Instance("web-0-bbbbbb"), Value: store.Encode(w.content.Instances["web-0-bbbbbb"].Record),
			Modified: 2,
		},
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
	if s := w.evidence.Snapshot(w.content, []string{"web"}); s.Stale.Kind != "" {
		t.Errorf("one alive key stops all changes: %v", s.Stale)
	}
}

// A group that no leader has counted waits for the machines of each provider that it can have some
// with, and is planned once they are listed.
//
// proves SAFE-15
func TestUncountedGroupsWaitForTheirProviders(t *testing.T) {
	counted := 0
	other := spec("web")
	other.Provider = "cloud"
	refused := spec("web")
	refused.Labels = map[string]string{"problem": "no room for it"}
	refused.Provider = "cloud"
	accepted := spec("web")
	foreign := other
	foreign.Deleting = true
	deleted := spec("web")
	deleted.Deleting = true
	for name, c := range map[string]struct {
		spec    any
		status  *store.Status
		machine store.Group // of the spec of an instance
		waits   string      // before anything is listed
		then    string      // once mem's machines are
	}{
		"new": {spec: spec("web"), waits: "mem"},
		"counted": {
			spec:   spec("web"),
			status: &store.Status{Records: &counted, Accepted: &accepted},
		},
		"of the release before": {spec: spec("web"), status: &store.Status{Accepted: &accepted}, waits: "mem"},
		"with another provider": {
			spec: other, status: &store.Status{Accepted: &accepted}, waits: "cloud",
			then: "cloud",
		},
		"with another one's machines":   {spec: spec("web"), machine: other, waits: "cloud", then: "cloud"},
		"refused":                       {spec: refused, status: &store.Status{Accepted: &accepted}, waits: "mem"},
		"never accepted":                {spec: refused, waits: "cloud", then: "cloud"},
		"unreadable":                    {spec: "garbage", waits: "mem"},
		"deleted":                       {spec: deleted, waits: "mem"},
		"deleted, of no known provider": {spec: foreign},
		"not wanted":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.spec != nil {
				w.put(keys.Group("web"), c.spec)
			}
			if c.status != nil {
				c.status.Schema, c.status.Group = store.Schema, "web"
				w.put(keys.Status("web"), *c.status)
			}
			if c.machine.Provider != "" {
				rec := w.run("web", "web-0-bbbbbb")
				rec.Spec = c.machine.InstanceSpec()
				w.put(keys.Instance("web-0-bbbbbb"), rec)
			}
			w.lead()
			w.takeAll()
			if got := w.group("web").Unlisted; got != c.waits {
				t.Errorf("waits for %q, want %q", got, c.waits)
			}
			w.evidence.ListedBy("mem", w.now, nil, w.content)
			if taken := slices.Contains(w.takeAll(), "web"); taken != (c.waits != "") {
				t.Errorf("is planned: %t", taken)
			}
			if got := w.group("web").Unlisted; got != c.then {
				t.Errorf("waits for %q, want %q", got, c.then)
			}
		})
	}
}

// In a group that no leader has counted every machine without a record is damage, unless a note
// says that it was deleted on purpose.
//
// proves SAFE-15
func TestMachinesOfAnUncountedGroupAreDamage(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("web"), spec("web"))
	w.put(keys.Gone(keys.Instance("web-1-cccccc")),
		store.Gone{Schema: store.Schema, Instance: "web-1-cccccc", Group: "web"})
	w.lead()
	var machines []provider.Machine
	for _, id := range []string{"web-0-bbbbbb", "web-1-cccccc", "web-x-dddddd", "imported"} {
		machines = append(machines, provider.Machine{Instance: id, Group: "web", State: provider.StateRunning})
	}
	machines = append(machines, provider.Machine{Instance: "nobodys", Group: "old", State: provider.StateRunning})
	w.evidence.ListedBy("mem", w.now, machines, w.content)
	s := w.evidence.Snapshot(w.content, []string{"web"})
	got := told(t, s.Groups[0].Damaged)
	if len(got) != 3 || got["web-0-bbbbbb lost"] != 0 || got["web-x-dddddd lost"] != -1 || got["imported lost"] != -1 ||
		len(s.Damaged) != 3 {
		t.Errorf("damaged: %v, in the shard %+v", got, s.Damaged)
	}
	for _, d := range s.Damaged {
		if d.OnDemand != (d.Instance == "web-x-dddddd") {
			t.Errorf("on demand: %+v", d)
		}
	}
	none := 0
	w.put(keys.Status("web"), store.Status{
		Schema: store.Schema, Group: "web", Records: &none,
		Counted: w.content.Revision, Damaged: s.Damaged,
	})
	if got := told(t, w.group("web").Damaged); len(got) != 3 {
		t.Errorf("once they are counted, damaged are %v", got)
	}
	w.evidence.ListedBy("mem", w.now, nil, w.content)
	if got := told(t, w.group("web").Damaged); len(got) != 0 {
		t.Errorf("the machines are gone, and damaged are %v", got)
	}
}

// Agents that a replica counts and does not note may be on any machine, until a grace after the
// last of them, or after that replica, was there.
//
// proves REC-8
func TestAgentsThatAreNotNotedProtectMachines(t *testing.T) {
	w := newWorld(t)
	w.recorded(1, "web-0-bbbbbb")
	w.put(keys.Replica("one"), store.Replica{Schema: store.Schema, ID: "one"})
	w.lead()
	until := func() time.Time { return w.evidence.Snapshot(w.content, []string{""}).UnnotedUntil }
	if got := until(); !got.IsZero() {
		t.Errorf("until %s", got)
	}
	w.put(keys.Replica("one"), store.Replica{Schema: store.Schema, ID: "one", Unnoted: 7})
	w.pass(time.Hour)
	if got := until(); !got.Equal(w.now.Add(10 * time.Minute)) {
		t.Errorf("until %s", got)
	}
	w.pass(time.Hour)
	w.remove(keys.Replica("one"))
	gone := w.now
	w.pass(time.Hour)
	if got := until(); !got.Equal(gone.Add(10 * time.Minute)) {
		t.Errorf("until %s, and the replica vanished at %s", got, gone)
	}
}

// All records of many groups are lost: each machine and each agent is damage of its own group.
//
// proves SAFE-15
func TestManyLostRecords(t *testing.T) {
	const groups, each = 100, 20
	w := newWorld(t)
	var machines []provider.Machine
	for g := range groups {
		name := fmt.Sprintf("g%d", g)
		w.put(keys.Group(name), spec(name))
		for slot := range each {
			id := fmt.Sprintf("%s-%d-bbbbbb", name, slot)
			machines = append(machines, provider.Machine{Instance: id, Group: name, State: provider.StateRunning})
			w.put(keys.Stray(id), store.Stray{
				Schema: store.Schema, Instance: id,
				Claim: &store.Claim{Group: name, Slot: slot, Managed: true},
			})
		}
	}
	w.lead()
	w.evidence.ListedBy("mem", w.now, machines, w.content)
	s := w.evidence.Snapshot(w.content, append([]string{""}, w.takeAll()[1:]...))
	if len(s.Damaged) != groups*each || len(s.Extras) != groups*each {
		t.Errorf("%d records are damaged, %d machines are extra", len(s.Damaged), len(s.Extras))
	}
	for id := range w.content.Strays {
		w.remove(keys.Stray(id))
	}
	if n := len(w.content.Claiming); n > 0 {
		t.Errorf("%d groups have no claim", n)
	}
}
