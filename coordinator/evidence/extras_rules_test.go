package evidence_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Machines without a record are kept as keys, in order and no more than asked for, each with what
// is known of it.
//
// proves REC-8
func TestExtrasAsTheyAreWrittenDown(t *testing.T) {
	w := newWorld(t)
	w.lead()
	w.evidence.ListedBy("mem", w.now, []provider.Machine{
		{Instance: "b", Group: "web", Zone: "z", Ref: "r", State: provider.StateStopped},
		{Instance: "a", State: provider.StateRunning},
		{Instance: "c"},
	}, w.content)
	w.put(keys.Gone(keys.Instance("b")), store.Gone{Schema: store.Schema, Instance: "b", Group: "web"})
	w.pass(time.Minute)
	got := w.evidence.Extras(w.content, 2)
	want := []store.Extra{
		{Schema: store.Schema, Instance: "a", Provider: "mem", State: string(provider.StateRunning), Since: epoch},
		{
			Schema: store.Schema, Instance: "b", Group: "web", Provider: "mem", Zone: "z", Ref: "r",
			State: string(provider.StateStopped), Since: epoch, Gone: true,
		},
	}
	if !slices.Equal(got, want) {
		t.Errorf("written down are\n%+v\nwant\n%+v", got, want)
	}
	if got := w.evidence.Extras(w.content, 10); len(got) != 3 {
		t.Errorf("%d are written down where ten may be", len(got))
	}
}

// A machine without a record that the provider did not make is shown, and nothing is decided on it:
// it is no extra machine, holds no slot as damage, and raises no doubt in Lists.
//
// proves PROV-4, REC-8, SAFE-15
func TestForeignMachinesWithoutARecord(t *testing.T) {
	w := newWorld(t)
	w.recorded(1, "web-0-bbbbbb")
	w.lead()
	list := func(machines ...provider.Machine) {
		w.pass(store.DefaultShardSettings().ProviderPoll.D())
		w.evidence.ListedBy("mem", w.now, machines, w.content)
	}
	foreign := func(instance, ref string) provider.Machine {
		return provider.Machine{Instance: instance, Group: "web", Ref: ref, State: provider.StateRunning, Foreign: true}
	}
	first := w.now.Add(store.DefaultShardSettings().ProviderPoll.D())
	for range 2 {
		list(foreign("web-0-bbbbbb", "r"), foreign("web-1-cccccc", "b"), foreign("web-1-cccccc", "a"))
	}
	if s := w.evidence.Snapshot(w.content, []string{"web"}); len(s.Extras) > 0 {
		t.Errorf("extra machines are %+v", s.Extras)
	}
	if d := w.group("web").Damaged; len(d) > 0 {
		t.Errorf("damage is %+v", d)
	}
	want := []store.Extra{{
		Schema: store.Schema, Instance: "web-1-cccccc", Group: "web", Provider: "mem", Ref: "a", State: "running",
		Since: first, Foreign: true,
	}}
	if got := w.evidence.Extras(w.content, 10); !slices.Equal(got, want) {
		t.Errorf("written down are\n%+v\nwant\n%+v", got, want)
	}
	list(foreign("web-1-cccccc", "a"), provider.Machine{Instance: "web-1-cccccc", Group: "web", Ref: "own"})
	if got := w.evidence.Extras(w.content, 10); len(got) != 1 || got[0].Foreign || got[0].Ref != "own" {
		t.Errorf("beside one that the provider made: %+v", got)
	}
	list()
	if got := w.evidence.Extras(w.content, 10); len(got) > 0 {
		t.Errorf("once they are gone: %+v", got)
	}
}

// What is known of a machine without a record: its claim goes before its tag and its name.
//
// proves REC-8
func TestWhatIsKnownOfAnExtra(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb", "web-1-cccccc")
	for _, key := range []string{keys.Group("group"), keys.Static("file"), keys.Status("status"), keys.Group("db")} {
		w.put(keys.Gone(key), store.Gone{Schema: store.Schema})
	}
	w.put(keys.Group("db"), spec("db")) // made anew
	w.lead()
	w.stray("web-7-claims", "web", 1)
	w.stray("db-5-claims", "web", 1)
	w.stray("db-6-claims", "group", 1)
	w.put(keys.Stray("untagged"), store.Stray{Schema: store.Schema, Instance: "untagged"})
	var machines []provider.Machine
	want := map[string]string{
		"web-1-tagged": "replaced", "web-x-tagged": "", "web-7-claims": "replaced", "db-5-claims": "replaced",
		"db-6-claims": "group", "group-0-bbbbbb": "group",
		"file-0-bbbbbb": "group", "status-0-bbbbbb": "group", "db-0-bbbbbb": "damaged", "web-4-lost": "damaged",
	}
	for id := range want {
		group, _, _ := strings.Cut(id, "-")
		machines = append(machines, provider.Machine{Instance: id, Group: group, State: provider.StateRunning})
	}
	machines = append(machines, provider.Machine{Instance: "untagged"})
	want["untagged"] = ""
	w.evidence.ListedBy("mem", w.now, machines, w.content)
	check := func(want map[string]string) {
		t.Helper()
		extras := w.evidence.Snapshot(w.content, []string{""}).Extras
		if len(extras) != len(want) {
			t.Errorf("extra are %d, want %d", len(extras), len(want))
		}
		for _, x := range extras {
			if tag, _, _ := strings.Cut(x.Instance, "-"); x.Group != tag && x.Instance != "untagged" {
				t.Errorf("%s: its group is %s", x.Instance, x.Group)
			}
			if x.Replaced != (want[x.Instance] == "replaced") || x.GroupGone != (want[x.Instance] == "group") ||
				x.Damaged != (want[x.Instance] == "damaged") || x.Lost != (x.Damaged || want[x.Instance] == "seen") {
				t.Errorf("%s: %+v, want %s", x.Instance, x, want[x.Instance])
			}
		}
	}
	check(want)
	w.put(keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings(),
		Reviewed: &store.Reviewed{Seen: w.content.Revision},
	})
	want["db-0-bbbbbb"], want["web-4-lost"] = "seen", "seen"
	check(want)
	w.spoil(keys.Instance("web-4-lost")) // it has a record, whatever that says
	delete(want, "web-4-lost")
	w.evidence.ListedBy("mem", w.now, machines, w.content)
	check(want)
}
