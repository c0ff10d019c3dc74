//go:build nightly

package e2e

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// A newcomer has an LXD and its page. They make a network and an image, try one machine, keep a
// group of three, end a container and freeze another one, and remove the group. The page says what
// each command prints. The workload is a program that waits, instead of a web server that this host
// may not have.
//
// proves PROV-1, PROV-8, DET-4, DET-7
func TestFromLXDsPageToAHealingGroup(t *testing.T) {
	lxd := useLXD(t)
	wait, err := lxdtest.BuildInit(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := newLaptop(t)
	_, port, err := net.SplitHostPort(l.address())
	if err != nil {
		t.Fatal(err)
	}
	page := sectionOf(t, "providers/lxd.md", "## Try it on one host", map[string]string{
		"/opt/leasehold/bin/leasehold-agent":    bin("leasehold-agent"),
		"$ lxc ":                                "$ LXD_DIR=" + lxd.Dir + " LXD_CONF=" + l.dir + " lxc ",
		"/var/lib/lxd/unix.socket":              lxd.Socket(),
		"'[fd42:1ea5:7::1]:7420'":               "[fd42:1ea5:7::1]:" + port,
		"cp /bin/busybox":                       "cp " + wait,
		`[/bin/busybox, httpd, -f, -p, "8080"]`: "[/bin/busybox]",
		"checks: [{tcp: {port: 8080}}]\n":       "",
	})
	for name, text := range page.files {
		l.file(name, text)
	}
	began := time.Now()
	r := l.reader("web")
	r.carryOut(page.upTo(t, "leasehold dev"))
	t.Logf("one machine was tried after %s", time.Since(began).Round(100*time.Millisecond))
	l.startDev(strings.Fields(page.steps[0].command)[2:]...)
	l.await("the settings of dev", func() bool { return strings.Contains(l.dev.stdout.String(), "ready ") })
	l.follow()
	l.await("the group", func() bool { return l.h.complete("web", 3) })
	t.Logf("three healthy machines after %s", time.Since(began).Round(100*time.Millisecond))
	page.steps = page.steps[1:]
	r.carryOut(page.upTo(t, "leasehold group delete"))
	l.await("the group being healed", func() bool { return l.h.complete("web", 3) })
	t.Logf("healed after %s", time.Since(began).Round(100*time.Millisecond))
	r.carryOut(page.steps)
	left, err := r.run(page.steps[len(page.steps)-1].command)
	if err != nil || strings.TrimSpace(left) != "" {
		t.Errorf("containers are left: %q, %v", left, err)
	}
	l.quit()
}
