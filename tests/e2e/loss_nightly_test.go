//go:build nightly

package e2e

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/recovery"
	"github.com/leasehold/leasehold/store"
)

// All three hosts of a cluster are lost with their disks. What is left is a backup that is older
// than a replacement and than a larger group, and a copy of the keys. The runbook of docs/backup.md
// is followed to the letter: each machine is in its slot, no workload stops, no machine is made.
//
// proves DAY-1, DAY-2, SAFE-14, SAFE-15, SAFE-17
func TestAllHostsAreLost(t *testing.T) {
	t.Parallel()
	g := newGuideHosts(t, "a", "b", "c")
	g.flags = []string{"--machines", g.machines} // they are elsewhere: no host takes machines with it
	var before, after []step
	for _, s := range stepsOf(t, filepath.Join("..", "..", "docs", "backup.md")) {
		if strings.HasPrefix(s.command, "install ") || len(after) > 0 {
			after = append(after, s)
		} else {
			before = append(before, s)
		}
	}
	file := g.groupFile("web", 3)
	g.follow([]step{
		{
			host: "a", command: "leasehold server --name a --init",
			prints: []string{"  leasehold server --name c --join a:7420 --token …"},
		},
		{host: "b", command: "leasehold server --name b --join a:7420 --token …", prints: []string{"ready  b …"}},
		{host: "c", command: "leasehold server --name c --join a:7420 --token …", prints: []string{"ready  c …"}},
		{host: "a", command: "leasehold config set reconnect_max=" + reconnect.String() + " provider_poll=1s"},
		{host: "b", command: "leasehold group apply -f " + file + " --wait"},
	})
	g.follow(before)
	first := g.places()
	var victim string
	for id, slot := range first {
		if slot == 0 {
			victim = id
		}
	}
	g.signalAgent(victim, syscall.SIGKILL)
	g.await("the replacement of "+victim, func() bool {
		now := g.places()
		_, there := now[victim]
		return len(now) == 3 && !there
	})
	g.follow([]step{{host: "b", command: "leasehold group apply -f " + g.groupFile("web", 4) + " --wait"}})
	were := g.places()
	if len(were) != 4 {
		t.Fatalf("before the loss: %v", were)
	}
	ids := slices.Sorted(maps.Keys(were))
	running, made := g.workloads(ids), g.made()
	none := func() bool { return g.allRun(running) && slices.Equal(g.made(), made) }

	for _, n := range g.names {
		g.lose(g.all[n])
	}
	g.throughout(leaseTTL, "all workloads run without a host", none)
	began := time.Now()
	shown := slices.IndexFunc(after, func(s step) bool { return strings.HasPrefix(s.command, "leasehold recover") })
	g.follow(after[:shown])
	g.await("the two machines that are younger than the backup, by their seals", func() bool {
		out, err := g.on("a", "leasehold", "recover", "-o", "json").Output()
		var all []recovery.Candidate
		return err == nil && json.Unmarshal(out, &all) == nil && len(all) == 2 &&
			!slices.ContainsFunc(all, func(m recovery.Candidate) bool {
				return !m.Adoptable() || m.Source != recovery.FromSeal || m.Slot != were[m.Instance]
			})
	})
	g.follow(after[shown:])
	g.await("the same instances in their slots", func() bool { return maps.Equal(g.places(), were) })
	t.Logf("%s from the first command to a shard that looks after itself", time.Since(began).Round(time.Second))
	if !none() {
		t.Errorf("workloads were %v; machines %v, and before %v", running, g.made(), made)
	}
	g.follow([]step{{host: "c", command: "leasehold status", prints: []string{"no problems"}}})
}

// places are the slots of the instances that run, as a command on a host says.
func (g *guideHosts) places() map[string]int {
	g.t.Helper()
	out, err := g.on("a", "leasehold", "instance", "list", "web", "-o", "json").Output()
	var all []store.Instance
	if err != nil || json.Unmarshal(out, &all) != nil {
		return nil
	}
	places := map[string]int{}
	for _, i := range all {
		if i.Phase == store.Running && i.Managed {
			places[i.ID] = i.Slot
		}
	}
	return places
}
