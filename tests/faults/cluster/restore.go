package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/etcdops"
)

// SaveSnapshot saves a snapshot of etcd, and returns its path.
func (c *Cluster) SaveSnapshot(ctx context.Context) (path string, err error) {
	c.mu.Lock()
	c.snapshots++
	path = filepath.Join(c.Dir, fmt.Sprintf("saved-%d.snapshot", c.snapshots))
	c.mu.Unlock()
	return path, c.ops.Save(ctx, 0, path)
}

// RestoreSnapshot stops all members, replaces their data by the snapshot, and starts them.
func (c *Cluster) RestoreSnapshot(path string) error {
	return c.replaceData(func(members []etcdops.Data) error { return etcdops.Restore(path, "", members) })
}

// EmptyEtcd stops all members, removes their data, and starts them.
func (c *Cluster) EmptyEtcd() error { return c.replaceData(etcdops.Empty) }

// replaceData stops all members, replaces their data, starts them, and returns when they serve.
func (c *Cluster) replaceData(replace func([]etcdops.Data) error) error {
	var data []etcdops.Data
	for i, m := range c.ops {
		if c.cfg.Servers {
			h := c.Hosts[i]
			h.PowerOff()
			data = append(data, etcdops.Data{Name: h.ID, Dir: filepath.Join(h.Dir, "etcd"), Peer: "https://" + h.Peers})
			continue
		}
		c.Member(i).Kill()
		data = append(data, etcdops.Data{Name: m.Name, Dir: c.Data(i), Peer: "http://" + c.Peers[i]})
	}
	if err := replace(data); err != nil {
		return err
	}
	for i := range members {
		if err := c.RaiseMember(i); err != nil {
			return err
		}
	}
	for _, h := range c.Hosts {
		if err := h.Start(); err != nil {
			return err
		}
	}
	return c.insist(func(ctx context.Context) error {
		_, err := c.Store.List(ctx, c.Keys.Of(store.KindLeader), 0)
		return err
	})
}

// EverybodysClock advances the wall clocks of all programs.
func (c *Cluster) EverybodysClock(by time.Duration) error {
	for i := range members {
		if err := c.Member(i).SetClock(by); err != nil {
			return err
		}
	}
	for _, id := range c.ReplicaIDs() {
		if err := c.Replica(id).SetClock(by); err != nil {
			return err
		}
	}
	for _, id := range c.Cloud.Running() {
		if err := c.Cloud.SetClock(id, by); err != nil {
			return err
		}
	}
	return nil
}

// WipeMember removes the data of a member of etcd, and adds it to the cluster again without any.
func (c *Cluster) WipeMember(ctx context.Context, i int) error {
	c.Member(i).Kill()
	if err := os.RemoveAll(c.Data(i)); err != nil {
		return err
	}
	cluster, err := c.ops.Readmit(ctx, i)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.JoinMember(i, cluster)
	return nil
}

// Ops returns the members for administration.
func (c *Cluster) Ops() etcdops.Etcd { return c.ops }
