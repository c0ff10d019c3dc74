package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/machines"
)

// The timing of a cluster, as short as allowed.
const (
	interval   = time.Second
	leaseTTL   = 5 * time.Second
	reconnect  = 2 * time.Second
	sessionTTL = 5 * time.Second
	grace      = leaseTTL + reconnect // SAFE-1
)

// cluster is an etcd, replicas of a coordinator and their machines, each in a process of its own.
type cluster struct {
	*world
	etcd     *program
	replicas map[string]*program
	listen   map[string]string // listening address of each replica
	options  []string          // more arguments of the replicas that are started
}

// newCluster starts etcd and one replica for each name, and waits for a leader.
func newCluster(t *testing.T, replicas ...string) *cluster {
	t.Helper()
	c := &cluster{world: newWorld(t, "machines"), replicas: map[string]*program{}, listen: map[string]string{}}
	c.startEtcd()
	c.follow()
	settings := store.DefaultShardSettings()
	settings.ReconnectMax, settings.ProviderPoll = store.Duration(reconnect), store.Duration(time.Second)
	c.put(c.h.keys.Shard(), store.Encode(store.Shard{
		Schema: store.Schema, ID: "e2e-" + strings.ToLower(rand.Text()[:10]), Name: "default",
		Created: time.Now().UTC(), Settings: settings,
	}))
	// The agent of these machines, which stops itself at its start while a file called hold exists.
	script := fmt.Sprintf("#!/bin/sh\n[ -e %q ] && kill -STOP $$\nexec %q \"$@\"\n", c.holdFile(),
		bin("leasehold-agent"))
	if err := os.WriteFile(c.agentScript(), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, id := range replicas {
		c.startReplica(id)
	}
	if len(replicas) > 0 {
		c.await("a leader", func() bool {
			return c.h.leader() != "" && len(currentOf[store.Replica](c.h, store.KindReplicas)) == len(replicas)
		})
	}
	return c
}

func (c *cluster) agentScript() string { return filepath.Join(c.dir, "agent.sh") }
func (c *cluster) holdFile() string    { return filepath.Join(c.dir, "hold") }

// holdNewborn makes the agents of new machines stop before they do anything, until they get
// SIGCONT.
func (c *cluster) holdNewborn() {
	c.t.Helper()
	if err := os.WriteFile(c.holdFile(), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// startEtcd starts etcd on its existing data.
func (c *cluster) startEtcd() {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := c.command(self)
	cmd.Env = append(cmd.Env, envEtcd+"="+filepath.Join(c.dir, "etcd")+"="+c.endpoint)
	c.etcd = c.start("etcd", cmd)
	c.await("etcd", func() bool {
		if c.etcd.HasEnded() {
			c.t.Fatalf("etcd ended: %s", c.etcd.stderr.String())
		}
		return strings.HasPrefix(c.etcd.stdout.String(), "ready")
	})
}

// startReplica starts a coordinator, at its previous address if it ran before.
func (c *cluster) startReplica(id string) {
	c.t.Helper()
	if c.listen[id] == "" {
		c.listen[id] = addresses.FreeAddress(c.t)
	}
	args := append([]string{
		"coordinator", "--id", id, "--listen", c.listen[id], "--machines", c.machines,
		"--state-dir", filepath.Join(c.dir, "known-"+id), "--agent", c.agentScript(), "--session-ttl",
		sessionTTL.String(), "--http", "off", "--log-level", "debug",
	}, c.options...)
	c.replicas[id] = c.start(id, c.command(bin("leasehold"), args...))
}

// put writes a key, as an operator with etcdctl would.
func (c *cluster) put(key string, value []byte) store.Revision {
	c.t.Helper()
	rev, err := c.st.Commit(c.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, value)}})
	if err != nil {
		c.t.Fatal(err)
	}
	return rev
}

// groupFile writes the file of a group. more are further lines of it.
func (w *world) groupFile(name string, size int, more ...string) string {
	w.t.Helper()
	text := fmt.Sprintf("name: %s\nsize: %d\nprovider: process\nworkload: {run: [sleep, \"100000\"]}\nreport: {interval: "+
		"%s, lease_ttl: %s}\nstop_timeout: 2s\n%s",
		name, size, interval, leaseTTL, strings.Join(append(more, ""), "\n"))
	file := filepath.Join(w.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// apply creates a group and waits until it is complete.
func (c *cluster) apply(name string, size int, more ...string) []string {
	c.t.Helper()
	c.must("group", "apply", "-f", c.groupFile(name, size, more...), "--wait")
	c.awaitComplete(name, size)
	return c.h.wanted(name)
}

func (c *cluster) awaitComplete(group string, size int) time.Duration {
	c.t.Helper()
	return c.await(fmt.Sprintf("%s with %d of %d", group, size, size), func() bool { return c.h.complete(group, size) })
}

// awaitLeader waits until one of these replicas leads that had not led up to a revision, and
// returns the journal entry about that.
func (c *cluster) awaitLeader(after store.Revision, among ...string) noted {
	c.t.Helper()
	return c.awaitEntry("another leader", after,
		func(n noted) bool { return n.Rule == "ELECT-1" && slices.Contains(among, n.By) })
}

// unreplaced fails if any other instance was ever recorded, or if one of these is not as it was.
func (c *cluster) unreplaced(group string, ids []string) {
	c.t.Helper()
	c.caughtUp()
	if ever := c.h.everRecorded(); !slices.Equal(ever, ids) {
		c.t.Fatalf("replaced: there were %v, and by now %v", ids, ever)
	}
	for _, ch := range c.h.changesOf(store.KindInstances, 0) {
		v, err := store.Decode[store.Instance](ch.KV)
		if ch.Deleted || err != nil || v.Record.Phase == store.Deleting {
			c.t.Fatalf("instance %s was removed at rev %d: %v", ch.name, ch.KV.Modified, err)
		}
	}
	if !slices.Equal(c.h.ids(group), ids) {
		c.t.Fatalf("group %s has %v, and had %v", group, c.h.ids(group), ids)
	}
}

// heals shows that the cluster works: an agent is killed, and its instance is replaced.
func (c *cluster) heals(group string, size int) {
	c.t.Helper()
	before := c.caughtUp()
	victim := c.h.wanted(group)[0]
	c.signalAgent(victim, syscall.SIGKILL)
	c.awaitEntry("the replacement of "+victim, before,
		func(n noted) bool { return n.Rule == "DET-4" && n.Instance == victim && n.To == store.Deleting })
	c.awaitComplete(group, size)
	if slices.Contains(c.h.wanted(group), victim) {
		c.t.Fatalf("%s is still wanted", victim)
	}
}

// leaseLeft returns the remaining time of an instance's lease according to etcd, rounded down.
func (c *cluster) leaseLeft(id string) time.Duration {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{c.endpoint}, DialTimeout: longest,
		Logger: zap.NewNop(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), longest)
	defer cancel()
	left, err := client.TimeToLive(ctx, clientv3.LeaseID(c.h.alive(id).Lease))
	if err != nil {
		c.t.Fatal(err)
	}
	return time.Duration(left.TTL) * time.Second
}

// held reports whether the agent of an instance has stopped itself at its start.
func (w *world) held(id string) bool {
	m, err := machines.Read(w.machines, id)
	if err != nil || m.PID < 2 {
		return false
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.PID))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(rest, "T")
}
