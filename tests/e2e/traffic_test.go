package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/balancer/haproxy/haproxytest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/tier"
)

// served is a cluster whose groups are behind a real HAProxy.
type served struct {
	*cluster
	haproxy *haproxytest.Process
	relay   *haproxytest.Relay // before its runtime socket
}

// newServed starts two replicas and a HAProxy.
func newServed(t *testing.T) *served {
	t.Helper()
	return newServedIn(t, "http")
}

// newServedIn does so with a HAProxy in mode http or tcp.
func newServedIn(t *testing.T, mode string) *served {
	t.Helper()
	p := haproxytest.Start(t, 0)
	p.Mode = mode
	p.Configure("  option redispatch 1")
	p.Reload()
	s := &served{cluster: newCluster(t), haproxy: p, relay: haproxytest.NewRelay(t, p)}
	s.options = []string{"--providers", s.file("providers.yaml", fmt.Sprintf(
		"providers: {process: {process: {dir: %s, agent: [%s], zones: [local]}}}\n"+
			"balancers: {front: {haproxy: {sockets: [\"unix:%s\"], backend: web, timeout: 500ms, server: "+
			"check inter 2s fastinter 100ms downinter 100ms rise 2 fall 2}}}\n",
		s.machines, s.agentScript(), s.relay.Socket))}
	for _, id := range []string{"a", "b"} {
		s.startReplica(id)
	}
	s.await("a leader", func() bool {
		return s.h.leader() != "" && len(currentOf[store.Replica](s.h, store.KindReplicas)) == 2
	})
	return s
}

// applyWeb creates a group of web servers behind the HAProxy.
func (s *served) applyWeb(size int, more ...string) {
	s.t.Helper()
	file := s.groupFile("web", size, append([]string{
		"vars: {generation: \"1\"}", "load_balancers: [{name: front}]",
		"checks: [{http: {port: \"${port}\"}, interval: 2s}]", "drain: {timeout: 30s}", "registration_timeout: 1m",
	}, more...)...)
	data, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.Replace(string(data), `run: [sleep, "100000"]`,
		fmt.Sprintf(`run: [%s, demo-web, --port, "${port}"]`, bin("leasehold")), 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.must("group", "apply", "-f", file, "--wait")
	s.awaitComplete("web", size)
}

// members are the servers that HAProxy has of the shard: those up, by instance.
func (s *served) members() (up []string) {
	state, err := s.haproxy.Ask("show stat")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(state) {
		fields := strings.Split(line, ",")
		if len(fields) > 17 && fields[0] == "web" && strings.HasPrefix(fields[1], "lh:") && fields[17] == "UP" {
			up = append(up, fields[1][strings.LastIndexByte(fields[1], ':')+1:])
		}
	}
	slices.Sort(up)
	return up
}

// inService waits until HAProxy sends traffic to exactly the instances that are wanted.
func (s *served) inService(size int) time.Duration {
	s.t.Helper()
	return s.await(fmt.Sprintf("%d instances in service", size), func() bool {
		up := s.members()
		return len(up) == size && slices.Equal(up, slices.Sorted(slices.Values(s.h.wanted("web"))))
	})
}

// leaderDies ends the leader, and starts it again once another one leads.
func (s *served) leaderDies() {
	s.t.Helper()
	leader, other, before := s.h.leader(), "a", s.caughtUp()
	if leader == "a" {
		other = "b"
	}
	if err := syscall.Kill(s.replicas[leader].PID(), syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	<-s.replicas[leader].Ended()
	s.awaitLeader(before, other)
	s.startReplica(leader)
}

// load is a steady stream of requests, on connections that are kept and on new ones. Nothing is
// tried again: every failure counts.
type load struct {
	answered atomic.Int64
	mu       sync.Mutex
	failures []failed
	stop     func()
}

// failed is a request that was not answered.
type failed struct {
	at  time.Time // when it was sent
	err error
}

func (f failed) String() string {
	return fmt.Sprintf("%s: %v", f.at.UTC().Format("15:04:05.000"), f.err)
}

// clients and pace make at least 200 requests a second, if those take no longer than half the pace.
const (
	clients = 8
	pace    = 25 * time.Millisecond
)

func (s *served) load() *load {
	ctx, cancel := context.WithCancel(s.t.Context())
	l := &load{}
	var running sync.WaitGroup
	l.stop = func() { cancel(); running.Wait() }
	s.t.Cleanup(l.stop)
	for i := range clients {
		transport := &http.Transport{DisableKeepAlives: i%2 == 0}
		client := &http.Client{Transport: transport, Timeout: longest}
		running.Go(func() {
			defer transport.CloseIdleConnections()
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				at := time.Now()
				if err := request(client, s.haproxy.Front); err != nil {
					l.mu.Lock()
					l.failures = append(l.failures, failed{at, err})
					l.mu.Unlock()
				} else {
					l.answered.Add(1)
				}
			}
		})
	}
	return l
}

// request sends one. A body that cannot be sent twice keeps the client from repeating it.
func request(client *http.Client, front string) error {
	body := struct{ io.Reader }{strings.NewReader("")}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+front+"/", body)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return err
}

// failed returns the failures so far.
func (l *load) failed() []failed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.failures)
}

// lossless runs a part of the story, during which no request may fail, and says how many there
// were.
func (s *served) lossless(l *load, what string, do func()) {
	s.t.Helper()
	began, before, failures := time.Now(), l.answered.Load(), len(l.failed())
	do()
	took, answered := time.Since(began), l.answered.Load()-before
	s.t.Logf("%s: %d requests in %s, %.0f/s", what, answered, took.Round(time.Millisecond),
		float64(answered)/took.Seconds())
	if now := l.failed(); len(now) > failures || answered == 0 {
		s.t.Errorf("%s: %d requests failed: %v", what, len(now)-failures, now[failures:min(len(now), failures+5)])
	}
}

// Four web servers behind a real HAProxy under load: one is doomed by a notice of EC2's metadata
// service, one grows too old, all are replaced by a roll and the group is scaled down; at night
// they are also restarted by a roll, and doomed all at once. in the middle of each the leader is
// killed. Not one request fails. Of one that is killed hard the requests in flight fail, and
// nothing else does.
//
// proves LB-1, LB-2, SPOT-1, SPOT-2, EXP-1
func TestNoRequestIsLost(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	cloud := newMetadata(s.cluster)
	s.applyWeb(4, "rollout: {minimal_action: restart}", "budget: {max_expansion: 4}",
		fmt.Sprintf("spot: {source: aws, endpoint: %q}", cloud.URL), "expiry: {forced_age: 0s}")
	s.inService(4)
	l := s.load()
	if tier.Nightly {
		s.rollByRestart(l)
	}
	s.doom(l, cloud, tier.Pick(1, 4))
	s.expire(l)
	s.lossless(l, "a roll by replacement", func() {
		before := s.caughtUp()
		s.rewrite("web", `minimal_action: restart`, `minimal_action: recreate`, `generation: "`, `generation: "3`)
		s.awaitEntry("an instance that drains", before,
			func(n noted) bool { return n.Rule == "ROLL-1" && n.To == store.Draining })
		s.leaderDies()
		s.rolled("web", before, 4)
		s.inService(4)
	})
	s.lossless(l, "a scale down", func() {
		before := s.caughtUp()
		s.must("group", "scale", "web", "3", "--confirm", "web")
		s.awaitEntry("the instance that drains", before, func(n noted) bool { return n.To == store.Draining })
		s.leaderDies()
		s.awaitComplete("web", 3)
		s.inService(3)
	})
	s.killHard(l)
	l.stop()
}

// rollByRestart has each instance leave, be restarted and come back.
func (s *served) rollByRestart(l *load) {
	s.t.Helper()
	s.lossless(l, "a roll by restart", func() {
		ids, before := s.h.wanted("web"), s.caughtUp()
		s.rewrite("web", `generation: "1"`, `generation: "2"`)
		s.awaitEntry("an instance that leaves to be restarted", before,
			func(n noted) bool { return n.Rule == "LB-1" && strings.Contains(n.What, "restarted") })
		s.leaderDies()
		s.rolled("web", before, 4)
		if now := s.h.wanted("web"); !slices.Equal(now, ids) {
			s.t.Errorf("%v were replaced by %v", ids, now)
		}
		s.inService(4)
	})
}

// doom has so many of the instances be doomed at once.
func (s *served) doom(l *load, cloud *metadata, count int) {
	s.t.Helper()
	s.lossless(l, fmt.Sprintf("a notice for %d of them", count), func() {
		before := s.caughtUp()
		cloud.doom(count)
		doomed := map[string]bool{}
		s.await("the drain of those that the notice is for", func() bool {
			for _, n := range s.h.entries(before, func(n noted) bool { return n.Rule == "SPOT-2" && n.To == store.Draining }) {
				doomed[n.Instance] = true
			}
			return len(doomed) == count
		})
		s.leaderDies()
		s.await("all of them replaced", func() bool {
			return !slices.ContainsFunc(s.h.wanted("web"), func(id string) bool { return doomed[id] })
		})
		s.awaitComplete("web", 4)
		s.inService(4)
	})
}

// expire waits until an instance is as old as it may be.
func (s *served) expire(l *load) {
	s.t.Helper()
	s.lossless(l, "an expiry", func() {
		before := s.caughtUp()
		s.rewrite("web", "forced_age: 0s", "forced_age: 1m")
		old := s.awaitEntry("an instance that is too old and drains", before,
			func(n noted) bool { return n.Rule == "EXP-1" && n.To == store.Draining })
		s.leaderDies()
		s.await("its end", func() bool { return !s.h.instance(old.Instance).Present() })
		s.rewrite("web", "forced_age: 1m", "forced_age: 0s")
		s.awaitComplete("web", 4)
		s.inService(4)
	})
}

// killHard ends a machine at once. What is sent after HAProxy has noticed does not fail.
func (s *served) killHard(l *load) {
	s.t.Helper()
	victim, before, failures := s.h.wanted("web")[0], s.caughtUp(), len(l.failed())
	for _, r := range s.residentsOf(victim) {
		if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
	}
	killed := time.Now()
	s.awaitEntry("the death of "+victim, before,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting && n.Rule == "DET-4" })
	s.await(victim+" being out of service", func() bool { return !slices.Contains(s.members(), victim) })
	noticed := time.Now()
	s.awaitComplete("web", 3)
	s.inService(3)
	lost := l.failed()[failures:]
	s.t.Logf("killed hard: %d requests failed; out of service %s later", len(lost),
		noticed.Sub(killed).Round(time.Millisecond))
	for _, f := range lost {
		if f.at.After(noticed) {
			s.t.Errorf("a request failed that was sent %s after it was out of service: %v", f.at.Sub(noticed), f.err)
		}
	}
}

// HAProxy is reloaded, restarted, away for a while and hung, and people add and remove servers:
// soon after it is back it has the members that it should have and nothing else of ours, what is
// foreign is left alone, and no instance is replaced or drained for it.
//
// proves LB-3, SAFE-18
func TestMembershipIsPutRight(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	s.applyWeb(3)
	s.inService(3)
	ids := s.h.wanted("web")
	right := func(what string) {
		t.Helper()
		t.Logf("%s: right again after %s", what, s.inService(3).Round(time.Millisecond))
	}
	s.haproxy.Reload()
	right("reloaded")
	s.haproxy.Stop()
	s.pass(tier.Pick(2*time.Second, time.Minute))
	s.haproxy.Run()
	right("restarted")
	s.relay.Set(haproxytest.Hang)
	s.haproxy.Reload()
	s.pass(tier.Pick(2*time.Second, 30*time.Second))
	s.relay.Set(haproxytest.Pass)
	right("its socket hung")
	ask := func(command string) string {
		t.Helper()
		said, err := s.haproxy.Ask(command)
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return said
	}
	name := ""
	for line := range strings.Lines(ask("show servers state web")) {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasSuffix(fields[3], ids[0]) {
			name = fields[3]
		}
	}
	ask("add server web/foreign 127.0.0.1:9 check inter 100ms")
	ask("set server web/" + name + " state maint")
	ask("del server web/" + name)
	s.await("the server being put back", func() bool {
		return len(s.h.entries(0, func(n noted) bool {
			return n.Rule == "LB-3" && n.Instance == ids[0] && strings.HasPrefix(n.What, "put back")
		})) > 0
	})
	right("a server removed by hand")
	if !strings.Contains(ask("show servers state web"), " foreign ") {
		t.Error("the foreign server is gone")
	}
	s.unreplaced("web", ids)
	s.caughtUp()
	for _, ch := range s.h.changesOf(store.KindInstances, 0) {
		v, err := store.Decode[store.Instance](ch.KV)
		if err != nil || v.Record.Phase == store.Draining {
			t.Errorf("an instance was drained: %v %v", v.Record, err)
		}
	}
}
