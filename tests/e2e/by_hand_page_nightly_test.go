//go:build nightly

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A newcomer has a host, a machine with nothing but Debian, and the page alone. The machine joins
// by the script, is lost while it is off, and comes back as the same instance. Its deletion stops
// the workload, and leaves the machine as it is.
//
// proves PROV-7, PROV-9
func TestFromThePageToAMachineSetUpByHand(t *testing.T) {
	const machine = "rack-7"
	p := newCloudPage(t, "from-nothing")
	h := newCloudHost(t, p.guideHosts)
	t.Cleanup(func() {
		if err := h.remove(machine); err != nil {
			t.Error(err)
		}
	})
	if err := h.boot(machine, []byte("#cloud-config\n")); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(p.dir, "rack.yaml")
	lxc := fmt.Sprintf("LXD_DIR=%s LXD_CONF=%s lxc exec %s -- sh", h.lxd.Dir, p.dir, guestOf(machine))
	p.adapt(map[string]string{
		"10.0.0.5": "198.51.100.1", "--agents bin": "--agents " + p.agentsToServe(), "-f rack.yaml": "-f " + group,
		"ssh root@rack-7 sh": lxc,
	})
	p.write(0, group)
	p.began = time.Now()
	since := func(what string) { t.Logf("%s after %s", what, time.Since(p.began).Round(100*time.Millisecond)) }
	p.follow(p.steps)
	since("the page followed")

	// shows waits until the page's own command shows the machine so, and returns its instance.
	shows := func(health string) (one store.Instance) {
		t.Helper()
		p.eventually("the machine being "+health, func() bool {
			out, err := p.on("a", "leasehold", "instance", "list", "-g", "rack").Output()
			return err == nil && strings.Contains(string(out), health)
		})
		out, err := p.on("a", "leasehold", "instance", "list", "-g", "rack", "-o", "json").Output()
		var all []store.Instance
		if err == nil {
			err = json.Unmarshal(out, &all)
		}
		if err != nil || len(all) != 1 || all[0].Managed || all[0].Phase != store.Running {
			t.Fatalf("the machine that is %s: %v: %+v", health, err, all)
		}
		return all[0]
	}
	work := []string{"python3", "-m", "http.server", "8080"}
	joined := shows("healthy").ID
	if n := workloadsOf(work...); n != 1 {
		t.Errorf("%d workloads run", n)
	}
	if err := h.set(machine, "stop", true); err != nil {
		t.Fatal(err)
	}
	if lost := shows("SILENT").ID; lost != joined {
		t.Errorf("while it is off it is %s, and was %s", lost, joined)
	}
	since("switched off and lost")
	if err := h.set(machine, "start", false); err != nil {
		t.Fatal(err)
	}
	if back := shows("healthy").ID; back != joined {
		t.Errorf("it came back as %s, and was %s", back, joined)
	}
	since("back")

	gone := p.on("a", "leasehold", "instance", "delete", joined, "--confirm", joined)
	if out, err := gone.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.eventually("its agent confirming that its workload has stopped", func() bool {
		out, err := p.on("a", "leasehold", "instance", "list", "-g", "rack", "-o", "json").Output()
		return err == nil && strings.TrimSpace(string(out)) == "[]"
	})
	if n := workloadsOf(work...); n != 0 || h.state(machine) != "Running" {
		t.Errorf("%d workloads run on a machine that is %s", n, h.state(machine))
	}
	since("deleted")
}
