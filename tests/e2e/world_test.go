package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/tests/certs"
	"github.com/leasehold/leasehold/tests/machines"
	"github.com/leasehold/leasehold/tests/ports"
)

// longest bounds every wait. It is no measure of speed: what is waited for takes seconds.
const longest = 5 * time.Minute

// world is a directory with an etcd, programs and machines, isolated from other worlds.
type world struct {
	t        *testing.T
	dir      string
	pki      string                      // directory of the certificate authorities
	machines string                      // the directory of the process provider
	endpoint string                      // etcd's client address, or several with commas
	secure   func() (*tls.Config, error) // the tests' connection to it
	settings string                      // the variable by which commands reach it
	st       *etcdstore.Store
	h        *history
	unfollow func()

	mu       sync.Mutex
	programs []*program
}

// newWorld creates an empty world that ends with the test. Its machines are in a subdirectory of
// the given name.
func newWorld(t *testing.T, machines string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "leasehold-e2e-") //nolint:usetesting // it is kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	place, err := certs.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		pki: place, t: t, dir: dir, machines: filepath.Join(dir, machines), endpoint: addresses.FreeAddress(t),
		h: newHistory(store.KeysOf("default")), unfollow: func() {},
	}
	w.secure, w.settings = func() (*tls.Config, error) { return nil, nil }, "LEASEHOLD_ENDPOINTS="+w.endpoint
	fmt.Fprintf(undertaker, "machines %s\n", w.machines)
	// Ports of machines are remembered between starts. Worlds that begin at different ports do not
	// collide.
	locks := filepath.Join(w.machines, ".locks")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(locks, ".ports"), fmt.Appendln(nil, 20000+rand.IntN(9900)),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	return w
}

// addresses are for everything that listens here. Other suites use other ports.
var addresses = ports.Between(10000, 20000)

// follow starts to record what happens in etcd, which must be up.
func (w *world) follow() {
	w.t.Helper()
	secure, err := w.secure()
	if err != nil {
		w.t.Fatal(err)
	}
	st, err := etcdstore.Open(w.t.Context(),
		etcdstore.Config{Endpoints: strings.Split(w.endpoint, ","), TLS: secure, DialTimeout: longest})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { w.h.follow(ctx, st) })
	w.st = st
	w.unfollow = sync.OnceFunc(func() {
		stop()
		following.Wait()
		if err := st.Close(); err != nil {
			w.t.Errorf("close the store: %v", err)
		}
	})
}

// bin returns the path of a program under test.
func bin(name string) string { return filepath.Join(built, name) }

// command prepares a program. Of the tests' environment it gets only PATH.
func (w *world) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + w.dir, "USER=tester", w.settings,
		certs.Env + "=" + w.pki,
	}
	return cmd
}

// start starts a program of the world.
func (w *world) start(name string, cmd *exec.Cmd) *program {
	w.t.Helper()
	p, err := launch(name, cmd)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.programs = append(w.programs, p)
	return p
}

// cli runs leasehold and waits for its end.
func (w *world) cli(args ...string) *program {
	w.t.Helper()
	p := w.start("cli", w.command(bin("leasehold"), args...))
	w.waitEnd(p)
	// Looked at now: thousands of commands later another process may have its ID.
	w.await("the end of what the command started", p.groupIsGone)
	p.looked = true
	return p
}

// must is cli for what has to succeed.
func (w *world) must(args ...string) string {
	w.t.Helper()
	p := w.cli(args...)
	if p.ExitCode() != 0 {
		w.t.Fatalf("leasehold %s: exit %d: %s%s", strings.Join(args, " "), p.ExitCode(), p.stdout.String(), p.stderr.String())
	}
	return p.stdout.String()
}

func (w *world) waitEnd(p *program) {
	w.t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(longest):
		w.t.Fatalf("%s did not end within %s: %s%s", strings.Join(p.Args(), " "), longest, p.stdout.String(),
			p.stderr.String())
	}
}

// await waits until a condition holds, and returns how long that took. It checks whenever etcd has
// changed, and from time to time, because some conditions are about processes.
func (w *world) await(what string, condition func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(longest)
	defer late.Stop()
	for {
		next := w.h.next()
		if condition() {
			return time.Since(began)
		}
		select {
		case <-next:
		case <-tick.C:
		case <-late.C:
			w.t.Fatalf("waited %s without success for: %s", longest, what)
		}
	}
}

// awaitEntry returns the first entry of the journal after a revision for which a property holds.
func (w *world) awaitEntry(what string, after store.Revision, property func(noted) bool) noted {
	w.t.Helper()
	var found []noted
	w.await(what, func() bool {
		found = w.h.entries(after, property)
		return len(found) > 0
	})
	return found[0]
}

// throughout checks that a condition holds for a whole period: it shows that something does not
// happen.
func (w *world) throughout(d time.Duration, what string, condition func() bool) {
	w.t.Helper()
	over := time.NewTimer(d)
	defer over.Stop()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		next := w.h.next()
		if !condition() {
			w.t.Fatalf("no longer so: %s", what)
		}
		select {
		case <-next:
		case <-tick.C:
		case <-over.C:
			return
		}
	}
}

// pass waits for a time that is part of the story: something is frozen, or away, for so long.
func (w *world) pass(d time.Duration) { <-time.After(d) }

// caughtUp waits until the history holds everything that was in etcd at the call.
func (w *world) caughtUp() store.Revision {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), longest)
	defer cancel()
	v, err := w.st.Vitals(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.await(fmt.Sprintf("the history up to revision %d", v.Revision), func() bool { return w.h.now() >= v.Revision })
	return v.Revision
}

// agent returns the process of an instance's agent.
func (w *world) agent(id string) int {
	w.t.Helper()
	m, err := machines.Read(w.machines, id)
	if err != nil || m.PID < 2 {
		w.t.Fatalf("find the agent of %s: pid %d, %v", id, m.PID, err)
	}
	return m.PID
}

func (w *world) signalAgent(id string, sig syscall.Signal) {
	w.t.Helper()
	if err := syscall.Kill(w.agent(id), sig); err != nil {
		w.t.Fatalf("signal the agent of %s: %v", id, err)
	}
}

// residentsOf returns the running processes of an instance's machine.
func (w *world) residentsOf(id string) []machines.Resident {
	var out []machines.Resident
	for _, r := range machines.Residents(w.shards()) {
		if r.Instance == id {
			out = append(out, r)
		}
	}
	return out
}

// shards returns the shards that machines of this world have belonged to.
func (w *world) shards() []string {
	out := machines.Shards(w.machines)
	for _, v := range currentOf[store.Shard](w.h, store.KindShard) {
		if !slices.Contains(out, v.Record.ID) {
			out = append(out, v.Record.ID)
		}
	}
	return out
}

// end ends the world and leaves nothing behind, whatever the result of the test.
func (w *world) end() {
	if w.st != nil && !w.t.Failed() {
		w.checkNoStrangers()
	}
	w.h.mu.Lock()
	broken := w.h.broken
	w.h.mu.Unlock()
	if broken != nil {
		w.t.Errorf("the history cannot be relied on: %v", broken)
	}
	if w.t.Failed() {
		w.tell()
	}
	w.unfollow()
	for _, p := range slices.Backward(w.programs) {
		for _, text := range []string{p.stdout.String(), p.stderr.String()} {
			if strings.Contains(text, "panic: ") || strings.Contains(text, "goroutine ") ||
				strings.Contains(text, `"bug: `) {
				w.t.Errorf("%s crashed:\n%s", strings.Join(p.Args(), " "), text)
			}
		}
		p.KillGroup()
		if !p.looked && !p.groupIsGone() {
			w.t.Errorf("something of %s is left", p.Name)
		}
	}
	machines.Kill(w.machines, w.shards())
	fmt.Fprintf(undertaker, "ended machines %s\n", w.machines)
	if w.t.Failed() {
		return
	}
	if err := os.RemoveAll(w.dir); err != nil {
		w.t.Errorf("remove what was left: %v", err)
	}
}

// checkNoStrangers fails if a process runs for an instance without a record. Records are written
// before their machine's processes start and deleted after they end, so this holds at every moment.
func (w *world) checkNoStrangers() {
	before := machines.Residents(w.shards())
	revision := store.Revision(0)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if v, err := w.st.Vitals(ctx); err == nil { // an etcd that was stopped at the end of the story has nothing to add
		revision = v.Revision
	}
	until := time.Now().Add(5 * time.Second)
	for w.h.now() < revision && time.Now().Before(until) {
		select {
		case <-w.h.next():
		case <-time.After(time.Second):
		}
	}
	after := machines.Residents(w.shards())
	for _, r := range before {
		if !w.h.instance(r.Instance).Present() && slices.Contains(after, r) {
			w.t.Errorf("%s runs, and there is no record of that instance", r)
		}
	}
}

// tell keeps everything that is known about a world that failed, and prints the most important
// part.
func (w *world) tell() {
	logs := filepath.Join(w.dir, "logs")
	err := os.MkdirAll(logs, 0o700)
	for i, p := range w.programs {
		err = errors.Join(err, p.keep(logs, i))
	}
	err = errors.Join(err, w.h.write(filepath.Join(w.dir, "journal"), filepath.Join(w.dir, "changes")))
	if err != nil {
		w.t.Logf("keep what is known: %v", err)
	}
	var b strings.Builder
	for _, n := range last(w.h.entries(0, func(noted) bool { return true }), 60) {
		fmt.Fprintln(&b, n)
	}
	for name, st := range currentOf[store.Status](w.h, store.KindStatus) {
		fmt.Fprintf(&b, "status %s: %s %d%% phases %v verdicts %v blocked %+v invalid %+v\n", name, st.Record.State,
			st.Record.Health, st.Record.Phases, st.Record.Verdicts, st.Record.Blocked, st.Record.Invalid)
	}
	for id, in := range currentOf[store.Instance](w.h, store.KindInstances) {
		fmt.Fprintf(&b, "instance %s: %s, stream %q\n", id, in.Record.Phase, w.h.alive(id).Record.State)
	}
	for _, r := range machines.Residents(w.shards()) {
		fmt.Fprintln(&b, r)
	}
	for _, p := range w.programs {
		if p.Name == "cli" {
			continue
		}
		lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
		fmt.Fprintf(&b, "--- %s, the end of what it logged\n%s\n", p.Name, strings.Join(last(lines, 12), "\n"))
	}
	w.t.Logf("everything is kept in %s: journal, changes, logs, machines\n%s", w.dir, b.String())
}

func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }
