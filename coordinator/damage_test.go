package coordinator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// gone notes that the record of an instance was deleted on purpose.
func (w *world) gone(id, group string) {
	w.t.Helper()
	note := store.Gone{Schema: store.Schema, Rule: "SAFE-8", Instance: id, Group: group, At: time.Now().UTC()}
	w.put(w.keys.Gone(w.keys.Instance(id)), store.Encode(note))
}

// lose deletes records as a hand in etcd does, all at once, and returns what they were.
func (w *world) lose(ids ...string) (was []store.KV) {
	w.t.Helper()
	var writes []store.Write
	for _, id := range ids {
		was = append(was, w.list(w.keys.Instance(id))...)
		writes = append(writes, store.Delete(w.keys.Instance(id)))
	}
	if _, err := w.store.Commit(w.t.Context(), store.Txn{Writes: writes}); err != nil {
		w.t.Fatal(err)
	}
	return was
}

func (w *world) restore(was []store.KV) {
	w.t.Helper()
	for _, kv := range was {
		w.put(kv.Key, kv.Value)
	}
}

func (w *world) hold() *store.Hold {
	w.t.Helper()
	return decoded[store.Shard](w, w.list(w.keys.Shard())[0]).Record.Hold
}

func (w *world) damaged(group string) (keys []string) {
	w.t.Helper()
	for _, d := range w.status(group).Damaged {
		keys = append(keys, d.Key)
	}
	return keys
}

// Records that are deleted by hand hold the shard at once; nothing is made, and no machine goes.
// Records that the leader deletes leave notes, and hold nothing.
//
// proves SAFE-15
func TestLostRecordsHoldTheShard(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("api", 2))
		w.up(2)
		w.apply(w.group("web", 5))
		w.up(7)
		w.edit("web", func(g *store.Group) { g.Size = 3 })
		w.until(5*time.Minute, "two are gone", func() bool { return w.settled(5) && len(w.provider.Existing()) == 5 })
		w.pass(time.Minute)
		if w.hold() != nil || len(w.list(w.keys.Gone(w.keys.Of(store.KindInstances)))) != 2 {
			t.Fatalf("hold %+v, notes %v", w.hold(), w.list(w.keys.Of(store.KindGone)))
		}
		ids, made := w.ids(), w.made()
		was := w.lose(ids...)
		w.until(time.Second, "the shard is on hold",
			func() bool { h := w.hold(); return h != nil && h.Damage == 5 && h.By == "leasehold" })
		w.always(20*time.Minute, "nothing is made or removed", func() bool {
			return w.made() == made && len(w.provider.Existing()) == 5 && len(w.ids()) == 0
		})
		if got := w.damaged("web"); len(got) != 3 {
			t.Errorf("the status names %v", got)
		}
		w.restore(was)
		w.pass(time.Minute)
		if got := w.damaged("web"); len(got) != 0 || w.made() != made || !slices.Equal(w.ids(), ids) {
			t.Errorf("damaged %v, instances %v", got, w.ids())
		}
	})
}

// A leader that has seen nothing of the records compares the status with them.
//
// proves SAFE-15
func TestLostRecordsHoldTheShardOfANewLeader(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.apply(w.group("web", 4))
		ids := w.up(4)
		w.pass(time.Minute)
		one.stop()
		w.lose(ids[:2]...)
		w.start("two")
		w.until(time.Minute, "the shard is on hold", func() bool { h := w.hold(); return h != nil && h.Damage == 2 })
		w.always(20*time.Minute, "nothing is made or removed",
			func() bool { return w.made() == 4 && len(w.provider.Existing()) == 4 })
	})
}

// One lost record keeps its slot, and stops nothing else; also under a leader that learns of it
// from the status.
//
// proves SAFE-15
func TestALostRecordKeepsItsSlot(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.apply(w.group("web", 3))
		ids := w.up(3)
		was := w.lose(ids[0])
		w.until(time.Second, "it is named", func() bool { return slices.Equal(w.damaged("web"), []string{was[0].Key}) })
		w.provider.Crash(ids[1], "exit 1")
		w.until(5*time.Minute, "another is replaced",
			func() bool { return w.settled(2) && !slices.Contains(w.ids(), ids[1]) })
		w.always(10*time.Minute, "its slot is not filled",
			func() bool { return len(w.ids()) == 2 && slices.Contains(w.provider.Existing(), ids[0]) })
		one.stop()
		w.start("one")
		w.always(10*time.Minute, "its slot is not filled",
			func() bool { return len(w.ids()) == 2 && slices.Contains(w.provider.Existing(), ids[0]) })
		if w.hold() != nil || !slices.ContainsFunc(w.status("web").Blocked,
			func(b store.Blocked) bool { return b.Rule == "SAFE-15" }) {
			t.Errorf("hold %+v, blocked %+v", w.hold(), w.status("web").Blocked)
		}
		w.restore(was)
		w.until(time.Minute, "it is no damage any more", func() bool { return len(w.damaged("web")) == 0 })
	})
}

// An operator who releases a hold for damage has seen it: then the slots are filled again. What is
// lost after that is damage again.
//
// proves SAFE-15, REC-8
func TestReleaseAcknowledgesDamage(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 4))
		ids := w.up(4)
		for _, id := range ids[:2] {
			w.setMood(id, mood{mute: true})
		}
		w.lose(ids[:2]...)
		w.until(time.Second, "the shard is on hold", func() bool { return w.hold() != nil })
		w.pass(time.Minute)
		w.editShard(func(s *store.Shard) { s.Release(time.Now().UTC()) })
		w.until(5*time.Minute, "the slots are filled", func() bool { return w.settled(4) })
		if w.hold() != nil {
			t.Errorf("on hold again: %+v", w.hold())
		}
		made := w.made()
		lost := w.ids()[:2]
		w.lose(lost...)
		w.until(time.Second, "the shard is on hold again", func() bool { return w.hold() != nil })
		w.always(10*time.Minute, "nothing is made", func() bool { return w.made() == made })
	})
}

// An instance that cannot be read keeps its slot, is no extra, and stops the work on itself alone.
//
// proves SAFE-16
func TestOneUnreadableInstanceStopsItselfAlone(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		key := w.keys.Instance(ids[0])
		was := w.list(key)
		w.put(key, []byte(`garbage`))
		w.until(time.Second, "it is named", func() bool { return slices.Equal(w.damaged("web"), []string{key}) })
		if why := w.status("web").Damaged[0]; why.What != store.DamageUnreadable || why.Slot == nil {
			t.Errorf("told as %+v", why)
		}
		w.edit("web", func(g *store.Group) { g.Size = 3 })
		w.until(5*time.Minute, "the group grows", func() bool { return w.made() == 3 })
		w.always(20*time.Minute, "it is left alone", func() bool {
			return w.made() == 3 && slices.Contains(w.provider.Existing(), ids[0]) &&
				string(w.list(key)[0].Value) == "garbage"
		})
		w.restore(was)
		w.up(3)
	})
}

// A status that cannot be read is written back as it was, from memory, or by a new leader from
// etcd's history.
//
// proves SAFE-16
func TestUnreadableStatusIsWrittenBack(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.apply(w.group("web", 1))
		w.up(1)
		w.edit("web", func(g *store.Group) { g.Size = 2 })
		w.up(2)
		key := w.keys.Status("web")
		readable := func() bool {
			v, err := store.Decode[store.Status](w.list(key)[0])
			return err == nil && len(v.Record.History) == 2
		}
		w.put(key, []byte(`garbage`))
		w.until(time.Second, "it can be read", readable)
		w.remove(key)
		w.until(time.Second, "it is there again", func() bool { return len(w.list(key)) == 1 && readable() })
		one.stop()
		w.put(key, []byte(`garbage`))
		w.start("two")
		w.until(time.Minute, "it can be read", readable)
	})
}

// A slot that cannot be read is written back as it was, from memory, or by a new leader from etcd's
// history; one of which nothing is known starts over. Its group goes on.
//
// proves SAFE-16
func TestUnreadableSlotIsWrittenBack(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		key := w.keys.Slot("web", 1)
		readable := func() bool {
			v, err := store.Decode[store.Slot](w.list(key)[0])
			return err == nil && v.Record.Number == 1 && v.Record.Group == "web"
		}
		w.put(key, []byte(`garbage`))
		w.until(time.Second, "it can be read", readable)
		w.provider.Crash(ids[0], "exit 1")
		w.until(time.Minute, "the group heals", func() bool { return w.made() == 3 })
		w.up(2)
		one.stop()
		w.put(key, []byte(`garbage`))
		w.start("two")
		w.until(time.Minute, "it can be read", readable)
		newer := []byte(`{"schema": 2}`)
		w.put(key, newer)
		w.always(time.Minute, "what a newer program wrote stays",
			func() bool { return string(w.list(key)[0].Value) == string(newer) })
		w.remove(key)
		w.put(key, []byte(`garbage`)) // and a newer program wrote its last value
		w.until(time.Minute, "it can be read", readable)
	})
}

// An unreadable instance of an unknown group stops all groups, each of which says so at once, and
// goes on once it is gone.
//
// proves SAFE-16
func TestAnUnreadableInstanceOfNoGroup(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("api", 1))
		w.up(1)
		w.apply(w.group("web", 1))
		w.up(2)
		key := w.keys.Instance("zzz")
		stops := func(group string) bool {
			blocked := w.status(group).Blocked
			return len(blocked) == 1 && blocked[0].Rule == "SAFE-3" && blocked[0].Command == "leasehold repair"
		}
		w.put(key, []byte(`garbage`))
		w.until(2*time.Second, "both groups say so", func() bool { return stops("api") && stops("web") })
		w.remove(key)
		w.until(2*time.Second, "both groups go on", func() bool { return !stops("api") && !stops("web") })
	})
}

// What was lost is taken up again into its own slot, by order, also many at once and during the
// hold; it is neither extra nor stray then.
//
// proves SAFE-15, REC-8
func TestLostInstancesAreAdoptedIntoTheirSlots(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.apply(w.group("web", 6))
		ids := w.up(6)
		for _, id := range ids[:4] {
			w.setMood(id, mood{mute: true})
		}
		slots := map[string]int{}
		for _, in := range w.instances() {
			slots[in.Record.ID] = in.Record.Slot
		}
		w.lose(ids[:4]...)
		w.until(time.Minute, "their machines are shown",
			func() bool { return len(w.list(w.keys.Of(store.KindExtras))) == 4 })
		for _, id := range ids[:4] {
			w.request("adopt-"+id, store.Request{Kind: store.RequestAdopt, Instance: id, Group: "web"})
		}
		w.until(time.Minute, "all are adopted", func() bool { return slices.Equal(w.ids(), ids) })
		for _, in := range w.instances() {
			if in.Record.Slot != slots[in.Record.ID] || !in.Record.Managed {
				t.Errorf("%s is in slot %d, and was in %d", in.Record.ID, in.Record.Slot, slots[in.Record.ID])
			}
		}
		w.until(10*time.Second, "none is extra",
			func() bool { return len(w.list(w.keys.Of(store.KindExtras))) == 0 && len(w.damaged("web")) == 0 })
		if w.made() != 6 {
			t.Errorf("%d machines were made", w.made())
		}
	})
}

// A machine of which nothing tells why it has no record stays for good, however silent it is.
//
// proves REC-8
func TestUnknownMachinesStay(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.OrphanGrace = store.Duration(3 * time.Minute) })
		w.start("one")
		w.apply(w.group("web", 1))
		w.up(1)
		w.setMood("old", mood{mute: true})
		w.extra("old", "web")
		w.always(2*time.Hour, "it stays", func() bool { return len(w.provider.Existing()) == 2 })
	})
}

// An order to adopt that contradicts what is known is refused.
//
// proves REC-8
func TestContradictoryAdoptionsAreRefused(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(*store.Shard) {})
		w.start("one")
		w.apply(w.group("api", 1))
		w.up(1)
		w.apply(w.group("web", 1))
		w.up(2)
		w.setMood("old", mood{mute: true})
		w.extra("old", "web")
		w.until(time.Minute, "its machine is shown",
			func() bool { return len(w.list(w.keys.Of(store.KindExtras))) == 1 })
		zero, nine := 0, 9
		for id, r := range map[string]store.Request{
			"api":  {Group: "api"},
			"zero": {Slot: &zero},
			"nine": {Slot: &nine},
		} {
			r.Kind, r.Instance = store.RequestAdopt, "old"
			w.request(id, r)
			w.until(time.Minute, "the order is refused", func() bool { return len(w.list(w.keys.Request(id))) == 0 })
		}
		w.pass(time.Second)
		var refused []string
		for _, e := range w.journal() {
			if strings.Contains(e.Record.What, "refused") {
				refused = append(refused, e.Record.Why)
			}
		}
		if len(refused) != 3 || len(w.ids()) != 2 {
			t.Errorf("refused: %q, instances %v", refused, w.ids())
		}
	})
}

// While a record is damaged the leader keeps etcd's history, which is what mends it, and says so.
//
// proves SAFE-15
func TestDamageStopsCompaction(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.CompactAfter = minutes(10) })
		w.start("one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		was := w.lose(ids[0])
		at := was[0].Modified
		w.pass(2 * time.Hour)
		if _, err := w.store.List(t.Context(), was[0].Key, at); err != nil {
			t.Errorf("the record's last value cannot be read any more: %v", err)
		}
		if v := decoded[store.Served](w, w.list(w.keys.Served())[0]); !v.Record.KeptForRepair ||
			!strings.Contains(v.Record.Uncompacted, "leasehold repair") {
			t.Errorf("told: %q, kept for repair: %t", v.Record.Uncompacted, v.Record.KeptForRepair)
		}
		w.restore(was)
		w.until(30*time.Minute, "history is compacted again", func() bool {
			_, err := w.store.List(t.Context(), was[0].Key, at)
			return err != nil
		})
	})
}
