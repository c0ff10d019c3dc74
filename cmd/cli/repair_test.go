package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// lose deletes keys as a hand in etcd does.
func (w *world) lose(keys ...string) {
	w.t.Helper()
	var writes []store.Write
	for _, key := range keys {
		writes = append(writes, store.Delete(key))
	}
	if _, err := w.st.Commit(w.t.Context(), store.Txn{Writes: writes}); err != nil {
		w.t.Fatal(err)
	}
}

// The note of a record that is declared gone names its group, whatever the instance's ID looks
// like: otherwise the leader would miss the record for ever.
//
// proves SAFE-16
func TestForgottenRecordsAreCountedInTheirGroup(t *testing.T) {
	for _, id := range []string{"web-x-abcdef", "ip-10-0-0-3"} {
		for _, history := range []bool{true, false} {
			w := newWorld(t)
			w.put(store.KindShard, "", store.Shard{
				Schema: store.Schema, ID: "s", Name: "default",
				Settings: store.DefaultShardSettings(),
			})
			g := webGroup(2)
			at := w.put(store.KindGroups, "web", g)
			last := w.put(store.KindInstances, id, instanceOf(g, 1, id, store.Running))
			w.lose(w.keys.Instance(id))
			if !history {
				last = 0
			}
			status := statusOf(g, at, 1)
			status.Damaged = []store.Damaged{{
				Key: w.keys.Instance(id), Instance: id, What: store.DamageLost,
				Why: "it is gone", Last: last,
			}}
			w.put(store.KindStatus, "web", status)
			if code, out, err := w.run("repair", "instances/"+id, "--forget", "--confirm", id); code != Done {
				t.Fatalf("%s: code %d\n%s%s", id, code, out, err)
			}
			kv, err := w.st.Get(t.Context(), w.keys.Gone(w.keys.Instance(id)))
			if err != nil {
				t.Fatal(err)
			}
			if v, err := store.Decode[store.Gone](kv); err != nil || v.Record.Group != "web" {
				t.Errorf("%s: note %+v, %v", id, v.Record, err)
			}
		}
	}
}

// The key of a group whose spec is in force is put back from its status, unless the group was
// deleted on purpose or is on its way out.
//
// proves SAFE-16, SAFE-10
func TestRepairRestoresLostSpecs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, *store.Status)
		lost   bool
	}{
		"lost":               {func(*world, *store.Status) {}, true},
		"never accepted":     {func(_ *world, s *store.Status) { s.Accepted = nil }, false},
		"on its way out":     {func(_ *world, s *store.Status) { s.Accepted.Deleting = true }, false},
		"it came from files": {func(w *world, _ *store.Status) { w.put(store.KindStatic, "web", webGroup(2)) }, false},
		"deleted on purpose": {func(w *world, _ *store.Status) {
			w.put(store.KindGone, "groups/web", store.Gone{Schema: store.Schema})
		}, false},
		"an earlier group was deleted": {func(w *world, s *store.Status) {
			s.AcceptedRevision = w.put(store.KindGone, "groups/web", store.Gone{Schema: store.Schema}) + 1
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(store.KindShard, "", store.Shard{
				Schema: store.Schema, ID: "s", Name: "default",
				Settings: store.DefaultShardSettings(),
			})
			g := webGroup(2)
			status := statusOf(g, w.put(store.KindGroups, "web", g), 2)
			w.lose(w.keys.Group("web"))
			c.change(w, &status)
			w.put(store.KindStatus, "web", status)
			code, out, errs := w.run("repair", "--confirm", "default")
			if code != Done || strings.Contains(out, "groups/web restored") != c.lost {
				t.Fatalf("code %d\n%s%s", code, out, errs)
			}
			kv, err := w.st.Get(t.Context(), w.keys.Group("web"))
			if !c.lost {
				return
			}
			if v, bad := store.Decode[store.Group](kv); err != nil || bad != nil || v.Record.Size != 2 {
				t.Errorf("written: %+v, %v, %v", v.Record, err, bad)
			}
		})
	}
}

// Where the shard's record is missing, a command that needs it says whether it was lost.
//
// proves SAFE-15
func TestALostShardIsNotCalledNew(t *testing.T) {
	w := newWorld(t)
	if _, _, errs := w.run("release"); !strings.Contains(errs, "leasehold init creates it") {
		t.Errorf("without any shard: %s", errs)
	}
	w.put(store.KindReplicas, "one", store.Replica{
		Schema: store.Schema, ID: "one", Waits: &store.Waits{ShardID: "s1", Why: "it is missing"},
	})
	if _, _, errs := w.run("release"); !strings.Contains(errs, "was lost") || strings.Contains(errs, "init") {
		t.Errorf("with a replica that waits: %s", errs)
	}
}

// Where coordinators wait for a shard from a backup, every command says that it is to be restored,
// and init makes none unless that is confirmed.
//
// proves SAFE-15, DAY-2
func TestAShardFromABackupIsNotMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindReplicas, "one", store.Replica{
		Schema: store.Schema, ID: "one", Waits: &store.Waits{Restore: true, Why: "it comes from a backup"},
	})
	for _, command := range [][]string{{"init"}, {"init", "--confirm=other"}, {"release"}, {"status"}} {
		_, out, errs := w.run(command...)
		if !strings.Contains(out+errs, "next: leasehold restore FILE") {
			t.Errorf("%s: %s%s", command, out, errs)
		}
	}
	if code, out, errs := w.run("init", "--confirm=default"); code != Done {
		t.Errorf("confirmed: code %d\n%s%s", code, out, errs)
	}
}

// What went with an instance that was deleted on purpose is no damage.
//
// proves SAFE-16
func TestRepairBringsBackNoJoinsOfDeletedInstances(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindShard, "", store.Shard{
		Schema: store.Schema, ID: "s", Name: "default",
		Settings: store.DefaultShardSettings(),
	})
	g := webGroup(2)
	for _, id := range []string{"web-0-abcdef", "web-1-abcdef"} {
		w.put(store.KindInstances, id, instanceOf(g, 1, id, store.Running))
		w.put(store.KindJoined, id, store.Joined{Schema: store.Schema})
	}
	at := w.put(store.KindGroups, "web", g)
	w.put(store.KindGone, "instances/web-0-abcdef",
		store.Gone{Schema: store.Schema, Instance: "web-0-abcdef", Group: "web"})
	for _, id := range []string{"web-0-abcdef", "web-1-abcdef"} {
		w.lose(w.keys.Instance(id), w.keys.Joined(id))
	}
	code, out, errs := w.run("repair", "--at", fmt.Sprint(at), "--confirm", "default")
	if code != Done || strings.Contains(out, "web-0") || !strings.Contains(out, "joined/web-1-abcdef") ||
		!strings.Contains(out, "instances/web-1-abcdef") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
}

// repair restores no key of the election: the leader continues without reading it.
//
// proves SAFE-16
func TestAnUnreadableLeaderIsNotRepaired(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.put(store.KindLeader, "1a", "garbage")
	_, out, errs := w.run("status")
	if strings.Contains(out, "repair leader") || !strings.Contains(out, "etcdctl del") {
		t.Errorf("%s%s", out, errs)
	}
}
