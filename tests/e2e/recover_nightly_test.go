//go:build nightly

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/recovery"
	"github.com/leasehold/leasehold/store"
)

// The runbook of docs/damage.md with 100 instances of 5 groups: all of etcd's data is lost, and
// every instance is back in its slot, in the process that it ran in. The revisions of the new etcd
// stay below the lost one's all the while, so that nothing may rest on them.
//
// proves SAFE-14, SAFE-15, SAFE-17
func TestAHundredInstancesAreRecovered(t *testing.T) {
	t.Parallel()
	const size = 20
	c := newCluster(t, "a", "b")
	names := []string{"api", "batch", "cache", "search", "web"}
	apply := []string{"group", "apply"}
	for _, name := range names {
		apply = append(apply, "-f", c.groupFile(name, size))
	}
	c.must(apply...)
	type place struct {
		group string
		slot  int
	}
	places := map[string]place{}
	for _, name := range names {
		c.awaitComplete(name, size)
		for _, id := range c.h.wanted(name) {
			i, ok := look[store.Instance](c, c.h.keys.Instance(id))
			if !ok {
				t.Fatalf("no record of %s", id)
			}
			places[id] = place{i.Record.Group, i.Record.Slot}
		}
	}
	var ids []string
	for id := range places {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) != size*len(names) {
		t.Fatalf("%d instances", len(ids))
	}
	running := c.workloads(ids)
	for range 3000 { // months of work are beyond what the new etcd sees in this test
		c.put("/elsewhere", []byte("x"))
	}

	c.replaceEtcd(func() error { return os.RemoveAll(c.etcdDir()) })
	c.await("both replicas to wait", func() bool {
		for _, id := range []string{"a", "b"} {
			if r, ok := look[store.Replica](c, c.h.keys.Replica(id)); !ok || r.Record.Waits == nil ||
				r.Record.Waits.ShardID == "" {
				return false
			}
		}
		return true
	})
	var work time.Duration // what the commands take: the operator's share, less the typing
	command := func(args ...string) string {
		began := time.Now()
		said := c.must(args...)
		work += time.Since(began)
		return said
	}
	if said := command("status"); !strings.Contains(said, "leasehold recover") {
		t.Errorf("status says\n%s", said)
	}
	command("recover", "--confirm=default")
	command(apply...)
	c.await("all machines", func() bool {
		able := 0
		for _, m := range c.candidates() {
			if m.Adoptable() && m.Source == recovery.FromSeal && m.Slot == places[m.Instance].slot &&
				m.Group == places[m.Instance].group {
				able++
			}
		}
		return able == len(ids)
	})
	if p := c.cli("repair"); p.ExitCode() != 0 || !strings.Contains(p.stdout.String(), "left unchanged") {
		t.Errorf("repair, which can put nothing back: exit %d: %s%s", p.ExitCode(), p.stdout.String(), p.stderr.String())
	}
	if said := command("recover", "--confirm=default"); !strings.Contains(said,
		fmt.Sprintf("%d of %d restored", len(ids), len(ids))) {
		t.Errorf("recover says\n%s", said)
	}
	command("release", "--dry-run")
	command("release")
	c.await("the same instances, all of them healthy", func() bool {
		for _, name := range names {
			if st, ok := look[store.Status](c, c.h.keys.Status(name)); !ok || !st.Record.OK ||
				st.Record.Healthy != size {
				return false
			}
		}
		return c.has(ids)
	})
	for id, want := range places {
		if i, _ := look[store.Instance](c, c.h.keys.Instance(id)); i.Record.Group != want.group ||
			i.Record.Slot != want.slot {
			t.Errorf("%s is in slot %d of %s, and was in slot %d of %s", id, i.Record.Slot, i.Record.Group, want.slot,
				want.group)
		}
	}
	c.nothingStopped(running, ids)
	t.Logf("the commands took %s in all", work.Round(time.Millisecond))
}
