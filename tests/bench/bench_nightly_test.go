//go:build nightly

package bench

import (
	"context"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/tests/harness"
)

// Many agents share a connection.
func TestAgentsOnSharedConnections(t *testing.T) {
	r := result[trial.Agents](t, "agents", "--agents", "60", "--for", "3s", "--failures", "0", "--shared", "2")
	if r.Registered != 60 || r.FalsePositives != 0 || r.Connections != trial.SharedConnections {
		t.Errorf("measured: %+v", r)
	}
	for _, p := range r.Processes {
		if p.Name == "agents-1" && p.Descriptors > 40 {
			t.Errorf("the agents have %d descriptors, and 2 connections to share", p.Descriptors)
		}
	}
}

func TestFailover(t *testing.T) {
	r := result[trial.Failover](t, "failover", "--agents", "40")
	if r.Served != 40 || !r.Led || !r.Warm || r.Outage.Count != 40 || r.Last <= 0 || r.Cold <= 0 {
		t.Errorf("measured: %+v", r)
	}
	if r.Judged != 0 {
		t.Errorf("%d instances were judged: %v", r.Judged, r.Wrongly)
	}
}

// Pages are read live while a group rolls: each reader gets updates, none is dropped, and no agent
// is harmed. What it costs is measured with more of them.
//
// proves WEB-1
func TestReaders(t *testing.T) {
	r := result[trial.Readers](t, "readers", "--agents", "40", "--readers", "5", "--for", "4s", "--periods", "2",
		"--at-once", "4")
	if len(r.Periods) != 2 || r.Periods[0].Readers || !r.Periods[1].Readers || r.Updates <= 0 || r.Rolled <= 0 {
		t.Errorf("measured: %+v", r)
	}
	if r.Dropped != 0 || r.Lost != 0 || r.Unacknowledged != 0 {
		t.Errorf("%d streams dropped, %d reports renewed nothing, lost: %v", r.Dropped, r.Unacknowledged, r.Wrongly)
	}
}

// An etcd that is named is used only if it is empty, or if that was said to be meant; and is as it
// was before when a bench was interrupted.
func TestNamedEtcd(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	etcd, err := harness.StartEtcd(t.Context(),
		embedetcd.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	st := etcd.Store
	const key, value = "/leasehold/real/shard", "{}"
	if _, err := st.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put(key, []byte(value))}}); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"agents", "--agents", "30", "--for", "4m", "--failures", "0", "--endpoints",
		etcd.Endpoint,
	}, quick...)
	if code, _, stderr := run(t.Context(), t, args...); code != program.Conflict ||
		!strings.Contains(stderr, "--used-etcd") {
		t.Errorf("exit %d for an etcd with a shard: %s", code, stderr)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	watch, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { // the bench is interrupted in the middle: once an agent has its lease
		defer close(watched)
		for b := range st.Watch(watch, store.Root, 1) {
			for _, e := range b.Events {
				if strings.Contains(e.KV.Key, "/alive/") {
					interrupt()
				}
			}
		}
	}()
	code, _, stderr := run(ctx, t, append(args, "--used-etcd")...)
	stop()
	<-watched
	if code != program.Interrupted || !strings.Contains(stderr, "nothing is left behind") {
		t.Errorf("exit %d after an interrupt: %s", code, stderr)
	}
	left, err := st.List(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(left.KVs) != 1 || left.KVs[0].Key != key || string(left.KVs[0].Value) != value {
		t.Errorf("etcd holds %d keys, and held 1: %+v", len(left.KVs), left.KVs)
	}
	nothingLeft(t)
}
