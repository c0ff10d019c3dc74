package planning

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// machines is the name of the provider of all groups.
const machines = "bench"

// Keys builds the keys of the shard whose records Pages returns.
var keys = store.KeysOf("bench")

// epoch is when the shard was created, in virtual time.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bootedAfter is how long before the leader the instances started.
const bootedAfter = time.Hour

// Size is the size of a shard.
type Size struct {
	Instances int `json:"instances"`
	Groups    int `json:"groups"`
}

// of returns the number of instances of a group: all have the same, or one more.
func (s Size) of(group int) int {
	n := s.Instances / s.Groups
	if group < s.Instances%s.Groups {
		n++
	}
	return n
}

func groupName(g int) string { return fmt.Sprintf("service-%05d", g) }

func instanceID(group string, slot int) string { return fmt.Sprintf("%s-%d-bcdfgh", group, slot) }

// groupOf returns the spec of a group as an operator would write it, with a template, a workload
// and two checks.
func groupOf(name string, size int) store.Group {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = name, size, machines
	g.Labels = map[string]string{"team": "payments"}
	g.Template = store.Template{
		InstanceType: "m5.large", Zones: []string{"a", "b", "c"},
		Settings: map[string]any{"image": "ami-0123456789abcdef0", "disk": "40GiB"},
	}
	g.Workload.Run = []string{"/usr/local/bin/" + name, "--listen=:${port}", "--zone=${zone}"}
	g.Vars = map[string]string{"port": "8080"}
	ready, open := store.DefaultCheck(), store.DefaultCheck()
	ready.Name, ready.HTTP = "ready", &store.HTTPCheck{Port: "8080", Path: "/ready"}
	open.Name, open.TCP = "open", &store.TCPCheck{Port: "8080"}
	g.Checks = []store.Check{ready, open}
	g.Complete()
	return g
}

// made returns the record of a healthy instance.
func made(g *store.Group, spec store.InstanceSpec, template, config string, slot int) store.Instance {
	id := instanceID(g.Name, slot)
	return store.Instance{
		Schema: store.Schema, ID: id, Group: g.Name, Slot: slot, Phase: store.Running, Managed: true, Since: epoch,
		Created:  epoch.Add(-time.Minute),
		Template: template, Spec: spec, Zone: g.Template.Zones[slot%len(g.Template.Zones)], Called: true,
		Ref: "i-0" + id, Address: "10.20.30.40",
		Boot: bootID(id), Config: config,
		Last: store.Decision{
			Rule: "REC-4", What: "running", Why: "its agent reports that it is healthy", Revision: 7,
			At: epoch,
		},
	}
}

func bootID(id string) string { return "boot-" + id }

func aliveOf(id string, state store.StreamState) store.Alive {
	return store.Alive{
		Schema: store.Schema, Instance: id, Replica: "replica-1", Lease: "694d81a2b3c4d5e6", BootID: bootID(id),
		Epoch: 1, State: state, Since: epoch, Agent: "0.3.0",
		Protocol: 1,
	}
}

func reportOf(id, config string, healthy bool) store.Report {
	r := store.Report{
		Schema: store.Schema, Instance: id, Replica: "replica-1", Received: epoch, Agent: "0.3.0", BootID: bootID(id),
		Epoch: 1, Sequence: 700, Sent: epoch, Started: epoch,
		Uptime: store.Duration(bootedAfter), Healthy: healthy, Config: config,
		Host: store.HostReport{
			CPUPercent: 12.5, MemoryPercent: 40.25, DiskPercent: 31, NetworkSent: 123456789,
			NetworkRecv: 987654321,
		},
		Checks: []store.CheckReport{
			{
				Name: "ready", Kind: "http", Healthy: healthy, Since: epoch, Threshold: 2,
				Took: store.Duration(1200 * time.Microsecond),
			},
			{
				Name: "open", Kind: "tcp", Healthy: true, Since: epoch, Threshold: 2,
				Took: store.Duration(300 * time.Microsecond),
			},
		},
	}
	for _, span := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
		r.Host.Windows = append(r.Host.Windows, store.HostWindow{
			Span: store.Duration(span), Covered: store.Duration(span), CPUPercent: 11.5, MemoryPercent: 40,
			DiskPercent: 31, NetworkSent: 23456, NetworkRecv: 34567,
		})
	}
	if !healthy {
		r.Why = "ready: connection refused"
		r.Checks[0].Why = "connection refused"
	}
	return r
}

// listed returns the machine of an instance, as its provider lists it.
func listed(group, id string) provider.Machine {
	return provider.Machine{
		Instance: id, Group: group, State: provider.StateRunning, Ref: "i-0" + id,
		Address: "10.20.30.40",
	}
}

// recordsOf returns the keys of one group: all its instances run and are healthy.
func recordsOf(name string, size int) (kvs []store.KV) {
	put := func(key string, record any) {
		rev := store.Revision(len(kvs) + 2)
		kvs = append(kvs, store.KV{Key: key, Value: store.Encode(record), Created: rev, Modified: rev})
	}
	g := groupOf(name, size)
	put(keys.Group(name), g)
	spec := g.InstanceSpec()
	template, config := spec.TemplateHash(), spec.ConfigHash()
	for slot := range size {
		in := made(&g, spec, template, config, slot)
		put(keys.Slot(name, slot), store.Slot{Schema: store.Schema, Group: name, Number: slot})
		put(keys.Instance(in.ID), in)
		put(keys.Alive(in.ID), aliveOf(in.ID, store.StreamOpen))
		put(keys.Report(in.ID), reportOf(in.ID, config, true))
		put(keys.Joined(in.ID), store.Joined{
			Schema: store.Schema, Instance: in.ID, Token: template, Key: config, From: "10.20.30.40:4711",
			Replica: "replica-1", At: epoch,
		})
	}
	return kvs
}

// Records returns all keys of a shard whose instances all run and are healthy, in the order of
// groups, as previous leaders have left them.
func (s Size) Records(yield func(kvs []store.KV) bool) {
	shard := store.Shard{
		Schema: store.Schema, ID: "bench", Name: "bench", Created: epoch,
		Settings: store.DefaultShardSettings(),
	}
	if !yield([]store.KV{{Key: keys.Shard(), Value: store.Encode(shard), Created: 1, Modified: 1}}) {
		return
	}
	for g := range s.Groups {
		if n := s.of(g); n > 0 && !yield(settled(groupName(g), n)) {
			return
		}
	}
}

// settled returns the records of a group with what a leader adds to them: its status.
func settled(name string, size int) []store.KV {
	kvs := recordsOf(name, size)
	shard := store.Shard{Schema: store.Schema, ID: "bench", Settings: store.DefaultShardSettings()}
	l := newLeader()
	l.read(append(slices.Clone(kvs), store.KV{Key: keys.Shard(), Value: store.Encode(shard), Created: 1, Modified: 1}))
	l.begin()
	l.seesMachines() // records are not counted before that time (SAFE-15)
	for _, w := range l.settle() {
		kvs = slices.DeleteFunc(kvs, func(kv store.KV) bool { return kv.Key == w.Key })
		if !w.Delete {
			kvs = append(kvs, store.KV{Key: w.Key, Value: w.Value, Created: 1, Modified: 1})
		}
	}
	slices.SortFunc(kvs, func(a, b store.KV) int { return strings.Compare(a.Key, b.Key) })
	return kvs
}
