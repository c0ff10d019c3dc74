package stage

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/tests/certs"
	"github.com/leasehold/leasehold/tests/harness"
	"github.com/leasehold/leasehold/tests/ports"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// Longest bounds every wait. It is no measure of speed.
const Longest = 2 * time.Minute

// Plan describes a stage.
type Plan struct {
	Programs    *Programs
	Again       string        // the command that repeats the test
	Replicas    int           // replicas of the coordinator
	Members     int           // members of etcd; 0: 1
	Servers     bool          // Replicas hosts of leasehold server, each with a member; needs Elsewhere and WrongClocks
	Interval    time.Duration // of reports; 0: 1s
	WrongClocks bool          // programs whose wall clock can be set
	BehindRelay []string      // replicas reach etcd through a relay
	Network     []string      // behaviour of the relay through which agents reach the replicas; nil: no relay
	// time limit of the provider's calls; 0: 40s. A new leader waits for it before it believes that
	// a machine is gone for good
	CallTimeout time.Duration
	SessionTTL  time.Duration // of replicas; 0: 3s
	Disk        string        // etcd's data directory; "": below Dir
	Dir         string        // directory of the stage; "": a temporary one
	Elsewhere   *Elsewhere    // replaces the swarm and the network
	Settings    func(*store.ShardSettings)
	// programs run on one processor: if many stages share two, that costs a quarter less
	Narrow bool
	// program of replicas that are not part of Programs, such as another release; called whenever
	// one starts
	Builds map[string]*Programs
}

// Stage is an etcd, replicas of a coordinator and a swarm of machines, each a process of its own,
// on the loopback address.
type Stage struct {
	T     *testing.T
	Dir   string
	Keys  store.Keys
	Store *etcdstore.Store
	PKI   string // directory of the certificate authorities
	Leave func() // called at the end, if set

	Interval, TTL, Grace time.Duration // intervals of reports, of leases, and of agents' return (SAFE-1)

	Etcd      []*Program // by member
	Clients   []string   // client addresses of its members
	Replicas  map[string]*Program
	Addresses map[string]string // listening address of each replica
	Relays    map[string]*Program
	Hosts     []*Host     // of leasehold server, in place of Etcd and Replicas
	Root      *tls.Config // of etcd's root, where it has users; nil: it has none
	Swarm     *Program
	Control   *swarm.Control

	plan     Plan
	starting sync.Mutex // guards programs
	programs []*Program
	cluster  string
	Peers    []string            // peer addresses of its members
	listens  []string            // listening peer addresses
	gates    map[string]string   // a replica's address for agents, if different
	roads    map[string][]string // arguments of each relay

	roadsToEtcd map[string]string // by replica, if the test provides the network
}

const (
	reconnectMax = 2 * time.Second
	sessionTTL   = 3 * time.Second
)

// New starts all processes and waits for a leader.
func New(t *testing.T, p Plan) *Stage {
	t.Helper()
	dir, err := p.Dir, error(nil)
	if dir == "" {
		dir, err = os.MkdirTemp("", "leasehold-stage-") //nolint:usetesting // it is kept when the test fails
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.Interval == 0 {
		p.Interval = time.Second
	}
	if p.SessionTTL == 0 {
		p.SessionTTL = sessionTTL
	}
	if p.WrongClocks {
		if err := p.Programs.wrongClock(); err != nil {
			t.Fatal(err)
		}
	}
	s := &Stage{
		T: t, plan: p, Dir: dir, Keys: store.KeysOf("default"), Replicas: map[string]*Program{},
		Addresses: map[string]string{},
		gates:     map[string]string{}, Relays: map[string]*Program{}, roads: map[string][]string{},
		roadsToEtcd: map[string]string{}, Interval: p.Interval, TTL: 3*p.Interval + 2*time.Second,
	}
	s.Grace = s.TTL + reconnectMax + 2*protocol.AnswerTimeout + time.Second // SAFE-1
	t.Cleanup(s.end)
	if p.Servers {
		err = s.raiseHosts(p.Replicas)
	} else {
		s.raiseEtcd(max(1, p.Members))
		s.PKI, err = certs.Make(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.Store, err = etcdstore.Open(t.Context(),
		etcdstore.Config{Endpoints: s.Clients, TLS: s.Root, DialTimeout: Longest}); err != nil {
		t.Fatal(err)
	}
	if !p.Servers {
		s.Put(s.Keys.Shard(), store.Encode(store.Shard{
			Schema: store.Schema, ID: "stage-" + fmt.Sprintf("%x", rand.Uint32()), Name: "default",
			Created: time.Now().UTC(), Settings: store.DefaultShardSettings(),
		}))
	}
	if err := s.configure(); err != nil {
		t.Fatal(err)
	}
	if p.Elsewhere == nil {
		s.startSwarm()
	}
	if !p.Servers {
		for i := range p.Replicas {
			s.StartReplica(string(rune('a' + i)))
		}
	}
	s.Await("a leader", func() bool {
		for id, p := range s.Replicas {
			if p.HasEnded() { // on a busy machine etcd may not answer in time: an operator would start it again
				s.StartReplica(id)
			}
		}
		return s.Leader() != "" && len(Records[store.Replica](s, store.KindReplicas)) == p.Replicas
	})
	return s
}

func (s *Stage) startSwarm() {
	s.T.Helper()
	s.Swarm = s.cast("swarm", "swarm", "-socket", s.socket(), "-dir", filepath.Join(s.Dir, "disks"))
	s.Await("the swarm", func() bool {
		var err error
		s.Control, err = swarm.Dial(s.socket())
		return err == nil
	})
}

func (s *Stage) socket() string {
	if s.plan.Elsewhere != nil {
		return s.plan.Elsewhere.Provider
	}
	return filepath.Join(s.Dir, "swarm.sock")
}

// Apply creates a group and waits until it is complete. more are further lines of its file.
func (s *Stage) Apply(group string, size int, more ...string) {
	s.T.Helper()
	s.Order(group, size, more...)
	s.Await(group+" being complete", func() bool { return s.Complete(group, size) })
}

// Order creates a group without waiting.
func (s *Stage) Order(group string, size int, more ...string) {
	s.T.Helper()
	text := fmt.Sprintf("name: %s\nsize: %d\nprovider: swarm\nreport: {interval: %s, lease_ttl: %s}\nstop_timeout: 2s\n%s",
		group, size, s.Interval, s.TTL, strings.Join(append(more, ""), "\n"))
	file := filepath.Join(s.Dir, group+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
	s.Leasehold("group", "apply", "-f", file)
}

// Leasehold runs the operator's command, which must succeed.
func (s *Stage) Leasehold(args ...string) string {
	s.T.Helper()
	out, err := s.Try(args...)
	if err != nil {
		s.T.Fatalf("leasehold %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try runs the operator's command, which may fail.
func (s *Stage) Try(args ...string) (string, error) {
	s.T.Helper()
	return s.TryWith(s.plan.Programs, args...)
}

// TryWith runs the operator's command of another build.
func (s *Stage) TryWith(programs *Programs, args ...string) (string, error) {
	s.T.Helper()
	cmd := exec.CommandContext(s.T.Context(), programs.Path("leasehold"),
		append(s.access(args[0]), args...)...)
	cmd.Dir, cmd.Env = s.Dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "USER=tester"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Settle waits until everything that was in progress has ended, and returns a mark to count from.
func (s *Stage) Settle() Mark {
	s.T.Helper()
	s.AwaitCalm()
	return s.Mark()
}

// AwaitCalm waits until every stream is open, a replica leads, and nothing has changed for the time
// that agents have to return.
func (s *Stage) AwaitCalm() {
	s.T.Helper()
	since, last := time.Now(), ""
	s.Await("calm", func() bool {
		now, open := s.mood()
		if now != last || !open {
			since, last = time.Now(), now
		}
		return time.Since(since) > s.Grace+time.Second
	})
}

// Sees shows that the leader works: it waits until the shard is calm, cuts one machine off for
// good, and expects that it alone is replaced.
func (s *Stage) Sees(group string) {
	s.T.Helper()
	before := s.Mark()
	victim, size := s.Instances(group)[0], len(s.Instances(group))
	if err := s.Control.Cut(victim); err != nil {
		s.T.Fatal(err)
	}
	s.Await("the replacement of "+victim, func() bool {
		return !slices.Contains(s.Instances(group), victim) && s.Complete(group, size)
	})
	if c := s.Since(before); c.Created != 1 || c.Destroyed != 1 || c.Judged != 1 {
		s.T.Fatalf("one machine was cut off for good: %s", c)
	}
}

// Put writes a key.
func (s *Stage) Put(key string, value []byte) {
	s.T.Helper()
	if _, err := s.Store.Commit(s.T.Context(), store.Txn{Writes: []store.Write{store.Put(key, value)}}); err != nil {
		s.T.Fatal(err)
	}
}

// Await waits until a condition holds. It polls, because the condition depends on etcd and on other
// processes.
func (s *Stage) Await(what string, condition func() bool) {
	s.T.Helper()
	harness.Await(s.T, what, Longest, 200*time.Millisecond, func() bool {
		if condition() {
			return true
		}
		if s.Swarm != nil && s.Swarm.HasEnded() {
			s.T.Fatalf("the swarm has ended, while waiting for: %s: see %s", what, s.Swarm.log)
		}
		return false
	}, nil)
}

// Pass waits for a time that is part of the scenario: something is frozen, or away, for so long.
func (s *Stage) Pass(d time.Duration) { <-time.After(d) }

// addresses are for everything that listens here. Other suites use other ports.
var addresses = ports.Between(20000, 32000)

// end stops all processes, and keeps the directory after a failure.
func (s *Stage) end() {
	for _, p := range s.programs {
		if said := p.Said(); strings.Contains(said, "panic: ") || strings.Contains(said, `"bug: `) {
			s.T.Errorf("%s broke down: see %s", p.Name, p.log)
		}
	}
	if s.T.Failed() {
		s.tell()
	}
	if s.Control != nil {
		_ = s.Control.Close() // ends with the swarm
	}
	s.endHosts()
	for _, p := range slices.Backward(s.programs) {
		p.Kill()
	}
	if s.Store != nil {
		if err := s.Store.Close(); err != nil {
			s.T.Errorf("close the store: %v", err)
		}
	}
	if s.Leave != nil {
		s.Leave()
	}
	if s.T.Failed() {
		return
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		s.T.Errorf("remove what was left: %v", err)
	}
}

// tell writes the journal beside the logs, and prints how to repeat the test.
func (s *Stage) tell() {
	text := "journal not known"
	if s.Store != nil {
		for _, p := range s.Etcd {
			p.Thaw()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if listing, err := s.Store.List(ctx, s.Keys.Of(store.KindEvents), 0); err == nil {
			var all []store.Versioned[store.JournalEntry]
			for _, kv := range listing.KVs {
				if v, err := store.Decode[store.JournalEntry](kv); err == nil {
					all = append(all, v)
				}
			}
			text = tellJournal(all)
			_ = os.WriteFile(filepath.Join(s.Dir, "journal"), []byte(text), 0o600) // shown as well
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	s.T.Logf("everything is kept in %s: journal, and the log of each program\nonce more: %s\n%s", s.Dir, s.plan.Again,
		strings.Join(lines[max(0, len(lines)-40):], "\n"))
}
