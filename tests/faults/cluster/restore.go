package cluster

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/tests/faults/etcdops"
)

// SaveSnapshot saves all that etcd has, and says where.
func (c *Cluster) SaveSnapshot(ctx context.Context) (path string, err error) {
	path = filepath.Join(c.Dir, "saved.snapshot")
	return path, c.ops.Save(ctx, 0, path)
}

// RestoreSnapshot ends all members, has their data be what was saved, and starts them.
func (c *Cluster) RestoreSnapshot(path string) error {
	var data []etcdops.Data
	for i, m := range c.ops {
		c.Member(i).Kill()
		data = append(data, etcdops.Data{Name: m.Name, Dir: c.Data(i), Peer: "http://" + c.Peers[i]})
	}
	if err := etcdops.Restore(path, "", data); err != nil {
		return err
	}
	for i := range c.Etcd {
		if err := c.RaiseMember(i); err != nil {
			return err
		}
	}
	for i := range c.Etcd {
		c.AwaitReady(c.Member(i))
	}
	return nil
}

// EverybodysClock moves the wall clocks of all programs: so much time has passed since whatever was before.
func (c *Cluster) EverybodysClock(by time.Duration) error {
	for i := range c.Etcd {
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

// WipeMember has a member of etcd lose its data, and be taken in again without any.
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

// Ops are the members as who administers etcd reaches them.
func (c *Cluster) Ops() etcdops.Etcd { return c.ops }
