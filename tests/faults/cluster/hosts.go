package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold/tests/faults/network"
	"github.com/leasehold/leasehold/tests/stage"
)

// hostWays opens the ways to a host of leasehold server. Its replica and its member are two
// parties, as they are elsewhere; what one has for the other does not leave the host, so that no
// rule concerns it.
func (c *Cluster) hostWays(i int, id string, ports [3]string, listens, found string) {
	c.test.Helper()
	member := fmt.Sprintf("m%d", i)
	for ip, party := range map[string]string{stage.MemberSource(i): member, stage.HostSource(i): id} {
		if err := c.Net.Name(ip, party); err != nil {
			c.test.Fatal(err)
		}
	}
	for n, to := range []string{id, member, member} {
		if _, err := c.Net.Listen(network.Way{
			To: to, At: net.JoinHostPort(found, ports[n]), Leads: net.JoinHostPort(listens, ports[n]),
		}); err != nil {
			c.test.Fatal(err)
		}
	}
}

// Host returns a host of leasehold server.
func (c *Cluster) Host(i int) *stage.Host { return c.Hosts[i] }

// LoseHost takes a host away for good, with its disk.
func (c *Cluster) LoseHost(i int) error {
	h := c.Hosts[i]
	h.PowerOff()
	entries, err := os.ReadDir(h.Dir)
	mounted := filepath.Join(h.Dir, "replica") // it cannot be removed, so it is emptied
	for _, e := range entries {
		if path := filepath.Join(h.Dir, e.Name()); path != mounted || c.disks[h.ID] == nil {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if d := c.disks[h.ID]; d != nil {
		err = errors.Join(err, d.Empty())
	}
	return err
}

// ReplaceHost has a host that was lost join again, by the command of another one.
func (c *Cluster) ReplaceHost(i int) error {
	return c.Patiently(func(ctx context.Context) error {
		for {
			attempt, cancel := context.WithTimeout(ctx, time.Minute)
			err := c.Stage.ReplaceHost(attempt, c.Hosts[i], c.Hosts[(i+1)%len(c.Hosts)])
			cancel()
			if err == nil || ctx.Err() != nil {
				return err
			}
			c.Say("host %s is not replaced yet: %v", c.Hosts[i].ID, err)
			if err := c.LoseHost(i); err != nil {
				return err
			}
			c.Pass(time.Second)
		}
	})
}

// stopHosts ends all hosts in order, and returns what was left of them.
func (c *Cluster) stopHosts() (left []string) {
	failures := make([]error, len(c.Hosts))
	var all sync.WaitGroup
	for i, h := range c.Hosts {
		all.Go(func() { failures[i] = h.Stop() })
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			left = append(left, err.Error())
		}
	}
	return left
}
