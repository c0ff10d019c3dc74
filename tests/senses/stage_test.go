package senses

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/tests/senses/swarm"
)

// longest is how long anything may take that must happen. It is no measure of speed.
const longest = 2 * time.Minute

// plan says who is on a stage.
type plan struct {
	replicas    int           // of the coordinator
	members     int           // of etcd; 0: 1
	interval    time.Duration // of reports; 0: 1s
	wrongClocks bool          // programs have a wall clock that can be set
	behindRelay []string      // replicas that reach etcd through a relay
	network     []string      // how the relay behaves through which agents reach the replicas; nil: there is none
	disk        string        // where etcd keeps its data; "": beside the rest
}

// usual is how many agents a scenario has at most, unless the tests are told to have more.
const usual = 150

// crowd is how many agents a scenario has that is about many.
func crowd() int {
	if *agents > usual {
		return *agents
	}
	return min(60, *agents)
}

// stage is an etcd, replicas of a coordinator and a swarm of machines, each a process of its own, on the loopback address.
type stage struct {
	t     *testing.T
	plan  plan
	dir   string
	keys  store.Keys
	st    *etcdstore.Store
	leave func()

	interval, ttl, grace time.Duration

	programs  []*program
	etcd      []*program // by member
	clients   []string   // where its members serve clients
	cluster   string
	peers     []string
	replicas  map[string]*program
	addresses map[string]string // where each replica listens
	gates     map[string]string // where agents find it, if that is another place
	relays    map[string]*program
	roads     map[string][]string // what each relay is started with
	swarm     *program
	control   *swarm.Control
}

const (
	reconnectMax = 2 * time.Second
	sessionTTL   = 5 * time.Second
)

// newStage starts everybody and waits until one leads.
func newStage(t *testing.T, p plan) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "leasehold-senses-") //nolint:usetesting // it is kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	if p.interval == 0 {
		p.interval = time.Second
		if *agents > usual {
			p.interval = 3 * time.Second // as often as a thousand of them, etcd and coordinators can on two processors
		}
	}
	if p.wrongClocks {
		if err := wrongClock(); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{
		t: t, plan: p, dir: dir, keys: store.KeysOf("default"), replicas: map[string]*program{}, addresses: map[string]string{},
		gates: map[string]string{}, relays: map[string]*program{}, roads: map[string][]string{}, interval: p.interval, ttl: 3*p.interval + 2*time.Second,
	}
	s.grace = s.ttl + reconnectMax + reconnectMax/2 + time.Second // SAFE-1
	t.Cleanup(s.end)
	s.raiseEtcd(max(1, p.members))
	if s.st, err = etcdstore.Open(t.Context(), etcdstore.Config{Endpoints: s.clients, DialTimeout: longest}); err != nil {
		t.Fatal(err)
	}
	settings := store.DefaultShardSettings()
	settings.ReconnectMax, settings.ProviderPoll = store.Duration(reconnectMax), store.Duration(time.Second)
	settings.CreateRate, settings.CreateBurst = 100, 100
	s.put(s.keys.Shard(), store.Encode(store.Shard{
		Schema: store.Schema, ID: "senses-" + fmt.Sprintf("%x", rand.Uint32()), Name: "default", Created: time.Now().UTC(), Settings: settings,
	}))
	s.swarm = s.cast("swarm", "swarm", "-socket", s.socket(), "-dir", filepath.Join(dir, "disks"))
	s.await("the swarm", func() bool {
		s.control, err = swarm.Dial(s.socket())
		return err == nil
	})
	for i := range p.replicas {
		s.startReplica(string(rune('a' + i)))
	}
	s.await("a leader", func() bool {
		return s.leader() != "" && len(records[store.Replica](s, store.KindReplicas)) == p.replicas
	})
	return s
}

func (s *stage) socket() string { return filepath.Join(s.dir, "swarm.sock") }

// raiseEtcd starts etcd's members.
func (s *stage) raiseEtcd(members int) {
	s.t.Helper()
	var all []string
	for i := range members {
		s.clients, s.peers = append(s.clients, freeAddress(s.t)), append(s.peers, freeAddress(s.t))
		all = append(all, fmt.Sprintf("m%d=http://%s", i, s.peers[i]))
	}
	s.cluster = strings.Join(all, ",")
	s.etcd = make([]*program, members)
	for i := range members {
		s.startMember(i)
	}
	for _, m := range s.etcd {
		s.awaitReady(m)
	}
}

// startMember starts a member of etcd on the data that is there.
func (s *stage) startMember(i int) {
	s.t.Helper()
	dir := s.plan.disk
	if dir == "" {
		dir = s.dir
	}
	name := fmt.Sprintf("m%d", i)
	s.etcd[i] = s.cast(fmt.Sprintf("etcd-%s-%d", name, len(s.programs)), "etcd", "-name", name, "-dir", filepath.Join(dir, name), "-client", s.clients[i], "-peer", s.peers[i], "-cluster", s.cluster)
}

// startReplica starts a replica of the coordinator, where it listened before if it ever ran.
func (s *stage) startReplica(id string) {
	s.t.Helper()
	if s.addresses[id] == "" {
		s.addresses[id] = freeAddress(s.t)
		s.gates[id] = s.addresses[id]
		if s.plan.network != nil {
			s.gates[id] = freeAddress(s.t)
			s.relay("network-"+id, s.gates[id], s.addresses[id], s.plan.network...)
		}
	}
	endpoints := strings.Join(s.clients, ",")
	if slices.Contains(s.plan.behindRelay, id) {
		endpoints = s.relayed(id)
	}
	s.replicas[id] = s.cast(fmt.Sprintf("replica-%s-%d", id, len(s.programs)), "coordinator", "-id", id, "-listen", s.addresses[id], "-advertise", s.gates[id],
		"-endpoints", endpoints, "-swarm", s.socket(), "-dir", s.dir, "-session-ttl", sessionTTL.String())
}

// relayed is etcd as a replica reaches it, through relays that can be stopped.
func (s *stage) relayed(id string) string {
	var through []string
	for i, client := range s.clients {
		name := fmt.Sprintf("way-%s-%d", id, i)
		from := freeAddress(s.t)
		s.relay(name, from, client)
		through = append(through, from)
	}
	return strings.Join(through, ",")
}

func (s *stage) relay(name, from, to string, flags ...string) {
	s.t.Helper()
	s.roads[name] = append([]string{"relay", "-from", from, "-to", to}, flags...)
	s.relayAgain(name)
}

// relayAgain starts a relay, where it was if it ever ran.
func (s *stage) relayAgain(name string) {
	s.t.Helper()
	s.relays[name] = s.cast(fmt.Sprintf("%s-%d", name, len(s.programs)), s.roads[name]...)
	s.awaitReady(s.relays[name])
}

// ways are the relays whose name begins so.
func (s *stage) ways(prefix string) []*program {
	var out []*program
	for name, p := range s.relays {
		if strings.HasPrefix(name, prefix) {
			out = append(out, p)
		}
	}
	return out
}

// apply makes a group and waits until it is complete. more are further lines of its file.
func (s *stage) apply(group string, size int, more ...string) {
	s.t.Helper()
	text := fmt.Sprintf("name: %s\nsize: %d\nprovider: swarm\nreport: {interval: %s, lease_ttl: %s}\nstop_timeout: 2s\n%s",
		group, size, s.interval, s.ttl, strings.Join(append(more, ""), "\n"))
	file := filepath.Join(s.dir, group+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.leasehold("group", "apply", "-f", file)
	s.await(group+" being complete", func() bool { return s.complete(group, size) })
}

// leasehold is the operator's command, which has to work.
func (s *stage) leasehold(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(bin("leasehold"), append([]string{"--endpoints", strings.Join(s.clients, ",")}, args...)...)
	cmd.Dir, cmd.Env = s.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "USER=tester"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("leasehold %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// settle waits until nothing of what came before is left, and begins to count.
func (s *stage) settle() mark {
	s.t.Helper()
	s.awaitCalm()
	return s.mark()
}

// awaitCalm waits until every stream is open, somebody leads, and nothing has changed for as long as agents have to return.
func (s *stage) awaitCalm() {
	s.t.Helper()
	since, last := time.Now(), ""
	s.await("calm", func() bool {
		now, open := s.mood()
		if now != last || !open {
			since, last = time.Now(), now
		}
		return time.Since(since) > s.grace+time.Second
	})
}

// sees shows, once there is calm, that the leader is awake and can judge: a machine that is cut off for good is replaced, and nothing else is.
func (s *stage) sees(group string) {
	s.t.Helper()
	before := s.mark()
	victim, size := s.members(group)[0], len(s.members(group))
	if err := s.control.Cut(victim); err != nil {
		s.t.Fatal(err)
	}
	s.await("the replacement of "+victim, func() bool {
		return !slices.Contains(s.members(group), victim) && s.complete(group, size)
	})
	if c := s.since(before); c.Created != 1 || c.Destroyed != 1 || c.Judged != 1 {
		s.t.Fatalf("one machine was cut off for good: %s", c)
	}
}

func (s *stage) put(key string, value []byte) {
	s.t.Helper()
	if _, err := s.st.Commit(s.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, value)}}); err != nil {
		s.t.Fatal(err)
	}
}

// await returns when a condition holds. It looks from time to time: what it looks at is in etcd and in other processes.
func (s *stage) await(what string, condition func() bool) {
	s.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(longest)
	defer late.Stop()
	for !condition() {
		if s.swarm != nil && s.swarm.hasEnded() {
			s.t.Fatalf("the swarm has ended, while waiting for: %s: see %s", what, s.swarm.log)
		}
		select {
		case <-tick.C:
		case <-late.C:
			s.t.Fatalf("waited %s in vain for: %s", longest, what)
		}
	}
}

// pass lets a time pass that is part of the story: for so long something is frozen, or away.
func (s *stage) pass(d time.Duration) { <-time.After(d) }

var lastPort atomic.Uint32

// freeAddress is one that nobody listens on, below the ports that the kernel gives to outgoing connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	lastPort.CompareAndSwap(0, 20000+rand.Uint32N(11000))
	for range 1000 {
		port := lastPort.Add(1)
		if port >= 32000 {
			lastPort.Store(20000)
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port from 20000 to 32000")
	return ""
}

// end ends everybody, and keeps all that is known if something went wrong.
func (s *stage) end() {
	for _, p := range s.programs {
		if said := p.said(); strings.Contains(said, "panic: ") || strings.Contains(said, `"bug: `) {
			s.t.Errorf("%s broke down: see %s", p.name, p.log)
		}
	}
	if s.t.Failed() {
		s.tell()
	}
	if s.control != nil {
		_ = s.control.Close() // it ends with the swarm
	}
	for _, p := range slices.Backward(s.programs) {
		p.kill()
	}
	if s.st != nil {
		if err := s.st.Close(); err != nil {
			s.t.Errorf("close the store: %v", err)
		}
	}
	if s.leave != nil {
		s.leave()
	}
	if s.t.Failed() {
		return
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Errorf("remove what was left: %v", err)
	}
}

// tell keeps the journal beside the logs, and says how to see it again.
func (s *stage) tell() {
	again := fmt.Sprintf("go test ./tests/senses -count=1 -v -agents %d -run '^%s$'", *agents, s.t.Name())
	text := "journal not known"
	if s.st != nil {
		for _, p := range s.etcd {
			p.thaw()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if listing, err := s.st.List(ctx, s.keys.Of(store.KindEvents), 0); err == nil {
			var all []store.Versioned[store.JournalEntry]
			for _, kv := range listing.KVs {
				if v, err := store.Decode[store.JournalEntry](kv); err == nil {
					all = append(all, v)
				}
			}
			text = tellJournal(all)
			_ = os.WriteFile(filepath.Join(s.dir, "journal"), []byte(text), 0o600) // it is shown as well
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	s.t.Logf("everything is kept in %s: journal, and the log of each program\nonce more: %s\n%s", s.dir, again, strings.Join(lines[max(0, len(lines)-40):], "\n"))
}
