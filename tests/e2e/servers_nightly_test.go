//go:build nightly

package e2e

import (
	"path/filepath"
	"sync"
	"testing"
)

// A cluster grows from one host to five and shrinks to one again, while settings are written all
// the time. With five, two may be down. No write is refused, and no instance is replaced.
//
// proves DAY-1, SAFE-15
func TestServersFromOneToFiveAndBack(t *testing.T) {
	t.Parallel()
	c := newHosts(t)
	three := c.three()
	a := three[0]
	c.must("group", "apply", "-f", c.groupFile("web", 2))
	c.await("the group", func() bool { return c.h.complete("web", 2) })
	ids := c.h.wanted("web")
	c.settings = "LEASEHOLD_CONFIG=" + filepath.Join(a.dir, "config.yaml")

	var load sync.WaitGroup
	over := make(chan struct{})
	writes := 0
	load.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			p := c.cli("config", "set", "provider_poll="+[]string{"1s", "2s"}[i%2], "--timeout", "30s")
			if p.ExitCode() != 0 {
				t.Errorf("a write: exit %d: %s", p.ExitCode(), p.stderr.String())
			}
			writes++
		}
	})
	var added []*serverHost
	for _, name := range []string{"d", "e"} {
		h := c.host(name)
		c.begin(h, c.joinCommand(c.must("server", "add", name, "--data-dir", a.dir), name)...)
		added = append(added, h)
	}
	if got := c.list(a); got != "a member, b member, c member, d member, e member" {
		t.Errorf("of five: %s", got)
	}
	complains(t, c.cli("server", "add", "f", "--data-dir", a.dir), 1, "the cluster has 5 members, which is the most")

	c.end(three[1])
	c.end(added[1])
	c.same("web", ids)
	complains(t, c.cli("server", "remove", "c", "--confirm", "c", "--data-dir", a.dir), 1,
		"without it there would be no quorum")
	c.begin(three[1])
	c.begin(added[1])

	for _, gone := range []*serverHost{added[1], three[1], added[0], three[2]} {
		c.must("server", "remove", gone.name, "--confirm", gone.name, "--data-dir", a.dir)
		c.waitEnd(gone.run)
		gone.run = nil
		c.same("web", ids)
	}
	close(over)
	load.Wait()
	t.Logf("%d settings were written meanwhile", writes)
	if got := c.list(a); got != "a member" {
		t.Errorf("at the end: %s", got)
	}
	c.heals(ids)
}
