package coordinator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// quick is a provider whose machines boot in a second.
var quick = callsOf(300 * time.Millisecond)

// callsOf is a provider whose calls take so long.
func callsOf(d time.Duration) fake.Config {
	return fake.Config{
		Boot: time.Second, Call: fake.Exactly(d), List: fake.Exactly(d), Consistency: time.Second,
	}
}

// proves REC-3
// proves DET-4
// proves SAFE-8
func TestGroupReachesItsSizeAndACrashedMachineIsReplaced(t *testing.T) {
	config := callsOf(8 * time.Second) // many plans are made while a call is under way
	inWorld(t, config, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 3))
		ids := w.up(3)
		w.provider.Crash(ids[0], "exit 1")
		w.until(30*time.Second, "the crashed one is being removed", func() bool { return !w.settled(3) })
		w.up(3)
		if w.made() != 4 || len(w.provider.Existing()) != 3 {
			t.Errorf("%d machines were made, %v exist", w.made(), w.provider.Existing())
		}
		for _, l := range w.provider.Ledger() {
			if l.Overlapped {
				t.Errorf("calls for %s overlapped", l.Instance)
			}
		}
		if st := w.status("web"); !st.OK || st.Health != 100 || st.Phases[store.Running] != 3 {
			t.Errorf("status %+v", st)
		}
	})
}

// Every change of a record is explained by an entry of the journal that was written with it.
//
// proves REC-15
func TestEveryChangeHasItsEntryInTheSameTransaction(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		history := w.store.Watch(w.t.Context(), w.keys.Prefix(), 1)
		w.start("one")
		g := w.group("web", 3)
		w.apply(g)
		ids := w.up(3)
		w.provider.Crash(ids[1], "exit 1")
		w.pass(20 * time.Second)
		w.up(3)
		g.Size = 1
		w.apply(g)
		w.until(time.Minute, "one is left", func() bool { return w.settled(1) })
		last := w.put(w.keys.Request("end"), []byte(`{"schema": 1, "kind": "replace", "instance": "nobody"}`))

		changes, changed, explained := 0, map[store.Revision]string{}, map[store.Revision]bool{}
		for b := range history {
			for _, e := range b.Events {
				switch kind, name, _ := w.keys.Split(e.KV.Key); kind {
				case store.KindInstances:
					changed[e.KV.Modified] = name
					changes++ // several may share a revision
				case store.KindEvents:
					explained[e.KV.Modified] = true
				}
			}
			if b.Revision >= last {
				break
			}
		}
		for rev, id := range changed {
			if !explained[rev] {
				t.Errorf("revision %d changes %s and explains nothing", rev, id)
			}
		}
		if changes < 20 { // four instances, each pending, creating, booting, checking, running, and three removed
			t.Errorf("%d changes were seen", changes)
		}
		for _, e := range w.journal() {
			if e.Record.Rule == "" || e.Record.What == "" || e.Record.Revision == 0 || e.Lease == 0 {
				t.Errorf("entry %s on lease %s: %+v", e.Key, e.Lease, e.Record)
			}
		}
	})
}

// proves REC-13
func TestPausedGroupIsLeftAlone(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		w.apply(g)
		ids := w.up(2)
		g.Paused = true
		w.apply(g)
		w.pass(time.Second)
		w.provider.Crash(ids[0], "exit 1")
		w.always(2*time.Minute, "nothing is made or removed",
			func() bool { return w.made() == 2 && slices.Equal(w.ids(), ids) })
		st := w.status("web")
		if st.State != store.GroupPaused || st.Verdicts[store.Dead] != 1 {
			t.Errorf("detection does not go on: %+v", st)
		}
		g.Paused = false
		w.apply(g)
		w.until(time.Minute, "the crashed one is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
	})
}

// proves SAFE-10
func TestSpecThatIsWrongChangesNothing(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		accepted := w.apply(g)
		ids := w.up(2)
		for name, value := range map[string]string{
			"unknown provider": strings.Replace(string(store.Encode(w.group("web", 5))), `"mem"`, `"cloud"`, 1),
			"unknown zone": strings.Replace(string(store.Encode(w.group("web", 5))), `"template":{`,
				`"template":{"zones":["moon"]`, 1),
			"no JSON":       "size: 5",
			"unknown field": `{"schema":1,"name":"web","size":5,"provider":"mem","sise":5}`,
			"newer schema":  `{"schema":2}`,
			"wrong name":    string(store.Encode(w.group("other", 5))),
			"bad value":     strings.Replace(string(store.Encode(w.group("web", 5))), `"size":5`, `"size":-1`, 1),
			"missing":       "",
		} {
			var rev store.Revision
			if value == "" {
				w.remove(w.keys.Group("web"))
			} else {
				rev = w.put(w.keys.Group("web"), []byte(value))
			}
			w.pass(30 * time.Second)
			w.unchanged(ids)
			st := w.status("web")
			if st.Invalid == nil || st.Invalid.Revision != rev || st.Invalid.Why == "" || st.OK {
				t.Errorf("%s: status says %+v, want what is wrong at revision %d", name, st.Invalid, rev)
			}
			if st.Accepted == nil || st.Accepted.Size != 2 || st.AcceptedRevision != accepted {
				t.Errorf("%s: in force is %+v of revision %d, want that of %d", name, st.Accepted, st.AcceptedRevision,
					accepted)
			}
		}
		// What was accepted last is still kept by every leader.
		w.provider.Crash(ids[0], "exit 1")
		w.until(time.Minute, "the crashed one is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
		w.apply(w.group("web", 1))
		w.until(time.Minute, "the mended spec is in force",
			func() bool { return w.settled(1) && w.status("web").Invalid == nil })
	})
}

// proves SAFE-10
func TestGroupThatWasNeverRightIsNeverMade(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		g := w.group("web", 2)
		g.Provider = "cloud"
		w.apply(g)
		w.pass(time.Minute)
		if st := w.status("web"); w.made() != 0 || st.Invalid == nil || !strings.Contains(st.Invalid.Why, "cloud") ||
			!strings.Contains(st.Invalid.Why, "mem") {
			t.Errorf("%d machines were made; status %+v", w.made(), st.Invalid)
		}
		w.apply(w.group("web", 2))
		w.up(2)
	})
}

// order puts an operator's request.
func (w *world) order(id string, kind store.RequestKind, instance string) {
	w.t.Helper()
	w.put(w.keys.Request(id), store.Encode(store.Request{
		Schema: store.Schema, ID: id, Kind: kind, Instance: instance,
		By: "ann", At: time.Now().UTC(),
	}))
}

// proves REC-16
func TestOrders(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		one.stop()
		w.order("r1", store.RequestReplace, ids[0]) // nobody is up
		w.order("r2", store.RequestReplace, "nobody")
		w.order("r3", "dance", ids[1])
		w.start("two")
		w.until(time.Minute, "the first is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[0]) })
		if !slices.Contains(w.ids(), ids[1]) {
			t.Errorf("instances %v: %s was ordered nothing", w.ids(), ids[1])
		}
		w.order("r4", store.RequestDelete, ids[1])
		w.until(time.Minute, "the other is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[1]) })
		if left := w.list(w.keys.Of(store.KindRequests)); len(left) != 0 {
			t.Errorf("%s is left", left[0].Key)
		}
		refused := 0
		for _, e := range w.journal() {
			if strings.HasSuffix(e.Record.What, "refused") && e.Record.Why != "" {
				refused++
			}
		}
		if refused != 2 {
			t.Errorf("%d refusals are explained, want 2", refused)
		}
		for _, s := range records[store.Slot](w, store.KindSlots) {
			if len(s.Record.Failures) != 0 {
				t.Errorf("an order is counted as a failure: %+v", s.Record)
			}
		}
	})
}

// An order for an instance whose record only a newer program can read waits for it.
//
// proves REC-16
func TestOrderForAnUnreadableInstanceWaits(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.put(w.keys.Instance("web-0"), []byte(`{"schema": 2}`))
		w.order("r1", store.RequestDelete, "web-0")
		w.start("one")
		w.leads(time.Second, "one")
		w.pass(time.Minute)
		if len(w.list(w.keys.Request("r1"))) != 1 {
			t.Error("the order was refused")
		}
	})
}

// proves REC-8, SAFE-14
func TestExtraMachinesAreRemovedAfterTheirGrace(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.OrphanGrace = store.Duration(3 * time.Minute) })
		extra := func(instance, shard string) {
			t.Helper()
			_, err := w.provider.Create(w.t.Context(), provider.CreateRequest{Bootstrap: provider.Bootstrap{
				Schema: provider.BootstrapSchema, Instance: instance, Group: "web", Shard: shard,
				Coordinators: []string{"one"},
			}})
			if err != nil {
				w.t.Fatal(err)
			}
		}
		w.setMood("silent", mood{mute: true})
		w.setMood("foreign", mood{mute: true})
		extra("silent", "shard1")
		w.gone("silent", "web")
		extra("foreign", "shard2")
		extra("speaks", "shard1")
		w.start("one")
		w.leads(time.Second, "one")
		w.always(3*time.Minute, "all are left alone", func() bool { return len(w.provider.Existing()) == 3 })
		w.until(time.Minute, "the silent one is removed", func() bool { return len(w.provider.Existing()) == 2 })
		w.until(2*time.Minute, "its record is gone", func() bool { return len(w.instances()) == 0 })
		w.always(10*time.Minute, "the others are left alone", func() bool {
			return slices.Equal(w.provider.Existing(), []string{"foreign", "speaks"})
		})
		if told := w.refused["speaks"]; told[protocol.Refused_UNKNOWN] == 0 || told[protocol.Refused_RETIRED] != 0 {
			t.Errorf("the agent without a record was refused %v, want to be told that it has none, and not to stop",
				told)
		}
	})
}

// proves REC-3
// proves REC-9
func TestCreationsKeepToTheirRate(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.CreateRate, s.Settings.CreateBurst = 2, 3 })
		w.start("one")
		w.leads(time.Second, "one")
		g := w.group("web", 23)
		w.apply(g)
		w.up(23)
		var at []time.Time
		for _, l := range w.provider.Ledger() {
			at = append(at, l.MadeAt)
		}
		slices.SortFunc(at, time.Time.Compare)
		// 3 at once, then 2 a second, each up to 100ms late.
		if took := at[22].Sub(at[0]); took < 10*time.Second-200*time.Millisecond || took > 14*time.Second {
			t.Errorf("23 creations took %s", took)
		}
		for i := range at[:len(at)-4] {
			if d := at[i+4].Sub(at[i]); d < 400*time.Millisecond {
				t.Errorf("five creations within %s", d)
			}
		}
	})
}
