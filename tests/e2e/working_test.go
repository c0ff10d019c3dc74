package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// worker is a workload that works on a job while there is a file with the name of its instance in a
// directory, and says so by a file of its own. It begins none once its drain hook has run.
const worker = `run: [sh, -c, 'while :; do
      if [ -e %[1]s/$LEASEHOLD_INSTANCE.job ] && [ ! -e ${dir}/no-more ]; then
        touch ${dir}/busy;
        while [ -e %[1]s/$LEASEHOLD_INSTANCE.job ]; do sleep 0.05; done;
        echo done > %[1]s/$LEASEHOLD_INSTANCE.done; rm ${dir}/busy;
      fi; sleep 0.05; done']`

// Of workers those that are idle go first. One that works is told to take nothing new, and goes
// when its job is done.
//
// proves BUSY-1
func TestTheBusyFinishTheirJobs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	file := c.groupFile("farm", 3, "busy: {file: \"${dir}/busy\"}",
		"drain: {timeout: 1m, hook: [touch, \"${dir}/no-more\"]}")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), `run: [sleep, "100000"]`, fmt.Sprintf(worker, c.dir), 1))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("group", "apply", "-f", file, "--wait")
	c.awaitComplete("farm", 3)
	job := func(id string) string { return filepath.Join(c.dir, id+".job") }
	idle := func(id string) bool {
		r := currentOf[store.Report](c.h, store.KindReports)[id].Record
		return r.Idle()
	}
	ids := c.h.wanted("farm")
	for _, id := range ids {
		c.await(id+" being idle", func() bool { return idle(id) })
	}
	for _, id := range ids[:2] {
		if err := os.WriteFile(job(id), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids[:2] {
		c.await(id+" being busy", func() bool { return !idle(id) })
	}

	before := c.caughtUp()
	c.must("group", "scale", "farm", "2", "--confirm", "farm")
	first := c.awaitEntry("the first to go", before, func(n noted) bool { return n.To == store.Draining })
	if first.Instance != ids[2] {
		t.Errorf("%s goes, and %s is idle", first.Instance, ids[2])
	}
	c.await("its end", func() bool { return !c.h.instance(ids[2]).Present() })

	before = c.caughtUp()
	c.must("group", "scale", "farm", "1", "--confirm", "farm")
	chosen := c.awaitEntry("one that works", before, func(n noted) bool { return n.To == store.Draining }).Instance
	c.await("what it waits for", func() bool {
		for _, b := range c.h.status("farm").Record.Blocked {
			if b.Kind == store.BlockedByBusy && b.Instance == chosen {
				return true
			}
		}
		return false
	})
	if out := c.must("explain", chosen); !strings.Contains(out, "BUSY-1") || !strings.Contains(out, "busy.timeout") {
		t.Errorf("explain says nothing of its work:\n%s", out)
	}
	if rec := c.h.instance(chosen).Record; rec.Phase != store.Draining {
		t.Fatalf("it is %s, and works", rec.Phase)
	}
	if err := os.Remove(job(chosen)); err != nil {
		t.Fatal(err)
	}
	c.awaitEntry("its removal", before, func(n noted) bool { return n.Instance == chosen && n.To == store.Deleting })
	if _, err := os.Stat(filepath.Join(c.dir, chosen+".done")); err != nil {
		t.Errorf("its job is not done: %v", err)
	}
	c.await("its end", func() bool { return !c.h.instance(chosen).Present() })
	c.awaitComplete("farm", 1)
}
