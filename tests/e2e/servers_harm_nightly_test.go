//go:build nightly

package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

var (
	serverSeeds = flag.Uint64("server-seeds", 2, "how many seeds of harm to servers are played")
	serverFirst = flag.Uint64("server-first", 1, "the first of them")
	serverSeed  = flag.Uint64("server-seed", 0, "play this one alone")
)

// serverHarm is a cluster of three hosts to which things happen, from a seed.
type serverHarm struct {
	*hosts
	three []*serverHost
	rng   *rand.Rand
	size  int // of the group that is edited meanwhile
}

// Hosts of leasehold server are hurt at random: their parts are killed and frozen, one or both, the
// supervisor as well; hosts end, lose their disks and are replaced, and a majority is away for a
// while. Settings, a group and backups change in between. After each round all is whole again: no
// instance was replaced for it, and no workload stopped.
//
// proves DAY-1, SAFE-1, SAFE-5, SAFE-11, SAFE-15, ELECT-2
func TestServersUnderRandomHarm(t *testing.T) {
	first, last := *serverFirst, *serverFirst+*serverSeeds-1
	if *serverSeed != 0 {
		first, last = *serverSeed, *serverSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := newHosts(t)
			hosts := c.three()
			h := &serverHarm{hosts: c, three: hosts[:], rng: rand.New(rand.NewPCG(seed, 18)), size: 1}
			c.must("group", "apply", "-f", c.groupFile("web", 3), "-f", c.groupFile("edited", h.size))
			c.await("the groups", func() bool { return c.h.complete("web", 3) && c.h.complete("edited", 1) })
			ids := c.h.wanted("web")
			running := c.workloads(ids)
			for round := range 8 {
				what := h.round()
				t.Logf("seed %d, round %d: %s", seed, round, what)
				h.whole(fmt.Sprintf("round %d: %s", round, what))
				c.same("web", ids)
				if !c.allRun(running) {
					t.Fatalf("round %d: workloads were %v", round, running)
				}
				h.edit(round)
			}
			for _, id := range ids {
				if n := c.h.entries(0, func(n noted) bool { return n.Instance == id && n.To == store.Deleting }); len(n) > 0 {
					t.Errorf("removed, and nothing was wrong with it: %v", n)
				}
			}
			c.heals(ids)
		})
	}
}

// round harms up to two hosts at once, for some seconds, and says how.
func (h *serverHarm) round() string {
	h.t.Helper()
	h.rng.Shuffle(3, func(i, j int) { h.three[i], h.three[j] = h.three[j], h.three[i] })
	if h.rng.IntN(6) == 0 {
		return h.replace(h.three[0], h.three[1])
	}
	harms := []func(*serverHost) (what string, undo func()){
		h.killParts, h.killParts, h.freezeParts, h.freezeParts, h.freezeHost, h.powerOff, h.stop,
	}
	var said []string
	var undo []func()
	for _, host := range h.three[:1+h.rng.IntN(2)] {
		what, lift := harms[h.rng.IntN(len(harms))](host)
		said, undo = append(said, what), append(undo, lift)
	}
	away := time.Duration(h.rng.IntN(12000)) * time.Millisecond
	h.pass(away)
	for _, lift := range undo {
		lift()
	}
	return fmt.Sprintf("%s, for %s", strings.Join(said, " and "), away)
}

// parts chooses one of a host's parts, or both.
func (h *serverHarm) parts(of *serverHost) (names []string, pids []int) {
	names = [][]string{{"member"}, {"replica"}, {"member", "replica"}}[h.rng.IntN(3)]
	for _, n := range names {
		pids = append(pids, h.part(of, n))
	}
	return names, pids
}

func (h *serverHarm) killParts(of *serverHost) (string, func()) {
	names, pids := h.parts(of)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return fmt.Sprintf("%s: %s killed", of.name, strings.Join(names, " and ")), func() {}
}

func (h *serverHarm) freezeParts(of *serverHost) (string, func()) {
	names, pids := h.parts(of)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return fmt.Sprintf("%s: %s frozen", of.name, strings.Join(names, " and ")), func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

func (h *serverHarm) freezeHost(of *serverHost) (string, func()) {
	pids := []int{of.run.PID(), h.part(of, "member"), h.part(of, "replica")}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return of.name + ": all of it frozen", func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// powerOff kills the supervisor; the kernel ends its parts.
func (h *serverHarm) powerOff(of *serverHost) (string, func()) {
	of.run.Signal(syscall.SIGKILL)
	h.waitEnd(of.run)
	return of.name + ": its supervisor killed", func() { h.start1(of) }
}

func (h *serverHarm) stop(of *serverHost) (string, func()) {
	h.end(of)
	return of.name + ": ended in order", func() { h.start1(of) }
}

// start1 starts a host without waiting: alone it may have no majority yet.
func (h *serverHarm) start1(of *serverHost) {
	of.run = h.start("server-"+of.name, h.command(bin("leasehold"), of.args(h.hosts)...))
}

// replace takes a host's disk, and replaces the host by the command of another one.
func (h *serverHarm) replace(lost, helper *serverHost) string {
	h.t.Helper()
	h.lose(lost)
	h.settings = "LEASEHOLD_CONFIG=" + filepath.Join(helper.dir, "config.yaml")
	printed := h.must("server", "replace", lost.name, "--confirm", lost.name, "--data-dir", helper.dir, "--timeout", "60s")
	h.begin(lost, h.joinCommand(printed, lost.name)...)
	return lost.name + ": lost with its disk, and replaced"
}

// whole waits until all hosts, their members and replicas are at work.
func (h *serverHarm) whole(after string) {
	h.t.Helper()
	h.await("three hosts, after "+after, func() bool {
		for _, host := range h.three {
			if host.run.HasEnded() {
				h.t.Fatalf("%s ended by itself with %d, after %s: %s", host.name, host.run.ExitCode(), after,
					host.run.stderr.String())
			}
		}
		replicas := currentOf[store.Replica](h.h, store.KindReplicas)
		return h.h.leader() != "" && len(replicas) == 3
	})
	h.await("three members, after "+after, func() bool {
		for _, host := range h.three {
			p := h.cli("server", "list", "--data-dir", host.dir)
			if p.ExitCode() != 0 || strings.Count(p.stdout.String(), "\n") != 4 ||
				strings.Contains(p.stdout.String(), "\tdown\t") || strings.Contains(p.stdout.String(), "\tlearner\t") {
				return false
			}
		}
		return true
	})
}

// edit is what operators do meanwhile.
func (h *serverHarm) edit(round int) {
	h.t.Helper()
	h.settings = "LEASEHOLD_CONFIG=" + filepath.Join(h.three[h.rng.IntN(3)].dir, "config.yaml")
	h.size = 1 + h.rng.IntN(3)
	h.must("group", "scale", "edited", fmt.Sprint(h.size), "--confirm", "edited")
	h.must("config", "set", "provider_poll="+[]string{"1s", "2s"}[round%2])
	h.must("backup", filepath.Join(h.dir, fmt.Sprintf("backup-%d", round)))
	h.await("the edited group", func() bool { return h.h.complete("edited", h.size) })
}
