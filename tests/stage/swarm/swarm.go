package swarm

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/leasehold/leasehold/agent"
	"github.com/leasehold/leasehold/agent/certificate"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/provider/fake/socket"
)

// Config says where a swarm keeps its files.
type Config struct {
	Socket string // socket of its provider and its control
	Dir    string // directory of the agents' state
	Logger *slog.Logger
}

// swarm is the machines of a process.
type swarm struct {
	cfg   Config
	cloud *fake.Provider

	mu    sync.Mutex
	wires map[string]*wire     // by instance
	slow  map[fake.Call]func() // ends a slowness

	papers  papers
	agents  agents
	calls   calls
	starved starved
}

// Serve runs machines until ctx ends.
func Serve(ctx context.Context, cfg Config) error {
	s := &swarm{cfg: cfg, wires: map[string]*wire{}, slow: map[fake.Call]func(){}}
	s.cloud = fake.NewProvider(fake.Config{}, fake.Inside{Run: s.live})
	of := func(replica string) provider.Provider { return front{s.cloud, replica, &s.calls} }
	server, err := socket.Listen(ctx, cfg.Socket,
		map[string]any{"Machines": socket.NewMachines(ctx, of), "Control": &service{s}})
	if err != nil {
		return err
	}
	s.starved.probe(ctx)
	server.Close()
	s.cloud.Close()
	return nil
}

// wire is the network of a machine.
func (s *swarm) wire(instance string) *wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wires[instance]
	if w == nil {
		w = &wire{conns: map[net.Conn]bool{}}
		s.wires[instance] = w
	}
	return w
}

// live is one boot of a machine: its agent, until the machine goes down.
func (s *swarm) live(ctx context.Context, boot fake.Boot) {
	instance := boot.Bootstrap.Instance
	if s.papers.keeps(boot.Bootstrap) {
		<-ctx.Done()
		return
	}
	dir := filepath.Join(s.cfg.Dir, instance)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.cfg.Logger.Error("machine has no disk", "instance", instance, "error", err)
		return
	}
	if s.agents.isProgram(instance) {
		s.run(ctx, boot, dir)
		return
	}
	var papers agent.Certificate = certificate.Unsecured{}
	if boot.Bootstrap.CA != "" {
		own, err := certificate.Open(certificate.Config{Bootstrap: boot.Bootstrap, StateDir: dir},
			certificate.Deps{Logger: s.cfg.Logger})
		if err != nil {
			s.cfg.Logger.Error("machine has no certificate", "instance", instance, "error", err)
			return
		}
		papers = own
	}
	a, err := agent.New(agent.Config{Bootstrap: boot.Bootstrap, BootID: boot.ID, StateDir: dir, Version: "swarm"},
		agent.Deps{
			Certificate: papers, Logger: s.cfg.Logger, Host: still{}, Workload: none{}, Hook: idle{},
			Checks: unchecked{}, Notices: calm{}, Evacuation: calm{}, Fence: unfenced{}, Dial: s.wire(instance).dial,
		})
	if err != nil {
		panic(err) // the agent wants something that a swarm does not provide yet: no scenario could continue
	}
	if err := a.Run(ctx); err != nil {
		s.cfg.Logger.Error("agent ended", "instance", instance, "error", err)
	}
}
