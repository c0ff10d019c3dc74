//go:build nightly

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
)

// compute stands in for the hypervisors under a real Nova, whose fake driver boots nothing: each
// server has a guest as long as it is there, and Nova learns that a guest has ended.
type compute struct {
	*cloudHost
	cloud  *openstacktest.Real
	booted map[string]bool // servers whose guest has been started
	busy   map[string]bool // servers whose guest is being changed
	mu     sync.Mutex
	work   sync.WaitGroup
}

func newCompute(t *testing.T, h *cloudHost, cloud *openstacktest.Real) *compute {
	c := &compute{cloudHost: h, cloud: cloud, booted: map[string]bool{}, busy: map[string]bool{}}
	stop := make(chan struct{})
	c.work.Go(func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				c.look()
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		c.work.Wait()
		for _, server := range c.guests() {
			if err := c.remove(server); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// look compares Nova's servers with the guests.
func (c *compute) look() {
	servers, err := c.cloud.Servers()
	if err != nil {
		c.t.Errorf("Nova's servers: %v", err)
		return
	}
	there := map[string]bool{}
	for _, s := range servers {
		there[s.ID] = true
		if s.Task != nil {
			continue // Nova is at work on it
		}
		switch state := c.state(s.ID); {
		case s.Status == "ACTIVE" && !c.has(s.ID):
			c.change(s.ID, func() error { return c.boot(s.ID, s.UserData) })
		case s.Status == "ACTIVE" && state == "Stopped":
			c.change(s.ID, func() error { return c.cloud.PowerOff(s.ID) })
		case s.Status == "SHUTOFF" && state == "Running":
			c.change(s.ID, func() error { return c.end(s.ID) })
		}
	}
	for _, server := range c.guests() {
		if !there[server] {
			c.change(server, func() error { return c.remove(server) })
		}
	}
}

func (c *compute) has(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.booted[server]
}

// change does one thing to a guest, beside what is done to others.
func (c *compute) change(server string, do func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[server] {
		return
	}
	c.busy[server], c.booted[server] = true, true
	c.work.Go(func() {
		err := do()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.busy, server)
		if err != nil {
			c.t.Errorf("guest of server %s: %v", server, err)
		}
	})
}

// serverOf is the server of an instance.
func (c *compute) serverOf(instance string) string {
	c.t.Helper()
	servers, err := c.cloud.Servers()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range servers {
		if s.Metadata["leasehold_instance"] == instance {
			return s.ID
		}
	}
	c.t.Fatalf("Nova has no server of %s", instance)
	return ""
}

// A newcomer has a project on a real Keystone, Glance, Placement and Nova, and the page alone. They
// choose from what the cloud has, make a credential, start a coordinator and apply a group. Each
// server's guest runs Debian's own cloud-init with the server's user data, by which it fetches the
// agent. Then a guest crashes, one hangs, and a server is deleted behind Leasehold's back.
//
// proves PROV-5, PROV-7, PROV-8, SEC-6
func TestFromOpenStacksPageToAHealingGroup(t *testing.T) {
	began := time.Now()
	cloud, err := openstacktest.StartReal()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("OpenStack is there after %s", time.Since(began).Round(time.Second))
	t.Cleanup(func() {
		if err := cloud.Stop(); err != nil {
			t.Error(err)
		}
	})
	p := newCloudPage(t, "openstack")
	c := newCompute(t, newCloudHost(t, p.guideHosts), cloud)
	if err := cloud.Expose(cloudAddress); err != nil {
		t.Fatal(err)
	}
	p.openstackClient()
	providers, group := filepath.Join(p.dir, "providers.yaml"), filepath.Join(p.dir, "web.yaml")
	p.adapt(map[string]string{
		"https://cloud.example":         "http://cloud.example",
		"/etc/leasehold/providers.yaml": providers,
		"-f web.yaml":                   "-f " + group,
		"10.0.0.5":                      "198.51.100.1",
		"--agents bin":                  "--agents " + p.agentsToServe(),
		"availability_zone: az-1, networks: [machines]": "availability_zone: nova",
		"\nworkload: {run: [python3": "\ntemplate: {settings: {networks: []}} # a Nova without Neutron" +
			"\nworkload: {run: [python3",
	})
	p.began = time.Now()
	p.follow(p.upTo("openstack application credential"))
	made := p.steps[0]
	p.steps = p.steps[1:]
	// The cloud is kept between runs, and so is the credential of the one before.
	_ = p.on("a", "openstack", "application", "credential", "delete", "leasehold").Run()
	out, err := p.on("a", "sh", "-c", made.command).CombinedOutput()
	if err != nil {
		t.Fatalf("$ %s: %v: %s", made.command, err, out)
	}
	field := func(name string) string {
		m := regexp.MustCompile(`(?m)^\| ` + name + ` +\| (\S+)`).FindSubmatch(out)
		if m == nil {
			t.Fatalf("no %s in:\n%s", name, out)
		}
		return string(m[1])
	}
	p.adapt(map[string]string{
		"3f2a8c51d9e04b0f9d0a54cf7f2f6f10": field("id"),
		"leasehold secret set openstack":   "printf %s '" + field("secret") + "' | leasehold secret set openstack",
	})
	p.write(0, providers)
	p.write(1, group)
	p.follow(p.upTo("leasehold group apply"))
	p.applied()

	p.heals("crashed", "DET-4", func(id string) { c.crash(c.serverOf(id)) })
	p.heals("hung", "HEAL-2", func(id string) { c.freeze(c.serverOf(id)) })
	p.heals("deleted in the cloud", "DET-4", func(id string) {
		if out, err := p.on("a", "openstack", "server", "delete", "ls-"+id).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	p.ends(func() []string {
		servers, err := cloud.Servers()
		if err != nil {
			t.Fatal(err)
		}
		out := c.guests()
		for _, s := range servers {
			out = append(out, "server "+s.Name)
		}
		return out
	})
}

// openstackClient gives the newcomer the command openstack, with the user of the project.
func (p *cloudPage) openstackClient() {
	p.t.Helper()
	cache := os.Getenv("LEASEHOLD_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			p.t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "leasehold")
	}
	root := filepath.Join(cache, "openstack-zed", "root")
	script := fmt.Sprintf(`#!/bin/sh
mount --bind /etc/hosts %[1]s/etc/hosts
exec chroot %[1]s env OS_AUTH_URL=http://%[2]s:5000/v3 OS_USERNAME=leasehold OS_PASSWORD=hunter2 \
	OS_PROJECT_NAME=machines OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default \
	OS_IDENTITY_API_VERSION=3 LC_ALL=C.UTF-8 openstack "$@"
`, root, openstacktest.CatalogHost)
	if err := os.WriteFile(filepath.Join(built, "openstack"), []byte(script), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if out, err := exec.Command("test", "-x", filepath.Join(root, "usr/bin/openstack")).CombinedOutput(); err != nil {
		p.t.Fatalf("no command openstack in %s: %v: %s", root, err, out)
	}
}
