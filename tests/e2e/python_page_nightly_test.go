//go:build nightly

package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// A newcomer has an LXD, the page of a provider of their own, and the example in Python. They make
// a network and an image, test the program, keep a group with it, end a container and freeze
// another one, and remove the group. The page says what each command prints. The workload is a
// program that waits, instead of a web server that this host may not have.
//
// proves PROV-1, PROV-2, DET-4, DET-7
func TestFromThePythonExampleToAHealingGroup(t *testing.T) {
	lxd := useLXD(t)
	wait, err := lxdtest.BuildInit(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs("../../docs/providers/examples/lxd.py")
	if err != nil {
		t.Fatal(err)
	}
	l := newLaptop(t)
	_, port, err := net.SplitHostPort(l.address())
	if err != nil {
		t.Fatal(err)
	}
	page := sectionOf(t, "providers/exec.md", "### Containers, in Python", map[string]string{
		"/opt/leasehold/docs/providers/examples/lxd.py": example,
		"/opt/leasehold/bin/leasehold-agent":            bin("leasehold-agent"),
		"$ lxc ":                                        "$ LXD_DIR=" + lxd.Dir + " LXD_CONF=" + l.dir + " lxc ",
		"/var/lib/lxd/unix.socket":                      lxd.Socket(),
		"'[fd42:ac3e::1]:7420'":                         "[fd42:ac3e::1]:" + port,
		"--alias agent":                                 "--alias newcomer", // tests share this LXD
		"image: agent":                                  "image: newcomer",
		"cp /bin/busybox":                               "cp " + wait,
		`[/bin/busybox, httpd, -f, -p, "8080"]`:         "[/bin/busybox]",
		"checks: [{tcp: {port: 8080}}]\n":               "",
	})
	for name, text := range page.files {
		l.file(name, text)
	}
	began := time.Now()
	r := l.reader("web")
	r.carryOut(page.upTo(t, "leasehold dev"))
	t.Logf("tested after %s", time.Since(began).Round(100*time.Millisecond))
	l.startDev(strings.Fields(page.steps[0].command)[2:]...)
	l.await("the settings of dev", func() bool { return strings.Contains(l.dev.stdout.String(), "ready ") })
	l.follow()
	l.await("the group", func() bool { return l.h.complete("web", 2) })
	t.Logf("two healthy machines after %s", time.Since(began).Round(100*time.Millisecond))
	page.steps = page.steps[1:]
	r.carryOut(page.upTo(t, "leasehold group delete"))
	l.await("the group being healed", func() bool { return l.h.complete("web", 2) })
	t.Logf("healed after %s", time.Since(began).Round(100*time.Millisecond))
	r.carryOut(page.steps)
	left, err := r.run(page.steps[len(page.steps)-1].command)
	if err != nil || strings.TrimSpace(left) != "" {
		t.Errorf("containers are left: %q, %v", left, err)
	}
	l.quit()
}
