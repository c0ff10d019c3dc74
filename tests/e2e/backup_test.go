package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/recovery"
	"github.com/leasehold/leasehold/store"
)

// All is lost: etcd's data, both coordinators and what they knew on disk. What is left is a backup
// that is older than a replacement and than a larger group, and the authorities' directory. The
// shard comes back with restore, apply, recover and release; each machine is in its slot, no
// workload stops and no machine is made.
//
// proves DAY-2, SAFE-12, SAFE-14, SAFE-17
func TestAllIsLostAndRestoredFromAnOlderBackup(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	scheduled := filepath.Join(c.dir, "backups")
	c.options = []string{"--backup-dir", scheduled}
	start := func() {
		c.startReplica("a")
		c.startReplica("b")
		c.await("a leader", func() bool {
			return c.h.leader() != "" && len(currentOf[store.Replica](c.h, store.KindReplicas)) == 2
		})
	}
	start()
	c.await("a backup by the replicas themselves", func() bool {
		_, ok := look[store.Backup](c, c.h.keys.Backup())
		return ok
	})
	if found, err := os.ReadDir(scheduled); err != nil || len(found) == 0 {
		t.Fatalf("%d scheduled backups: %v", len(found), err)
	}
	c.apply("web", 3)
	file := filepath.Join(c.dir, "shard.backup")
	left, killed := filepath.Join(c.dir, ".shard.backup.leasehold-new-4711"), time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(left, nil, 0o600), os.Chtimes(left, killed, killed)); err != nil {
		t.Fatal(err)
	}
	c.must("backup", file)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a backup that was killed left is still there: %v", err)
	}
	c.heals("web", 3)
	c.must("group", "apply", "-f", c.groupFile("web", 4), "--wait")
	c.awaitComplete("web", 4)
	ids := c.h.wanted("web")
	slots := map[string]int{}
	for _, id := range ids {
		i, _ := look[store.Instance](c, c.h.keys.Instance(id))
		slots[id] = i.Record.Slot
	}
	running, made := c.workloads(ids), c.made()

	for _, id := range []string{"a", "b"} {
		c.replicas[id].Signal(syscall.SIGKILL)
		c.waitEnd(c.replicas[id])
	}
	c.replaceEtcd(func() error {
		return errors.Join(os.RemoveAll(c.etcdDir()), os.RemoveAll(filepath.Join(c.dir, "known-a")),
			os.RemoveAll(filepath.Join(c.dir, "known-b")))
	})
	c.must("restore", file, "--confirm=default")
	start()
	none := func() bool {
		return c.allRun(running) && !slices.ContainsFunc(c.made(), func(id string) bool { return !slices.Contains(made, id) })
	}
	c.throughout(2*leaseTTL, "all workloads run, and nothing is made", func() bool { return none() && c.onHold() })

	c.must("group", "apply", "-f", filepath.Join(c.dir, "web.yaml"))
	c.await("the machines that are younger than the backup", func() bool {
		able := 0
		for _, m := range c.candidates() {
			if m.Adoptable() && m.Source == recovery.FromSeal && m.Slot == slots[m.Instance] {
				able++
			}
		}
		return able == 2
	})
	if said := c.must("recover", "--confirm=default"); !strings.Contains(said, "2 of 2 restored") {
		t.Errorf("recover says\n%s", said)
	}
	c.must("release")
	c.await("the same instances, all of them healthy", func() bool {
		st, ok := look[store.Status](c, c.h.keys.Status("web"))
		return ok && st.Record.OK && st.Record.Healthy == 4 && c.has(ids)
	})
	for id, slot := range slots {
		if i, _ := look[store.Instance](c, c.h.keys.Instance(id)); i.Record.Slot != slot {
			t.Errorf("%s has slot %d, and had %d", id, i.Record.Slot, slot)
		}
	}
	if !none() {
		t.Errorf("workloads were %v; machines %v, and before %v", running, c.made(), made)
	}
}
