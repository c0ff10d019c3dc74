package services

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lmittmann/tint"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/supervised"
	"github.com/leasehold/leasehold/coordinator/api"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/process"
	"github.com/leasehold/leasehold/store"
)

// Host holds what a service needs from its process.
type Host struct {
	Stdout, Stderr io.Writer
	// Terminal reports whether a person watches Stderr, Colour whether that terminal shows colours.
	Terminal, Colour bool
	Version          string
	Shard            string
	// SecretsKey holds keys for secrets from the environment, one per line; "": none.
	SecretsKey string
	// Open opens the etcd that the flags name.
	Open func(ctx context.Context, log *slog.Logger) (store.Store, func() error, error)
	// Around wraps the store of a replica whose etcd is its own host's, for tests; may be nil.
	Around func(store.Store) store.Store
	// Login opens the shard for users of etcd, for the API: over a connection to etcd, or, for nil,
	// the one that the flags name.
	Login func(*program.Connection) api.Login
	// Members asks etcd's members for their state, over a connection or, for nil, the one that the
	// flags name; may be nil.
	Members func(context.Context, *program.Connection) (store.Members, error)
	// Allowed returns why etcd would not give our user the rights of a role.
	Allowed func(ctx context.Context, role store.Role) error
	// OwnEtcd means that a coordinator's etcd is the one that this program runs as well.
	OwnEtcd bool
	// AwaitsBackup means that that etcd was created for a shard from a backup.
	AwaitsBackup bool
	// Adapters are those that the program links for a coordinator.
	Adapters Adapters
	// Providers are a coordinator's providers besides the process provider; may be nil.
	Providers map[string]provider.Provider
	// Balancers are a coordinator's load balancers besides the ones in its file; may be nil.
	Balancers map[string]balancer.Balancer
	// Authorities are a coordinator's authorities for workloads' certificates besides the ones in
	// its file; may be nil.
	Authorities map[string]authority.Authority
	// Ended returns which parts of this host's server ended by themselves; nil: it has no parts.
	Ended func() []store.PartEnds
	// Ready is called once with the address, when a coordinator serves agents; may be nil.
	Ready func(address string)
	// Args is the command line, for a service some of whose parts are processes of their own.
	Args []string
	// Service is how this process is supervised.
	Service supervised.Service
	// Register adds services to the agents' port; may be nil.
	Register func(grpc.ServiceRegistrar)
	// Line formats a journal entry for people.
	Line func(store.JournalEntry) string
}

// Problem is an error with the next step.
type Problem struct {
	What string
	Next string
}

func (p *Problem) Error() string { return p.What }

// ErrReported is the error of a service whose failure has been reported already.
var ErrReported = errors.New("reported already")

func problem(next, format string, args ...any) error {
	return &Problem{What: fmt.Sprintf(format, args...), Next: next}
}

// logger logs for a person on a terminal, and JSON everywhere else.
func (h *Host) logger(level slog.Level) *slog.Logger {
	if h.Terminal {
		return slog.New(tint.NewTextHandler(h.Stderr,
			&tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !h.Colour}))
	}
	return slog.New(slog.NewJSONHandler(h.Stderr, &slog.HandlerOptions{Level: level}))
}

// Logger is logger with a level by name.
func (h *Host) Logger(level string) *slog.Logger { return h.logger(parseLevel(level)) }

// parseLevel parses a log level.
func parseLevel(name string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(name)) // kong's enum allows nothing else
	return level
}

// replicaID returns a unique ID that begins with the host's name.
func replicaID() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host, _, _ = strings.Cut(host, ".")
	id := make([]byte, 3)
	if _, err := rand.Read(id); err != nil {
		return "", err
	}
	return strings.ToLower(host) + "-" + hex.EncodeToString(id), nil
}

// machines opens the provider whose machines are processes of this host, in a directory.
func machines(dir, agent string, zones []string, log *slog.Logger) (*process.Provider, error) {
	command, err := agentCommand(agent)
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil, problem("build or install the agent, or give its path with --agent", "agent %s: %s", command[0],
			err)
	}
	p, err := process.New(process.Config{Dir: dir, AgentCommand: command, Zones: zones, Logger: log})
	if err != nil {
		return nil, problem("choose another directory for the machines, or repair this one", "%s", err)
	}
	return p, nil
}

// agentCommand finds the agent: the one that was named, leasehold-agent beside this program or on
// the path, or this program, which can be an agent too.
func agentCommand(named string) ([]string, error) {
	if named != "" {
		return []string{named}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	beside := filepath.Join(filepath.Dir(self), "leasehold-agent")
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return []string{beside}, nil
	}
	return []string{self, "agent"}, nil
}

// listenProblem explains why listening on an address failed.
func listenProblem(flag, address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return problem("stop the program that listens there, or choose another address with "+flag+" (port 0 takes a free "+
			"one)", "%s: %s is taken by another program", flag, address)
	}
	return problem("choose an address of this machine with "+flag, "%s: cannot listen on %s: %s", flag, address, err)
}

// samePort reports whether an address that could not be listened on has this port. Whether the port
// is free now proves nothing: another server of this process may have had it.
func samePort(err error, address string) bool {
	var failed *net.OpError
	if !errors.As(err, &failed) || failed.Addr == nil {
		return false
	}
	_, tried, _ := net.SplitHostPort(failed.Addr.String())
	_, port, _ := net.SplitHostPort(address)
	return tried == port
}

// portFree reports whether an address can be listened on now.
func portFree(ctx context.Context, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// providers returns all providers of a coordinator, by name.
func (h *Host) providers(processes *process.Provider) map[string]provider.Provider {
	all := map[string]provider.Provider{ownProvider: processes}
	maps.Copy(all, h.Providers)
	return all
}
