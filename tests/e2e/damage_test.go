package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/coordinator/recovery"
	"github.com/leasehold/leasehold/store"
)

// workloads returns the processes of instances' workloads.
func (w *world) workloads(ids []string) map[string]int {
	w.t.Helper()
	pids := map[string]int{}
	for _, id := range ids {
		w.await("the workload of "+id, func() bool { pids[id] = w.workload(id); return pids[id] != 0 })
	}
	return pids
}

// nothingStopped checks that the workloads still run, and that no machine was made or removed.
func (c *cluster) nothingStopped(running map[string]int, ids []string) {
	c.t.Helper()
	if !c.allRun(running) || !slices.Equal(slices.Sorted(slices.Values(c.made())), slices.Sorted(slices.Values(ids))) {
		c.t.Errorf("workloads were %v; machines %v", running, c.made())
	}
}

// allRun reports whether workloads run in the same processes as before.
func (w *world) allRun(pids map[string]int) bool {
	for id, pid := range pids {
		if w.workload(id) != pid {
			return false
		}
	}
	return true
}

// made returns the machines that ever existed.
func (w *world) made() []string {
	w.t.Helper()
	entries, err := os.ReadDir(w.machines)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// look reads a record as it is now; false if it is absent or unreadable.
func look[T any](c *cluster, key string) (v store.Versioned[T], ok bool) {
	kv, err := c.st.Get(c.t.Context(), key)
	if err != nil {
		return v, false
	}
	v, err = store.Decode[T](kv)
	return v, err == nil
}

func (c *cluster) onHold() bool {
	shard, ok := look[store.Shard](c, c.h.keys.Shard())
	return ok && shard.Record.Hold != nil
}

// has reports whether a group has exactly these instances, all of them running.
func (c *cluster) has(ids []string) bool {
	for _, id := range ids {
		if i, ok := look[store.Instance](c, c.h.keys.Instance(id)); !ok || i.Record.Phase != store.Running ||
			!i.Record.Managed {
			return false
		}
	}
	list, err := c.st.List(c.t.Context(), c.h.keys.Of(store.KindInstances), 0)
	return err == nil && len(list.KVs) == len(ids)
}

func (c *cluster) etcdDir() string { return filepath.Join(c.dir, "etcd") }

// stopEtcd kills etcd, as a power failure does.
func (c *cluster) stopEtcd() {
	c.t.Helper()
	c.etcd.Signal(syscall.SIGKILL)
	c.waitEnd(c.etcd)
}

// replaceEtcd stops etcd, replaces its data, and starts it again. The recorded history ends here.
func (c *cluster) replaceEtcd(replace func() error) {
	c.t.Helper()
	c.stopEtcd()
	c.h.mu.Lock()
	c.h.replaced = true
	c.h.mu.Unlock()
	if err := replace(); err != nil {
		c.t.Fatal(err)
	}
	c.startEtcd()
}

// candidates returns what recover would do.
func (c *cluster) candidates() []recovery.Candidate {
	p := c.cli("recover", "-o", "json")
	var all []recovery.Candidate
	if p.ExitCode() != 0 || json.Unmarshal([]byte(p.stdout.String()), &all) != nil {
		return nil
	}
	return all
}

// All of etcd's data is removed under running coordinators and agents: no workload stops, no
// operator decides anything, status says what happened, and recover brings shard, group and
// instances back, each into its slot.
//
// proves SAFE-14, SAFE-15, SAFE-17
func TestAnEmptiedEtcdStopsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	ids := c.apply("web", 3)
	running := c.workloads(ids)
	c.replaceEtcd(func() error { return os.RemoveAll(c.etcdDir()) })
	for _, id := range []string{"a", "b"} {
		c.await("replica "+id+" to wait", func() bool {
			r, ok := look[store.Replica](c, c.h.keys.Replica(id))
			return ok && r.Record.Waits != nil && r.Record.Waits.ShardID != ""
		})
	}
	c.throughout(2*leaseTTL, "all workloads run, and nothing is made",
		func() bool { return c.allRun(running) && slices.Equal(c.made(), ids) })
	if said := c.must("status"); !strings.Contains(said,
		"restore etcd from a snapshot, or, if there is none: leasehold recover") {
		t.Errorf("status says\n%s", said)
	}
	if p := c.cli("init"); p.ExitCode() == 0 {
		t.Error("a shard was created over one that is waited for")
	}

	c.must("recover", "--confirm=default")
	c.must("group", "apply", "-f", filepath.Join(c.dir, "web.yaml"))
	c.await("all agents with their seals, and their machines", func() bool {
		able := 0
		for _, m := range c.candidates() {
			if m.Adoptable() && m.Source == recovery.FromSeal && slices.Contains(ids, m.Instance) {
				able++
			}
		}
		return able == len(ids)
	})
	c.must("recover", "--confirm=default")
	c.must("release")
	c.await("the same instances in their slots", func() bool { return c.has(ids) })
	for slot, id := range ids {
		if i, _ := look[store.Instance](c, c.h.keys.Instance(id)); i.Record.Slot != slot {
			t.Errorf("%s has slot %d, and had %d", id, i.Record.Slot, slot)
		}
	}
	c.nothingStopped(running, ids)
}

// After the loss of etcd's data, while no coordinator runs, an operator creates the shard again,
// with another ID. The coordinators take it for another one and wait; no workload stops. recover
// gives the shard its old ID back, and all instances are in their slots again.
//
// proves SAFE-14, SAFE-15, SAFE-17
func TestAShardThatWasCreatedAnewGetsItsOldIDBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	ids := c.apply("web", 3)
	running := c.workloads(ids)
	shard, _ := look[store.Shard](c, c.h.keys.Shard())
	old := shard.Record.ID
	for _, id := range []string{"a", "b"} {
		c.replicas[id].Signal(syscall.SIGKILL)
		c.waitEnd(c.replicas[id])
	}
	c.replaceEtcd(func() error { return os.RemoveAll(c.etcdDir()) })
	c.must("init")
	c.must("config", "set", "reconnect_max="+reconnect.String(), "provider_poll=1s")
	c.must("group", "apply", "-f", filepath.Join(c.dir, "web.yaml"))
	c.startReplica("a")
	c.startReplica("b")
	c.await("both replicas to wait", func() bool {
		for _, id := range []string{"a", "b"} {
			if r, ok := look[store.Replica](c, c.h.keys.Replica(id)); !ok || r.Record.Waits == nil ||
				r.Record.Waits.ShardID != old {
				return false
			}
		}
		return true
	})
	c.throughout(2*leaseTTL, "all workloads run, and nothing is made",
		func() bool { return c.allRun(running) && slices.Equal(c.made(), ids) })

	if p := c.cli("recover", "--confirm=default"); p.ExitCode() == 0 ||
		!strings.Contains(p.stderr.String(), "leasehold recover --id "+old) {
		t.Errorf("recover: exit %d: %s", p.ExitCode(), p.stderr.String())
	}
	c.must("recover", "--id", old, "--confirm=default")
	c.await("all agents with their seals, and their machines", func() bool {
		able := 0
		for _, m := range c.candidates() {
			if m.Adoptable() && m.Source == recovery.FromSeal && slices.Contains(ids, m.Instance) {
				able++
			}
		}
		return able == len(ids)
	})
	c.must("recover", "--confirm=default")
	c.must("release")
	c.await("the same instances in their slots", func() bool { return c.has(ids) })
	c.nothingStopped(running, ids)
}

// All records of instances are deleted by hand: no workload stops, nothing is made, the shard is on
// hold at once, and repair undoes it.
//
// proves SAFE-14, SAFE-15, SAFE-16
func TestDeletedRecordsStopNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	ids := c.apply("web", 3)
	running := c.workloads(ids)
	var txn store.Txn
	for _, id := range ids {
		txn.Writes = append(txn.Writes, store.Delete(c.h.keys.Instance(id)))
	}
	deleted, err := c.st.Commit(t.Context(), txn)
	if err != nil {
		t.Fatal(err)
	}
	c.await("the hold", c.onHold)
	c.throughout(2*leaseTTL, "all workloads run, and nothing is made",
		func() bool { return c.allRun(running) && slices.Equal(c.made(), ids) })
	for _, k := range []string{"instances/" + ids[0], "leasehold repair"} {
		if said := c.must("status"); !strings.Contains(said, strings.TrimPrefix(k, "instances/")) {
			t.Errorf("status does not tell of %s:\n%s", k, said)
		}
	}
	c.must("repair", "--at", fmt.Sprint(deleted-1), "--confirm=default")
	c.await("the records", func() bool { return c.has(ids) })
	c.must("release")
	c.await("the group to be complete", func() bool {
		st, ok := look[store.Status](c, c.h.keys.Status("web"))
		return ok && st.Record.OK && len(st.Record.Damaged) == 0
	})
	c.heals("web", 3)
	for _, id := range ids[1:] {
		if c.workload(id) != running[id] {
			t.Errorf("the workload of %s was stopped", id)
		}
	}
}

// etcd comes back older than some machines: they run on, the shard is on hold, and they are adopted
// into their slots.
//
// proves SAFE-12, SAFE-14, REC-8
func TestMachinesYoungerThanTheRecordsRunOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	c.apply("web", 2)
	c.stopEtcd()
	backup := filepath.Join(c.dir, "backup")
	if out, err := exec.Command("cp", "-a", c.etcdDir(), backup).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.startEtcd()
	c.await("a leader again", func() bool { return c.h.leader() != "" })
	file := c.groupFile("web", 4)
	c.must("group", "apply", "-f", file, "--wait")
	ids := c.h.wanted("web")
	running := c.workloads(ids)
	c.replaceEtcd(func() error { return errors.Join(os.RemoveAll(c.etcdDir()), os.Rename(backup, c.etcdDir())) })
	c.await("the hold", c.onHold)
	c.throughout(2*leaseTTL, "all workloads run, and nothing is made",
		func() bool { return c.allRun(running) && slices.Equal(c.made(), ids) })
	c.must("group", "apply", "-f", file)
	c.await("both younger machines", func() bool {
		able := 0
		for _, m := range c.candidates() {
			if m.Adoptable() {
				able++
			}
		}
		return able == 2
	})
	c.must("instance", "adopt", "--all")
	c.await("their records", func() bool {
		list, err := c.st.List(t.Context(), c.h.keys.Of(store.KindInstances), 0)
		return err == nil && len(list.KVs) == 4
	})
	c.must("release")
	c.await("the same instances", func() bool { return c.has(ids) })
	c.nothingStopped(running, ids)
	c.await("no problem of machines without a record",
		func() bool { return !strings.Contains(c.must("status"), "REC-8") })
}

// One record is spoiled by hand: it is restored or set aside, no workload stops, and everything
// else goes on.
//
// proves SAFE-16, SAFE-10
func TestASpoiledRecordStopsTheWorkOnItselfAlone(t *testing.T) {
	for kind, c := range map[string]struct {
		// mended waits until the damage has ended, by itself or by an operator's command.
		mended func(c *cluster, id string)
	}{
		store.KindStatus: {func(c *cluster, _ string) {
			c.await("the status to be restored", func() bool {
				st, ok := look[store.Status](c, c.h.keys.Status("web"))
				return ok && st.Record.Accepted != nil
			})
		}},
		store.KindAlive: {func(c *cluster, id string) {
			c.await("alive to be written again",
				func() bool { _, ok := look[store.Alive](c, c.h.keys.Alive(id)); return ok })
		}},
		store.KindInstances: {func(c *cluster, id string) {
			c.await("status to name it", func() bool { return strings.Contains(c.must("status"), id) })
			if said := c.must("instance", "list"); !strings.Contains(said, id) {
				c.t.Errorf("instance list does not show it:\n%s", said)
			}
			c.must("repair", "instances/"+id, "--confirm=default")
		}},
		store.KindGroups: {func(c *cluster, _ string) {
			if p := c.cli("group", "apply", "-f", c.groupFile("web", 1)); p.ExitCode() == 0 {
				c.t.Error("a healthy group shrank without confirmation")
			}
			c.must("group", "apply", "-f", c.groupFile("web", 3))
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, "a", "b")
			ids := w.apply("web", 3)
			running := w.workloads(ids)
			key := w.h.keys.Of(kind) + ids[1]
			if kind == store.KindStatus || kind == store.KindGroups {
				key = w.h.keys.Of(kind) + "web"
			}
			w.put(key, []byte("}garbage"))
			victim := ids[0]
			w.signalAgent(victim, syscall.SIGKILL) // everything else goes on
			w.await("the replacement of "+victim,
				func() bool { return len(w.made()) > len(ids) || !slices.Contains(w.made(), victim) })
			c.mended(w, ids[1])
			w.await("a complete group", func() bool {
				st, ok := look[store.Status](w, w.h.keys.Status("web"))
				return ok && st.Record.OK && st.Record.Healthy == 3 && !w.onHold()
			})
			for _, id := range ids[1:] {
				if w.workload(id) != running[id] {
					t.Errorf("the workload of %s was stopped", id)
				}
			}
		})
	}
}
