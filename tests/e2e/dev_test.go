package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/machines"
)

// laptop is a series of leasehold dev runs on the same data.
type laptop struct {
	*world
	data string
	dev  *program
}

func newLaptop(t *testing.T) *laptop {
	t.Helper()
	w := newWorld(t, filepath.Join("data", "machines"))
	l := &laptop{world: w, data: filepath.Join(w.dir, "data")}
	l.secure, l.settings = l.asRoot, "LEASEHOLD_CONFIG="+filepath.Join(l.data, "config.yaml")
	return l
}

// asRoot is how root reaches dev's etcd, who may read and write everything.
func (l *laptop) asRoot() (*tls.Config, error) { return rootOf(filepath.Join(l.data, "pki")) }

// rootOf is root's connection to an etcd whose authorities are in a directory.
func rootOf(dir string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "issued", "root.crt"), filepath.Join(dir, "issued", "root.key"))
	if err != nil {
		return nil, err
	}
	files, err := pki.Load(dir, pki.Operators)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		RootCAs: files.Trust().Pool(),
	}, err
}

// startDev starts leasehold dev and waits until it says that it is ready.
func (l *laptop) startDev(more ...string) time.Duration {
	l.t.Helper()
	l.dev = l.start("dev", l.command(bin("leasehold"),
		append([]string{"dev", "--data-dir", l.data, "--etcd-listen", l.endpoint}, more...)...))
	return l.await("ready", func() bool {
		if l.dev.HasEnded() {
			l.t.Fatalf("dev ended with %d: %s", l.dev.ExitCode(), l.dev.stderr.String())
		}
		return strings.HasPrefix(l.dev.stdout.String(), "ready ")
	})
}

// address is a free one for the coordinator of dev.
func (l *laptop) address() string { return addresses.FreeAddress(l.t) }

// same fails if a group has other instances than these, or ever had.
func (l *laptop) same(group string, ids []string) {
	l.t.Helper()
	l.caughtUp()
	if now := l.h.wanted(group); !slices.Equal(now, ids) {
		l.t.Errorf("the group had %v, and has %v", ids, now)
	}
}

// The first thing that anyone does with it: start it, kill an agent, watch the group heal, stop
// it, start it again.
//
// proves DET-3, DET-4, DET-12, HEAL-2, REC-1, REC-3, REC-15
func TestDev(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	listen := l.address()
	t.Logf("ready after %s", l.startDev("--listen", listen).Round(time.Millisecond))
	l.follow()
	t.Logf("demo complete %s later",
		l.await("the demo group", func() bool { return l.h.complete("demo", 3) }).Round(time.Millisecond))
	ids := l.h.wanted("demo")
	l.await("a hint what to do now", func() bool { return strings.Contains(l.dev.stdout.String(), "kill -9 ") })
	for _, id := range ids {
		l.serves(id)
	}

	victim := ids[1]
	before := l.caughtUp()
	l.signalAgent(victim, syscall.SIGKILL)
	killed := time.Now()
	replaced := l.awaitEntry("the replacement being asked for", before,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	t.Logf("replacement asked for %s after kill -9 (target: 1s)", replaced.At.Sub(killed).Round(time.Millisecond))
	if replaced.At.Sub(killed) > 15*time.Second {
		t.Errorf("that is the lease's end, not the stream's: %s", replaced)
	}
	l.await("the group being healed",
		func() bool { return l.h.complete("demo", 3) && !slices.Contains(l.h.wanted("demo"), victim) })
	t.Logf("healed %s after kill -9 (target: 8s)", time.Since(killed).Round(time.Millisecond))
	l.explained(victim, before, replaced)
	l.await("the end of all that the machine ran", func() bool { return len(l.residentsOf(victim)) == 0 })
	for _, id := range l.h.wanted("demo") {
		l.serves(id)
	}
	l.caughtUp()
	keys, problems := l.h.readable()
	if keys < 15 || len(problems) > 0 {
		t.Errorf("of %d keys these cannot be read by a person: %s", keys, strings.Join(problems, "\n"))
	}

	ids = l.h.wanted("demo")
	t.Run("second on the same data", func(t *testing.T) {
		p := l.cli("dev", "--data-dir", l.data, "--etcd-listen", addresses.FreeAddress(t), "--listen",
			addresses.FreeAddress(t))
		complains(t, p, 1, l.data)
	})
	l.stop(ids, syscall.SIGINT)
	l.startDev() // it listens where it did before, since there its machines look for it
	l.await("the demo group again", func() bool {
		return l.h.complete("demo", 3) && l.h.leader() != "" && strings.Contains(l.dev.stdout.String(), listen)
	})
	l.same("demo", ids)
	if all := l.h.everRecorded(); len(all) != 4 {
		t.Errorf("3 instances and one replacement were needed, and there were %v", all)
	}
	for _, id := range ids {
		l.serves(id)
	}
	l.stop(ids, closedTerminal())
}

// serves fails unless the workload of an instance of the demo group answers with the instance's
// name.
func (l *laptop) serves(id string) {
	l.t.Helper()
	url := "http://" + l.h.instance(id).Record.Address
	client := &http.Client{Timeout: longest, Transport: &http.Transport{DisableKeepAlives: true}}
	var said string
	l.await(id+" serving "+url, func() bool {
		answer, err := client.Get(url)
		if err != nil {
			return false // its process is there, and listens in a moment
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		said = string(body)
		return err == nil
	})
	if !strings.Contains(said, "hello from "+id) {
		l.t.Errorf("%s says %q", url, said)
	}
}

// explained fails unless the journal explains a replacement: the stream, the provider's answer, the
// decision, each with its rule, its evidence and the revision of the cache.
func (l *laptop) explained(victim string, before store.Revision, decision noted) {
	l.t.Helper()
	story := l.h.entries(before, func(n noted) bool { return n.Instance == victim && n.rev <= decision.rev })
	var text strings.Builder
	for _, n := range story {
		fmt.Fprintln(&text, n)
		if n.Rule == "" || n.Revision == 0 || n.Revision >= n.rev || len(n.Evidence) == 0 {
			l.t.Errorf("an entry without rule, evidence or revision: %s", n)
		}
	}
	l.t.Logf("the journal:\n%s", text.String())
	for _, want := range []string{"stream lost", "provider: crashed", "SIGKILL"} {
		if !strings.Contains(text.String(), want) {
			l.t.Errorf("the journal does not tell of %q", want)
		}
	}
	if decision.Rule != "DET-4" || decision.Verdict != store.Dead || !strings.Contains(decision.What, "replacement") {
		l.t.Errorf("not replaced because it was dead: %s", decision)
	}
}

// closedTerminal is the signal for a program whose terminal closes, unless it was started to ignore
// that.
func closedTerminal() syscall.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return syscall.SIGTERM
	}
	return syscall.SIGHUP
}

// stop ends dev as Ctrl-C does, or a terminal that closes: nothing that it started runs on, and all
// of it is kept.
func (l *laptop) stop(ids []string, how syscall.Signal) {
	l.t.Helper()
	l.stopWith(ids, how, 0)
}

// stopWith is stop where dev may end with one of several exit codes.
func (l *laptop) stopWith(ids []string, how syscall.Signal, codes ...int) {
	l.t.Helper()
	l.dev.Signal(how)
	l.waitEnd(l.dev)
	if !slices.Contains(codes, l.dev.ExitCode()) {
		l.t.Errorf("%s ended dev with %d: %s", how, l.dev.ExitCode(), l.dev.stderr.String())
	}
	if left := machines.Residents(l.shards()); len(left) > 0 {
		l.t.Errorf("after %s there is still %v", how, left)
	}
	if names := machines.Names(l.machines); !slices.Equal(names, ids) {
		l.t.Errorf("the machines %v are kept, and there were %v", names, ids)
	}
}

// A dev that is killed leaves its machines running; the next one takes up the very same ones.
//
// proves SAFE-5, ELECT-3, DET-14
func TestDevIsKilled(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	listen := l.address()
	l.startDev("--listen", listen, "--group", l.groupFile("web", 3))
	l.follow()
	l.await("the group", func() bool { return l.h.complete("web", 3) })
	ids := l.h.wanted("web")
	before := machines.Residents(l.shards())
	if len(before) < 6 {
		t.Fatalf("three agents and three workloads should run: %v", before)
	}
	revision := l.caughtUp()
	l.dev.KillGroup()
	l.throughout(leaseTTL+interval, "the machines run on",
		func() bool { return slices.Equal(machines.Residents(l.shards()), before) })

	l.startDev("--listen", listen)
	l.awaitEntry("a leader", revision, func(n noted) bool { return n.Rule == "ELECT-1" })
	l.await("the group again", func() bool {
		for _, id := range ids {
			if l.h.alive(id).Modified <= revision {
				return false
			}
		}
		return l.h.complete("web", 3)
	})
	l.same("web", ids)
	if after := machines.Residents(l.shards()); !slices.Equal(after, before) {
		t.Errorf("there ran %v, and now there run %v", before, after)
	}
	if all := l.h.everRecorded(); !slices.Equal(all, ids) {
		t.Errorf("replaced: there were %v, and by now %v", ids, all)
	}
	l.stop(ids, syscall.SIGTERM)

	// It is ended while it starts, once the first machine runs again.
	l.dev = l.start("dev", l.command(bin("leasehold"), "dev", "--data-dir", l.data, "--etcd-listen", l.endpoint,
		"--listen", listen))
	l.await("a machine that was resumed", func() bool { return len(machines.Residents(l.shards())) > 0 })
	const interrupted = 130 // where it had not finished starting
	l.stopWith(ids, syscall.SIGTERM, 0, interrupted)
}

// A dev whose output is not read any more, as in "leasehold dev | head", still stops everything
// that it started.
//
// proves ELECT-3
func TestDevWhoseOutputIsClosed(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	output := filepath.Join(l.dir, "output")
	if err := syscall.Mkfifo(output, 0o600); err != nil {
		t.Fatal(err)
	}
	l.dev = l.start("dev", l.command("/bin/sh", "-c", `exec "$0" "$@" >`+output, bin("leasehold"),
		"dev", "--data-dir", l.data, "--etcd-listen", l.endpoint, "--listen", l.address()))
	reader, err := os.Open(output)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready ") {
		t.Fatalf("dev says %q: %v; %s", line, err, l.dev.stderr.String())
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	l.follow()
	l.await("the demo group", func() bool { return l.dev.HasEnded() || l.h.complete("demo", 3) })
	if l.dev.HasEnded() {
		t.Errorf("dev has ended with %d", l.dev.ExitCode())
	}
	l.dev.Signal(syscall.SIGINT)
	l.waitEnd(l.dev)
	if left := machines.Residents(l.shards()); len(left) > 0 {
		t.Errorf("there is still %v", left)
	}
}
