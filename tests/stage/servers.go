package stage

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/store"
)

// Host runs leasehold server: a supervisor, a member of etcd and a replica. If the supervisor ends
// by itself it is started again, as systemd does.
type Host struct {
	ID            string
	Dir           string // its disk
	Member        Actor
	Replica       Actor
	Agents, Peers string // addresses at which the others find it
	Client        string // address at which its member listens for clients

	stage *Stage
	ports [3]string // for agents, clients of etcd and other members

	mu    sync.Mutex
	run   *Program
	logs  []string // of all its processes so far
	join  []string
	down  bool // it is not to run now
	waits sync.WaitGroup
}

// The addresses of hosts. Each listens on one, and is found by others at another one, where the
// test's network is.
const (
	listens = "127.0.0.1"
	found   = "127.0.0.2"
)

// HostSource is the address from which a host connects to others, its member excepted.
func HostSource(i int) string { return fmt.Sprintf("127.0.3.%d", i+1) }

// restartAfter is RestartSec of the unit.
const restartAfter = time.Second

// raiseHosts starts the hosts of a cluster, by the commands that the first one prints.
func (s *Stage) raiseHosts(n int) error {
	for i := range n {
		id := string(rune('a' + i))
		h := &Host{ID: id, Dir: filepath.Join(s.Dir, "hosts", id), stage: s}
		h.Member, h.Replica = &part{host: h, name: "member"}, &part{host: h, name: "replica"}
		for p := range h.ports {
			_, h.ports[p], _ = net.SplitHostPort(addresses.FreeAddress(s.T))
		}
		h.Agents, h.Client = net.JoinHostPort(found, h.ports[0]), net.JoinHostPort(listens, h.ports[1])
		h.Peers = net.JoinHostPort(found, h.ports[2])
		s.Hosts, s.Clients = append(s.Hosts, h), append(s.Clients, h.Client)
		s.plan.Elsewhere.Host(i, id, h.ports, listens, found)
	}
	first := s.Hosts[0]
	if err := first.Start("-init"); err != nil {
		return err
	}
	s.awaitHost(first)
	s.PKI = filepath.Join(s.Dir, "pki") // a copy: the host may lose its disk
	if out, err := exec.Command("cp", "-a", filepath.Join(first.Dir, "pki"), s.PKI).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the certificates: %w: %s", err, out)
	}
	secure, err := services.Credentials{Dir: s.PKI}.Client(store.RoleRoot)
	if err != nil {
		return err
	}
	s.Root = secure
	printed := first.Said()
	for _, h := range s.Hosts[1:] {
		flags, err := joinFlags(printed, h.ID)
		if err != nil {
			return err
		}
		if err := h.Start(flags...); err != nil {
			return err
		}
		s.awaitHost(h)
	}
	return nil
}

// awaitHost waits until a host is ready.
func (s *Stage) awaitHost(h *Host) {
	s.T.Helper()
	s.Await("host "+h.ID+" being ready", func() bool { return strings.Contains("\n"+h.Said(), "\nready  "+h.ID+" ") })
}

// joinFlags are the flags with which a host joins, out of what a command has printed.
func joinFlags(printed, id string) ([]string, error) {
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		if i := slices.Index(words, "--join"); i > 0 && strings.Contains(line, "leasehold server --name "+id+" ") {
			return words[i:], nil
		}
	}
	return nil, fmt.Errorf("no command for %s in:\n%s", id, printed)
}

// Start starts a host that does not run. join are the flags of its first start; none: the
// flags of its last one.
func (h *Host) Start(join ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = false
	if len(join) > 0 {
		h.join = join
	}
	if h.run != nil && !h.run.HasEnded() {
		return nil
	}
	return h.start()
}

// start starts it, and again whenever it ends without having been told to. The caller holds mu.
func (h *Host) start() error {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return err
	}
	i := slices.Index(h.stage.Hosts, h)
	args := []string{
		"server", "-name", h.ID, "-dir", h.Dir, "-address", found, "-bind", listens, "-port", h.ports[0],
		"-etcd-port", h.ports[1], "-peer-port", h.ports[2], "-session-ttl", h.stage.plan.SessionTTL.String(),
		"-clock", h.clock(), "-member-source", MemberSource(i), "-source", HostSource(i), "-swarm", h.stage.socket(),
	}
	name := fmt.Sprintf("server-%s-%d", h.ID, len(h.logs))
	p, err := h.stage.startProgram(name, h.stage.castProgram(),
		append(append(args, h.stage.plan.Elsewhere.Replica(h.ID)...), h.join...)...)
	if err != nil {
		return err
	}
	h.run, h.logs = p, append(h.logs, p.log)
	h.waits.Go(func() {
		<-p.Ended()
		<-time.After(restartAfter)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.down || h.run != p {
			return
		}
		if err := h.start(); err != nil {
			h.stage.T.Errorf("start host %s again: %v", h.ID, err)
		}
	})
	return nil
}

// clock is the file with how wrong its clock is.
func (h *Host) clock() string { return filepath.Join(h.stage.Dir, "clock-"+h.ID) }

// Said is the latest log: the supervisor's, with its parts' logs.
func (h *Host) Said() string { return h.latest().Said() }

func (h *Host) latest() *Program {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.run
}

// PowerOff kills all of a host at once, and leaves it off.
func (h *Host) PowerOff() {
	h.mu.Lock()
	h.down = true
	h.mu.Unlock()
	parts := []<-chan struct{}{endOf(h.Member.PID()), endOf(h.Replica.PID())}
	h.latest().Kill() // and the kernel its parts
	for _, ended := range parts {
		<-ended
	}
}

// Stop ends a host in order, and leaves it off. It reports whether it ended in time.
func (h *Host) Stop() error {
	h.mu.Lock()
	h.down = true
	h.mu.Unlock()
	p := h.latest()
	p.Terminate()
	select {
	case <-p.Ended():
		return nil
	case <-time.After(Longest):
		return fmt.Errorf("host %s was told to end, and runs on", h.ID)
	}
}

// Freeze stops everything on a host.
func (h *Host) Freeze() {
	h.latest().Freeze()
	h.Member.Freeze()
	h.Replica.Freeze()
}

// FreezeSupervisor stops the supervisor alone.
func (h *Host) FreezeSupervisor() { h.latest().Freeze() }

// Thaw resumes what is stopped.
func (h *Host) Thaw() {
	h.Member.Thaw()
	h.Replica.Thaw()
	h.latest().Thaw()
}

// ReplaceHost has a host that was lost with its disk join again, by the command of another one.
func (s *Stage) ReplaceHost(ctx context.Context, lost, helper *Host) error {
	out, err := s.Try("server", "replace", lost.ID, "--confirm", lost.ID, "--data-dir", helper.Dir, "--timeout", "30s")
	if err != nil {
		return fmt.Errorf("server replace %s: %w: %s", lost.ID, err, out)
	}
	flags, err := joinFlags(out, lost.ID)
	if err != nil {
		return err
	}
	if err := lost.Start(flags...); err != nil {
		return err
	}
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for !strings.Contains("\n"+lost.Said(), "\nready  "+lost.ID+" ") {
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("host %s joins again: %w", lost.ID, ctx.Err())
		}
	}
	return nil
}

// endHosts kills all hosts, at the end of the test.
func (s *Stage) endHosts() {
	for _, h := range s.Hosts {
		if h.latest() == nil {
			continue
		}
		h.Thaw()
		h.PowerOff()
	}
	for _, h := range s.Hosts {
		h.waits.Wait()
	}
}

// configure gives the shard the settings of the stage.
func (s *Stage) configure() error {
	kv, err := s.Store.Get(s.T.Context(), s.Keys.Shard())
	if err != nil {
		return err
	}
	shard, err := store.Decode[store.Shard](kv)
	if err != nil {
		return err
	}
	settings := &shard.Record.Settings
	settings.ReconnectMax, settings.ProviderPoll = store.Duration(reconnectMax), store.Duration(time.Second)
	settings.CreateRate, settings.CreateBurst = 100, 100
	if s.plan.Settings != nil {
		s.plan.Settings(settings)
	}
	_, err = s.Store.Commit(s.T.Context(), store.Txn{
		Conditions: []store.Condition{store.Unchanged(kv)},
		Writes:     []store.Write{store.Put(kv.Key, store.Encode(shard.Record))},
	})
	return err
}

// access are the flags with which a command reaches etcd: as an operator or, for what needs more,
// as a coordinator.
func (s *Stage) access(command string) []string {
	flags := []string{"--endpoints", strings.Join(s.Clients, ",")}
	if s.Root == nil {
		return flags
	}
	credentials := services.Credentials{Dir: s.PKI}
	user := store.RoleOperator
	if command == "repair" {
		user = store.RoleCoordinator
	}
	cert, key := credentials.Of(string(user))
	return append(flags, "--cacert", credentials.CA("operators"), "--cert", cert, "--key", key)
}
