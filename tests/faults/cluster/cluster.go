package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/cloud"
	"github.com/leasehold/leasehold/tests/faults/disk"
	"github.com/leasehold/leasehold/tests/faults/etcdops"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/faults/network"
	"github.com/leasehold/leasehold/tests/faults/witness"
	"github.com/leasehold/leasehold/tests/stage"
)

// Config describes a cluster.
type Config struct {
	Programs *stage.Programs
	Again    string // the command that repeats the run
	Disks    bool   // replicas and machines have small disks of their own, which can be full
	Numbers  bool   // replicas serve metrics, for Vitals
	Servers  bool   // members and replicas are parts of hosts of leasehold server
	Groups   []Group
	Settings func(*store.ShardSettings)
}

// Cluster is members of etcd, replicas of the coordinator and machines, each a process of its own,
// and the network between them.
type Cluster struct {
	*stage.Stage
	Net     *network.Network
	Cloud   *cloud.Cloud
	Log     *history.Log
	Witness *witness.Watcher

	cfg     Config
	test    *testing.T // until the stage exists
	dir     string
	disks   map[string]*disk.Tmpfs
	numbers map[string]string // metrics address of each replica
	ops     etcdops.Etcd
	stop    context.CancelFunc // ends the witness
	stopped chan struct{}

	mu        sync.Mutex // guards what follows, and starting processes
	troubles  int
	orders    int
	snapshots int
	groups    map[string]*Group
	lifts     []func() // end rules of the network
	harms     harms
}

// Three coordinators and three members of etcd, so that one of each may fail.
const replicas, members = 3, 3

// zones are the zones of the machines.
var zones = []string{"a", "b", "c"}

// New starts all processes, and waits until the groups are complete.
func New(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "leasehold-faults-") //nolint:usetesting // it is kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{
		cfg: cfg, test: t, dir: dir, Net: network.New(), disks: map[string]*disk.Tmpfs{},
		numbers: map[string]string{}, groups: map[string]*Group{},
	}
	c.harms.init()
	if c.Log, err = history.Open(filepath.Join(dir, "history")); err != nil {
		t.Fatal(err)
	}
	if cfg.Disks {
		for _, name := range append(c.ReplicaIDs(), "machines") {
			place := filepath.Join(dir, name)
			if cfg.Servers && name != "machines" {
				place = filepath.Join(dir, "hosts", name, "replica") // its member has another one
			}
			if c.disks[name], err = disk.Mount(place, 16<<20); err != nil {
				t.Fatal(err)
			}
			// normally it was closed and checked before
			t.Cleanup(func() { _ = c.disks[name].Close() })
		}
	}
	if err := c.makeAuthority(); err != nil {
		t.Fatal(err)
	}
	cast, err := cfg.Programs.WrongClock()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "cloud.sock")
	c.Cloud, err = cloud.New(cloud.Config{
		Log: c.Log, Agent: cast, Dir: filepath.Join(dir, "machines"), Socket: socket, Zones: zones, Logs: dir,
		Source: c.source, Made: c.machineMade, Whole: whole,
		Certificate: &cloud.Pair{Certificate: fileOfCertificate, Key: fileOfKey},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Cloud.Serve(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	c.Stage = stage.New(t, stage.Plan{
		Narrow:   true,
		Programs: cfg.Programs, Again: cfg.Again, Dir: dir, Replicas: replicas, Members: members, WrongClocks: true,
		Servers: cfg.Servers,
		Settings: func(s *store.ShardSettings) {
			s.OrphanGrace = store.Duration(20 * time.Second)
			if cfg.Settings != nil {
				cfg.Settings(s)
			}
		},
		Elsewhere: &stage.Elsewhere{
			Provider: socket,
			Agents:   func(replica, address string) string { return c.way(replica, "", address) },
			Etcd: func(replica string, member int, address string) string {
				return c.way(fmt.Sprintf("m%d", member), replica, address)
			},
			Peers: func(member int, address string) string {
				name := fmt.Sprintf("m%d", member)
				if err := c.Net.Name(stage.MemberSource(member), name); err != nil {
					t.Fatal(err)
				}
				return c.way(name, "", address)
			},
			Replica: c.replicaFlags,
			Host:    c.hostWays,
			Data:    func(member int) string { return filepath.Join(dir, fmt.Sprintf("m%d", member)) },
		},
	})
	c.Leave = c.leave
	for i, client := range c.Clients {
		c.ops = append(c.ops, etcdops.Member{Name: fmt.Sprintf("m%d", i), Client: client, TLS: c.Root})
	}
	t.Cleanup(c.keep)
	c.watch()
	for _, g := range cfg.Groups {
		c.want(g)
	}
	c.Await("all groups being complete", func() bool { return c.complete() == "" })
	return c
}

// watch starts the witness.
func (c *Cluster) watch() {
	c.T.Helper()
	var err error
	if c.Witness, err = witness.New(witness.Config{
		Endpoints: c.Clients, TLS: c.Root, Prefix: c.Keys.Prefix(),
		Log: c.Log,
	}); err != nil {
		c.T.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(c.T.Context()))
	c.stop, c.stopped = stop, make(chan struct{})
	go func() {
		defer close(c.stopped)
		c.Witness.Run(ctx)
	}()
}

// Say writes to the test's log.
func (c *Cluster) Say(format string, args ...any) {
	c.T.Logf("%s %s", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// Trouble records the beginning of a fault. over records its end, with a description.
func (c *Cluster) Trouble(kind string, manyCut bool) (over func(what string)) {
	c.mu.Lock()
	c.troubles++
	id := c.troubles
	c.mu.Unlock()
	c.Log.Add(history.Event{Trouble: &history.Trouble{ID: id, Kind: kind, ManyCut: manyCut}})
	return func(what string) {
		c.Log.Add(history.Event{Trouble: &history.Trouble{
			ID: id, Kind: kind, What: what, ManyCut: manyCut,
			Ends: true,
		}})
	}
}

// Mark records a moment.
func (c *Cluster) Mark(m history.Mark) { c.Log.Add(history.Event{Mark: &m}) }

// History returns everything that was seen so far, by all processes.
func (c *Cluster) History() ([]history.Event, error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "history*"))
	if err != nil {
		return nil, err
	}
	return history.Read(files...)
}
