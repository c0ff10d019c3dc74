package services

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/backup"
	"github.com/leasehold/leasehold/coordinator/download"
	"github.com/leasehold/leasehold/coordinator/garbage"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Coordinator is the command coordinator: one replica.
type Coordinator struct {
	Listen    string `help:"Address to listen on for agents (default: ${default})." default:"127.0.0.1:7420" placeholder:"HOST:PORT"`
	Advertise string `help:"Address that agents connect to (default: the listening address)." placeholder:"HOST:PORT"`
	ID        string `name:"id" help:"Unique name of this replica (default: generated)." placeholder:"NAME"`
	PKI       string `name:"pki" help:"Directory of the certificate authorities (default: ${default})." env:"LEASEHOLD_PKI" default:"${pki_dir}" type:"path" placeholder:"DIR"`
	Machines  string `help:"Directory of the process provider's machines (default: ${default})." default:"/var/lib/leasehold/machines" type:"path" placeholder:"DIR"`
	StateDir  string `help:"Directory of this replica's state: the shard's ID and etcd's revisions (default: ${default})." env:"LEASEHOLD_STATE_DIR" default:"/var/lib/leasehold/coordinator" type:"path" placeholder:"DIR"`
	Replica   `embed:""`
	KeyFile   `embed:""`

	// StreamsPerConnection is the number of streams on one connection if agents of a bench share
	// it. A certificate names one instance, so such connections have no TLS; 0: the default, with
	// TLS.
	StreamsPerConnection uint32 `kong:"-"`
}

// Replica holds the flags of a replica that are the same wherever its files are.
type Replica struct {
	Agent      string        `help:"Agent binary for machines (default: leasehold-agent next to this program, else this program)." type:"path" placeholder:"FILE"`
	Downloads  string        `help:"Address to serve the agent program on, to machines whose image has none (default: off)." env:"LEASEHOLD_DOWNLOADS" placeholder:"HOST:PORT"`
	Agents     string        `help:"Directory of the agent programs that are served: leasehold-agent-linux-amd64 and -arm64 (default: the directory of this program)." type:"path" placeholder:"DIR"`
	Zones      []string      `help:"Zones of the process provider (default: ${default})." default:"local" placeholder:"NAME"`
	Providers  string        `help:"File with the providers, load balancers and authorities of this replica (default: the process provider alone)." env:"LEASEHOLD_PROVIDERS" type:"path" placeholder:"FILE"`
	SessionTTL time.Duration `help:"How long a leader may be silent before another replica takes over, 2s to 1m (default: ${default})." default:"3s" placeholder:"DURATION"`
	LogLevel   string        `help:"Log level: ${enum}." enum:"debug,info,warn,error" default:"info"`
	HTTP       `embed:""`
	Discovery  `embed:""`
	Traces     `embed:""`
	Backups    `embed:"" prefix:"backup-"`
}

// Run serves until ctx ends; then it resigns and sends its agents to other replicas.
func (c *Coordinator) Run(ctx context.Context, h *Host) error {
	program.OutliveOutput()
	if err := c.checkSessionTTL(); err != nil {
		return err
	}
	roomForGarbage()
	log := h.logger(parseLevel(c.LogLevel))
	if err := portFree(ctx, c.Listen); err != nil {
		return listenProblem("--listen", c.Listen, err)
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	deps, err := c.open(ctx, h, log)
	if err != nil {
		return err
	}
	backups, err := c.Backups.config()
	if err != nil {
		return err
	}
	secured, end, err := c.secure(ctx, log)
	if err != nil {
		return err
	}
	defer end()
	st, closeStore, err := h.Open(ctx, log)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }() // the process ends in any case
	if err := h.Allowed(ctx, store.RoleCoordinator); err != nil {
		return err
	}
	id := c.ID
	if id == "" {
		if id, err = replicaID(); err != nil {
			return err
		}
	}
	traces, endTraces, err := c.Traces.open(ctx, h, id, log)
	if err != nil {
		return err
	}
	defer endTraces()
	web := newSide(h, log)
	collector := garbage.New(log)
	deps.Store, deps.Meter, deps.Traces, deps.Authority = web.measured(st), web.metrics, traces, secured
	deps.Listen = listenFor(collector)
	r, err := coordinator.New(c.config(h, id), deps)
	if err == nil {
		err = web.open(ctx, c.HTTP, h, id, r, st)
	}
	if err != nil {
		return err
	}
	found, err := c.Discovery.open(ctx, h, r, c.HTTP.access(), log)
	if err != nil {
		return err
	}
	var schedule *backup.Schedule
	if backups != nil {
		backups.Shard, backups.By, backups.Program = h.Shard, id, h.Version
		schedule = backup.NewSchedule(*backups, st, log)
	}
	err = web.around(ctx, func(ctx context.Context) error {
		defer accompany(ctx, h, r, collector, schedule)()
		return found.around(ctx, r.Run)
	})
	return c.explain(ctx, err)
}

// accompany starts what runs beside a replica: Go's collector, notifications to systemd, and
// backups, if there is a schedule. The returned function ends them.
func accompany(ctx context.Context, h *Host, r *coordinator.Replica, collector *garbage.Collector,
	schedule *backup.Schedule,
) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { collector.Run(ctx, r.Bearable) })
	h.Service.Ready() // also while it waits for its shard
	running.Go(func() { h.Service.Watch(ctx, r.Working) })
	if schedule != nil {
		running.Go(func() { schedule.Run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

func (c *Coordinator) checkSessionTTL() error {
	if c.SessionTTL < 2*time.Second || c.SessionTTL > time.Minute || c.SessionTTL%time.Second != 0 {
		return problem("leasehold coordinator --help", "--session-ttl: %s: must be whole seconds, 2s to 1m",
			c.SessionTTL)
	}
	return nil
}

// listenFor returns a function that listens for agents. Reads of their connections wait while the
// collector works.
func listenFor(collector *garbage.Collector) func(ctx context.Context, address string) (net.Listener, error) {
	return func(ctx context.Context, address string) (net.Listener, error) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return collector.Listener(l), nil
	}
}

func (c *Coordinator) config(h *Host, id string) coordinator.Config {
	return coordinator.Config{
		Shard: h.Shard, ID: id, Listen: c.Listen, Advertise: c.Advertise, SessionTTL: c.SessionTTL, Version: h.Version,
		StreamsPerConnection: c.StreamsPerConnection,
		StateFile:            stateFile(c.StateDir, h.Shard),
		OwnEtcd:              h.OwnEtcd,
		AwaitsBackup:         h.AwaitsBackup,
		Downloads:            c.Downloads, AdvertiseDownloads: beside(c.Advertise, c.Downloads),
	}
}

// open opens what the flags name, without etcd: providers, load balancers, keys and so on.
func (c *Coordinator) open(ctx context.Context, h *Host, log *slog.Logger) (deps coordinator.Deps, err error) {
	deps = coordinator.Deps{Logger: log, Ready: h.Ready, Register: h.Register, Ended: h.Ended}
	if deps.Providers, err = c.providers(ctx, h, log); err != nil {
		return deps, err
	}
	if err = openNamed(ctx, h, c.Providers, c.PKI, &deps); err != nil {
		return deps, err
	}
	if deps.Agents, err = c.agents(log); err != nil {
		return deps, err
	}
	keys, err := c.keys(h, log)
	if err != nil {
		return deps, err
	}
	deps.Secrets = keys
	return deps, nil
}

// explain adds the next step to errors that have one.
func (c *Coordinator) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && c.Downloads != "" && samePort(err, c.Downloads):
		return listenProblem("--downloads", c.Downloads, err)
	case errors.Is(err, syscall.EADDRINUSE):
		return listenProblem("--listen", c.Listen, err)
	case errors.Is(err, store.ErrSchema):
		return problem("install the version that wrote it", "%s", err)
	case errors.Is(err, store.ErrDenied):
		return problem("give --user NAME:PASSWORD, or --cert and --key, of a coordinator", "%s", err)
	}
	return err
}

// agents reads the agent programs that the coordinator serves, if any.
func (c *Coordinator) agents(log *slog.Logger) (download.Agents, error) {
	if c.Downloads == "" {
		return nil, nil
	}
	dir := c.Agents
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		dir = filepath.Dir(self)
	}
	if host, _, err := net.SplitHostPort(c.Downloads); c.Advertise == "" {
		if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
			return nil, problem("give the address that machines reach, or --advertise beside it",
				"--downloads: %s: machines cannot use this address", c.Downloads)
		}
	}
	agents, err := download.Read(dir, log)
	if err != nil {
		return nil, problem("name a directory that has them with --agents (make agents builds them), "+
			"or leave --downloads out",
			"--downloads: %s", err)
	}
	return agents, nil
}

// beside returns the address of a second port for machines: the host that agents connect to, if
// that was given; "": the listening address.
func beside(advertise, listen string) string {
	host, _, err := net.SplitHostPort(advertise)
	_, port, err2 := net.SplitHostPort(listen)
	if err != nil || err2 != nil || port == "0" {
		return ""
	}
	return net.JoinHostPort(host, port)
}

// providers opens the replica's providers: the ones in its file, or the process provider if there
// are none.
func (c *Coordinator) providers(ctx context.Context, h *Host, log *slog.Logger) (map[string]provider.Provider, error) {
	if c.Providers != "" {
		if named, err := openProviders(ctx, h, c.Providers, log); err != nil || len(named) > 0 {
			return named, err
		}
	}
	processes, err := machines(c.Machines, c.Agent, c.Zones, log)
	if err != nil {
		return nil, err
	}
	return h.providers(processes), nil
}

// stateFile is where a replica keeps what it knows about a shard.
func stateFile(dir, shard string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, shard+".json")
}

// secure opens the authority of the agents' streams, and reloads its files until the end.
func (c *Coordinator) secure(ctx context.Context, log *slog.Logger) (secured gateway.Authority, end func(), err error) {
	if c.StreamsPerConnection > 0 {
		return nil, func() {}, nil
	}
	issuing, err := pki.Open(c.PKI, log)
	if err != nil {
		return nil, nil, err
	}
	return issuing, follow(ctx, issuing), nil
}

// follow makes an authority reload its files until it is stopped.
func follow(ctx context.Context, issuing *pki.Authority) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // agents are served until the end
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = issuing.Run(ctx) // ends with its context
	}()
	return func() {
		cancel()
		<-done
	}
}

// roomForGarbage sets GOMAXPROCS to four on machines with fewer processors, unless it is set. Go's
// garbage collector takes a quarter: of four, one dedicated worker. Of two it has none, and
// allocating goroutines must assist: with a hundred thousand agents no lease was renewed for two to
// four seconds, repeatedly.
func roomForGarbage() {
	const least = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < least {
		runtime.GOMAXPROCS(least)
	}
}
