package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/faults/judge"
	"github.com/leasehold/leasehold/tests/stage"
)

// Heal ends all faults, and records that.
func (c *Cluster) Heal() {
	c.T.Helper()
	c.liftAll()
	c.Cloud.Heal()
	for _, d := range c.disks {
		c.must(errors.Join(d.Free(), d.MakeWritable()))
	}
	for _, h := range c.Hosts {
		h.Thaw()
		c.must(h.Start())
	}
	for i := range members {
		c.Member(i).Thaw()
		_ = c.Member(i).SetClock(0) // one that has ended starts with a correct clock
		c.must(c.RaiseMember(i))
	}
	for _, id := range c.ReplicaIDs() {
		c.Replica(id).Thaw()
		_ = c.Replica(id).SetClock(0)
		c.must(c.RaiseReplica(id))
	}
	c.must(c.insist(func(ctx context.Context) error { return c.ops.Disarm(ctx) }))
	c.Mark(history.Mark{What: history.Healed, Groups: c.Wanted()})
}

func (c *Cluster) must(err error) {
	c.T.Helper()
	if err != nil {
		c.T.Fatal(err)
	}
}

// still is how long nothing may change before it counts as quiet.
const still = 3 * time.Second

// AwaitQuiet waits until every group is complete, every record has a machine and every machine a
// record, and that lasts. Otherwise it returns what is missing.
func (c *Cluster) AwaitQuiet(within time.Duration) (missing string) {
	c.T.Helper()
	late := time.NewTimer(within)
	defer late.Stop()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	since, last := time.Now(), ""
	for {
		missing := c.unrest()
		if missing != last || missing != "" {
			since, last = time.Now(), missing
		}
		if time.Since(since) >= still {
			if missing = c.quiet(); missing == "" {
				return ""
			}
		}
		select {
		case <-late.C:
			return missing
		case <-again.C:
		}
	}
}

// quiet records that moment, unless it has passed while the test looked: then it returns what is
// missing. Members that are slow to list their leases, because many clusters share a processor, are
// asked again later.
func (c *Cluster) quiet() (missing string) {
	c.T.Helper()
	var leases map[string][]string
	err := c.Patiently(func(ctx context.Context) (err error) {
		if leases, err = c.Witness.Leases(ctx); err != nil {
			return err
		}
		return c.Witness.Settle(ctx)
	})
	if err != nil {
		return "etcd does not tell what there is: " + err.Error()
	}
	if missing := c.unrest(); missing != "" {
		return missing
	}
	c.Mark(history.Mark{What: history.Quiet, Groups: c.Wanted(), Machines: c.Cloud.Existing(), Leases: leases})
	return ""
}

// unrest returns what is not as it should be in the end; "" if nothing.
func (c *Cluster) unrest() string {
	if missing := c.leaderless(); missing != "" {
		return missing // the status is outdated
	}
	if name := c.complete(); name != "" {
		return "group " + name + " is not complete"
	}
	var recorded []string
	for id, in := range stage.Records[store.Instance](c.Stage, store.KindInstances) {
		if in.Record.Phase == store.Deleting || in.Record.Phase == store.Draining {
			return id + " is " + string(in.Record.Phase)
		}
		recorded = append(recorded, id)
	}
	if up := c.Cloud.Running(); !slices.Equal(up, c.Cloud.Existing()) {
		return fmt.Sprintf("of machines %v only %v run", c.Cloud.Existing(), up)
	}
	slices.Sort(recorded)
	if there := c.Cloud.Existing(); !slices.Equal(there, recorded) {
		return fmt.Sprintf("there are machines %v and records %v", there, recorded)
	}
	specs := stage.Records[store.Group](c.Stage, store.KindGroups)
	for name, st := range stage.Records[store.Status](c.Stage, store.KindStatus) {
		_, wanted := c.Wanted()[name]
		switch {
		case wanted && st.Record.Outdated > 0:
			return fmt.Sprintf("%d of group %s are outdated", st.Record.Outdated, name)
		case wanted && st.Record.AcceptedRevision != specs[name].Modified:
			return fmt.Sprintf("the spec of group %s is of revision %d, and its leader goes by revision %d", name,
				specs[name].Modified, st.Record.AcceptedRevision)
		}
	}
	if hold := c.Hold(); hold != "" {
		return "the shard is on hold: " + hold
	}
	return c.served()
}

// leaderless returns why no replica leads; "" if one does. After etcd was without a quorum, the
// leader's key may be of a session that its replica has given up.
func (c *Cluster) leaderless() string {
	leaders := stage.Records[store.Leader](c.Stage, store.KindLeader)
	var first store.Versioned[store.Leader]
	for _, candidate := range leaders {
		if first.Created == 0 || candidate.Created < first.Created {
			first = candidate
		}
	}
	switch replica := stage.Records[store.Replica](c.Stage, store.KindReplicas)[first.Record.Replica]; {
	case first.Created == 0:
		return "no replica stands for election"
	case replica.Lease != first.Lease:
		return "replica " + first.Record.Replica + " leads by a session that has ended"
	}
	return ""
}

// Hold returns why the shard is on hold; "" if it is not.
func (c *Cluster) Hold() string {
	c.T.Helper()
	var kv store.KV
	c.must(c.Patiently(func(ctx context.Context) (err error) {
		kv, err = c.Store.Get(ctx, c.Keys.Shard())
		return err
	}))
	shard, err := store.Decode[store.Shard](kv)
	c.must(err)
	if shard.Record.Hold == nil {
		return ""
	}
	return shard.Record.Hold.Why
}

// End stops every replica in order, then the machines, and records what was left behind.
func (c *Cluster) End() {
	c.T.Helper()
	for _, left := range c.stopHosts() {
		c.leftBehind(left)
	}
	for _, id := range c.ReplicaIDs() {
		c.Replica(id).Terminate()
	}
	late := time.After(stage.Longest)
	for _, id := range c.ReplicaIDs() {
		select {
		case <-c.Replica(id).Ended():
		case <-late:
			c.leftBehind("replica " + id + " was told to end, and runs on")
		}
	}
	if err := c.Cloud.Close(); err != nil {
		c.leftBehind(err.Error())
	}
	for _, failure := range c.Cloud.Failures() {
		c.leftBehind(failure)
	}
	if n := c.Net.Held(); n > 0 {
		c.leftBehind(fmt.Sprintf("%d connections", n))
	}
	if keys := c.searchKeys(); keys == 0 && len(c.Served()) > 0 {
		c.T.Error("no private key was seen on any machine, and so none was looked for")
	}
}

func (c *Cluster) leftBehind(what string) { c.Log.Add(history.Event{Left: &history.Left{What: what}}) }

// Bound is how long everything may take to be complete again after all faults. It is no measure of
// speed.
const Bound = stage.Longest

// Verdict lets the judge examine the history, and fails the test if it finds a violation.
func (c *Cluster) Verdict() []judge.Violation {
	c.T.Helper()
	events, err := c.History()
	c.must(err)
	found := judge.Judge(events, judge.Terms{
		Interval: c.Interval, LeaseTTL: c.TTL, Bound: Bound, Certificate: CertificateLife,
	})
	if len(found) > 0 {
		text := judge.Tell(found)
		_ = os.WriteFile(filepath.Join(c.Dir, "verdict"), []byte(text), 0o600) // shown as well
		c.T.Errorf("the judge found %d violations in %d events:\n%s", len(found), len(events), strings.TrimSpace(text))
	}
	return found
}

// keep saves a snapshot of etcd if the run has failed. Everything else is in files already.
func (c *Cluster) keep() {
	if !c.T.Failed() {
		return
	}
	c.liftAll()
	for i := range members {
		c.Member(i).Thaw()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.ops.Save(ctx, 0, filepath.Join(c.Dir, "etcd.snapshot")); err != nil {
		c.T.Logf("no snapshot of etcd: %v", err)
	}
}

// leave stops everything that is not a process of the stage.
func (c *Cluster) leave() {
	c.stop()
	<-c.stopped
	if err := c.Cloud.Close(); err != nil {
		c.T.Error(err)
	}
	c.Net.Close()
	for _, d := range c.disks {
		if err := d.Close(); err != nil {
			c.T.Error(err)
		}
	}
	if err := c.Log.Close(); err != nil {
		c.T.Error(err)
	}
}

// Begin records that everything is running and that what comes now is intended.
func (c *Cluster) Begin() { c.Mark(history.Mark{What: history.Begun, Groups: c.Wanted()}) }

// Finish ends a run: all faults end, everything becomes quiet, all processes stop, and the judge
// decides.
func (c *Cluster) Finish() {
	c.T.Helper()
	c.Heal()
	began := time.Now()
	if missing := c.AwaitQuiet(Bound); missing != "" {
		c.T.Errorf("%s after all troubles were over: %s", Bound, missing)
	} else {
		c.Say("quiet %s after all troubles were over", time.Since(began).Round(100*time.Millisecond))
	}
	c.End()
	c.Verdict()
}
