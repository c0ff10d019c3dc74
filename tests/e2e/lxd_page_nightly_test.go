//go:build nightly

package e2e

import (
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// A newcomer has an LXD and its page. They make a network and an image, try one machine, keep a
// group of three, end a container and freeze another one, and remove the group.
//
// proves PROV-1, PROV-8, DET-4, DET-7
func TestFromLXDsPageToAHealingGroup(t *testing.T) {
	lxdPage{
		page: "providers/lxd.md", heading: "## Try it on one host", host: "[fd42:1ea5:7::1]", size: 3,
	}.heals(t)
}

// lxdPage is a section of docs/ by which a reader who has an LXD keeps a group.
type lxdPage struct {
	page, heading string
	host          string            // the address of the host in the section's network
	size          int               // of the group
	edits         map[string]string // besides the edits of every such section
}

// heals carries the section out on the LXD that tests share. The section says what each command
// prints. The workload is a program that waits, instead of a web server that this host may not
// have.
func (p lxdPage) heals(t *testing.T) {
	t.Helper()
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
	edits := map[string]string{
		"/opt/leasehold/bin/leasehold-agent":    bin("leasehold-agent"),
		"$ lxc ":                                "$ LXD_DIR=" + lxd.Dir + " LXD_CONF=" + l.dir + " lxc ",
		"/var/lib/lxd/unix.socket":              lxd.Socket(),
		fmt.Sprintf("'%s:7420'", p.host):        p.host + ":" + port,
		"cp /bin/busybox":                       "cp " + wait,
		`[/bin/busybox, httpd, -f, -p, "8080"]`: "[/bin/busybox]",
		"checks: [{tcp: {port: 8080}}]\n":       "",
	}
	maps.Copy(edits, p.edits)
	page := sectionOf(t, p.page, p.heading, edits)
	for name, text := range page.files {
		l.file(name, text)
	}
	began := time.Now()
	after := func(what string) { t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond)) }
	r := l.reader("web")
	r.carryOut(page.upTo(t, "leasehold dev"))
	after("the provider was tested")
	l.startDev(strings.Fields(page.steps[0].command)[2:]...)
	l.await("the settings of dev", func() bool { return strings.Contains(l.dev.stdout.String(), "ready ") })
	l.follow()
	l.await("the group", func() bool { return l.h.complete("web", p.size) })
	after("all machines were healthy")
	page.steps = page.steps[1:]
	r.carryOut(page.upTo(t, "leasehold group delete"))
	l.await("the group being healed", func() bool { return l.h.complete("web", p.size) })
	after("the group was healed")
	r.carryOut(page.steps)
	left, err := r.run(page.steps[len(page.steps)-1].command)
	if err != nil || strings.TrimSpace(left) != "" {
		t.Errorf("containers are left: %q, %v", left, err)
	}
	l.quit()
}
