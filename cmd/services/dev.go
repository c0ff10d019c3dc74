package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/provider/process"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// Dev is the command dev: everything on one machine.
type Dev struct {
	DataDir    string   `help:"Data directory (default: leasehold/dev in XDG_STATE_HOME or ~/.local/state)." env:"LEASEHOLD_DATA_DIR" placeholder:"DIR"`
	EtcdListen string   `help:"Address of the embedded etcd (default: 127.0.0.1:2379, or a free port if that is taken)." placeholder:"HOST:PORT"`
	Listen     string   `help:"Address to listen on for agents (default: 127.0.0.1:7420, or a free port if that is taken)." placeholder:"HOST:PORT"`
	HTTP       string   `name:"http" help:"Address to serve the page, health and metrics on (default: 127.0.0.1:7421, or a free port if that is taken), or off." env:"LEASEHOLD_HTTP" placeholder:"HOST:PORT"`
	API        bool     `name:"http-api" help:"Serve the API for programs as well: reads for everyone on this machine, edits with users of etcd." env:"LEASEHOLD_HTTP_API"`
	Group      []string `help:"Group file to apply at startup instead of the demo group. May be repeated." type:"path" placeholder:"FILE"`
	Providers  string   `help:"File with providers in addition to the process provider, load balancers, authorities and webhooks." env:"LEASEHOLD_PROVIDERS" type:"path" placeholder:"FILE"`
	LogLevel   string   `help:"Log level of dev.log: ${enum}." enum:"debug,info,warn,error" default:"info"`
	Discovery  `embed:""`
	Traces     `embed:""`
}

// The addresses that dev uses if they are free.
const (
	devEtcd   = "127.0.0.1:2379"
	devAgents = "127.0.0.1:7420"
	devHTTP   = "127.0.0.1:7421"
)

// Run starts everything, shows what happens, and stops everything that it started when ctx ends.
func (d *Dev) Run(ctx context.Context, h *Host) (err error) {
	program.OutliveOutput()
	groups, err := d.readGroups()
	if err != nil {
		return err
	}
	dir, err := d.makeDataDir()
	if err != nil {
		return err
	}
	log, closeLog, err := d.openLog(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	etcd, credentials, err := d.startEtcd(ctx, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	st, err := credentials.open(ctx, dir, etcd.Endpoint(), h.Shard, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	providers, processes, err := d.providers(ctx, h, dir, log)
	if err != nil {
		return err
	}
	agents, err := d.agentsAddress(ctx, dir)
	if err != nil {
		return err
	}
	id, err := replicaID()
	if err != nil {
		return err
	}
	created, err := createShard(ctx, st, h.Shard, stateFile(dir, h.Shard))
	if err != nil {
		return err
	}
	deps, endFollowing, err := d.dependencies(ctx, h, dir, credentials, log)
	if err != nil {
		return err
	}
	defer endFollowing()
	deps.Providers = providers
	traces, endTraces, err := d.Traces.open(ctx, h, id, log)
	if err != nil {
		return err
	}
	defer endTraces()
	ready := make(chan string, 1)
	http, err := d.httpAddress()
	if err != nil {
		return err
	}
	http.API, http.etcd = d.API, credentials.connection(etcd.Endpoint())
	web := newSide(h, log)
	deps.Store, deps.Meter, deps.Traces = web.measured(st), web.metrics, traces
	deps.Ready = func(address string) { ready <- address }
	replica, err := coordinator.New(coordinator.Config{
		Shard: h.Shard, ID: id, Listen: agents, Version: h.Version, StateFile: stateFile(dir, h.Shard),
		OwnEtcd: true,
	}, deps)
	if err == nil {
		err = web.open(ctx, http, h, id, replica, st)
	}
	if err != nil {
		return err
	}
	found, err := d.findable(ctx, h, replica, log)
	if err != nil {
		return err
	}
	if err := credentials.writeSettings(dir, etcd.Endpoint(), h.Shard); err != nil {
		return problem(DirectoryNext(err), "data directory: %s", err)
	}
	defer func() { err = errors.Join(err, credentials.removeSettings(dir)) }()
	w := &devWorld{
		web: web, found: found, h: h, dir: dir, store: st, processes: processes, replica: replica,
		keys: store.KeysOf(h.Shard), endpoint: etcd.Endpoint(), etcdStopped: etcd.Stopped(), first: created,
	}
	return w.run(ctx, groups, ready)
}

// dependencies opens what the replica works with besides its store and its providers. The returned
// function stops the reloading of the authority's files.
func (d *Dev) dependencies(ctx context.Context, h *Host, dir string, credentials Credentials, log *slog.Logger) (
	deps coordinator.Deps, end func(), err error,
) {
	keys, err := devKeys(dir, log)
	if err != nil {
		return deps, nil, err
	}
	issuing, err := pki.Open(credentials.Dir, log)
	if err != nil {
		return deps, nil, err
	}
	deps = coordinator.Deps{Logger: log, Authority: issuing, Secrets: keys}
	if err = openNamed(ctx, h, d.Providers, credentials.Dir, &deps); err != nil {
		return deps, nil, err
	}
	return deps, follow(ctx, issuing), nil
}

// openLog opens the log file of the data directory.
func (d *Dev) openLog(dir string) (log *slog.Logger, end func() error, err error) {
	file, err := os.OpenFile(filepath.Join(dir, "dev.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, problem(DirectoryNext(err), "data directory %s: %s", dir,
			err)
	}
	return slog.New(slog.NewJSONHandler(file, &slog.HandlerOptions{Level: parseLevel(d.LogLevel)})), file.Close, nil
}

// devWorld is a running leasehold dev.
type devWorld struct {
	h         *Host
	dir       string
	store     store.Store
	processes *process.Provider
	replica   *coordinator.Replica
	web       *side
	found     *guide
	keys      store.Keys
	endpoint  string
	first     bool           // this start created the shard
	since     store.Revision // before this start resumed or created any machine

	etcdStopped <-chan struct{}
}

func (w *devWorld) run(ctx context.Context, groups []store.Group, ready <-chan string) error {
	v, err := w.store.Vitals(ctx)
	if err != nil {
		return err
	}
	w.since = v.Revision
	given, err := w.processes.GiveUp(ctx, cannotJoin, func(b provider.Bootstrap) bool { return b.CA == "" })
	if err != nil {
		return fmt.Errorf("stop the machines that cannot come back: %w", err)
	}
	resumed, err := w.processes.Resume(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("resume the machines of the previous run: %w", err), w.halt(ctx))
	}
	// The replica ends by its own context: the machines stop first, and their agents say goodbye to
	// it.
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- w.web.around(serve, func(ctx context.Context) error { return w.found.around(ctx, w.replica.Run) })
	}()
	// giveUp ends a start that has failed after machines were resumed or created.
	giveUp := func(err error) error {
		stop()
		return errors.Join(err, <-ended, w.halt(ctx))
	}
	show, hide := context.WithCancel(ctx)
	defer hide()
	var showing sync.WaitGroup
	defer showing.Wait()
	defer hide()
	select {
	case address := <-ready:
		if err := w.announce(address); err != nil {
			return giveUp(err)
		}
	case err := <-ended:
		return errors.Join(err, w.halt(ctx))
	case <-ctx.Done():
		return giveUp(nil)
	}
	if given > 0 {
		w.print("replaced %d machines of the last run, each %s\n", given, cannotJoin)
	}
	if resumed > 0 {
		w.print("resumed %d machines of the last run\n", resumed)
	}
	showing.Go(func() { w.showJournal(show) })
	if err := w.begin(ctx, w.first, groups); err != nil {
		return giveUp(err)
	}
	showing.Go(func() { w.guide(show) })
	select {
	case err := <-ended:
		return errors.Join(err, w.halt(ctx))
	case <-w.etcdStopped:
		stop()
		err := problem("look at "+filepath.Join(w.dir,
			"dev.log")+", then start leasehold dev again: the machines keep running", "the embedded etcd has stopped")
		return errors.Join(err, <-ended)
	case <-ctx.Done():
	}
	hide()
	showing.Wait()
	err = w.leave(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// announce records and shows where agents connect.
func (w *devWorld) announce(address string) error {
	if err := durable.Replace(listenFile(w.dir), []byte(address), 0o600); err != nil {
		return problem(DirectoryNext(err), "data directory: %s", err)
	}
	w.print("ready  etcd %s  agents %s%s%s  data %s\n", w.endpoint, address, w.web.shown(), w.found.shown(), w.dir)
	if !w.isUsual() {
		fmt.Fprintf(w.h.Stderr, "for other commands: export LEASEHOLD_CONFIG=%s\n", quotedIfNeeded(DevSettings(w.dir)))
	}
	return nil
}

// leave stops the machines when an operator ends the command.
func (w *devWorld) leave(ctx context.Context) error {
	w.print("\nstopping: machines on this host, coordinator, etcd (the next start resumes everything)\n%s", w.goOn(ctx))
	slow := time.AfterFunc(2*time.Second, func() {
		w.print("machines have up to their stop_timeout to stop in order; Ctrl-C again exits at once " +
			"and leaves them running\n")
	})
	defer slow.Stop()
	w.replica.Abdicate()
	return w.halt(ctx)
}

// cannotJoin is why a machine is replaced that was created by a release without certificates.
const cannotJoin = "created before agents had certificates: no coordinator would accept it"

// haltTime bounds how long machines may take to stop in order.
const haltTime = 45 * time.Second

func (w *devWorld) halt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTime)
	defer cancel()
	if err := w.processes.Halt(ctx); err != nil {
		return fmt.Errorf("stop the machines: %w", err)
	}
	return nil
}

func (w *devWorld) print(format string, args ...any) {
	_, _ = io.WriteString(w.h.Stdout, fmt.Sprintf(format, args...)) // a failure cannot be reported anywhere else
}

// startEtcd starts the embedded etcd, on a free port if no address is given and the default port is
// taken.
func (d *Dev) startEtcd(ctx context.Context, dir string, log *slog.Logger) (*embedetcd.Server, Credentials, error) {
	listen := d.EtcdListen
	if listen == "" {
		listen = devEtcd
		if err := portFree(ctx, listen); err != nil {
			listen = "127.0.0.1:0"
		}
	} else if err := portFree(ctx, listen); err != nil {
		return nil, Credentials{}, listenProblem("--etcd-listen", listen, err)
	}
	host, _, _ := net.SplitHostPort(listen) // etcd explains what is wrong with the address
	credentials, err := makeCredentials(dir, host)
	if err != nil {
		return nil, credentials, err
	}
	etcd, err := embedetcd.Start(ctx,
		embedetcd.Config{DataDir: filepath.Join(dir, "etcd"), Listen: listen, Logger: log, TLS: credentials.Server()})
	if errors.Is(err, embedetcd.ErrNoSpace) {
		return nil, credentials, problem(DirectoryNext(err), "%s", err)
	}
	if err != nil {
		return nil, credentials,
			problem("if another leasehold dev runs on this data, use that one, or another --data-dir", "%s", err)
	}
	return etcd, credentials, nil
}

// open gives the users of the embedded etcd their rights, and opens it as a coordinator.
func (c Credentials) open(ctx context.Context, dir, endpoint, shard string, log *slog.Logger) (*etcdstore.Store,
	error,
) {
	if err := c.GiveRights(ctx, endpoint, shard); err != nil {
		return nil, problem("look at "+filepath.Join(dir, "dev.log"), "rights in the embedded etcd: %s", err)
	}
	secure, err := c.Client(string(store.RoleCoordinator))
	if err != nil {
		return nil, err
	}
	root, err := c.Client(store.RoleRoot)
	if err != nil {
		return nil, err
	}
	return etcdstore.Open(ctx,
		etcdstore.Config{Endpoints: []string{endpoint}, TLS: secure, Compactor: root, Logger: log})
}

// providers returns all providers, and the one that runs machines as processes by itself.
func (d *Dev) providers(ctx context.Context, h *Host, dir string, log *slog.Logger) (map[string]provider.Provider,
	*process.Provider, error,
) {
	processes, err := machines(filepath.Join(dir, "machines"), "", nil, log)
	if err != nil {
		return nil, nil, err
	}
	all := h.providers(processes)
	if d.Providers != "" {
		more, err := openProviders(ctx, h, d.Providers, log)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(all, more)
	}
	return all, processes, nil
}

// agentsAddress chooses the address for agents: the one requested, or the last one, because agents
// that still run connect to it.
func (d *Dev) agentsAddress(ctx context.Context, dir string) (string, error) {
	if d.Listen != "" {
		if err := portFree(ctx, d.Listen); err != nil {
			return "", listenProblem("--listen", d.Listen, err)
		}
		return d.Listen, nil
	}
	wanted := devAgents
	if data, err := os.ReadFile(listenFile(dir)); err == nil && len(data) > 0 {
		wanted = string(data)
	}
	if err := portFree(ctx, wanted); err != nil {
		return freeAddress(ctx)
	}
	return wanted, nil
}

// httpAddress chooses the address for health and metrics: the one requested, the default one or, if
// that is taken, any free port.
func (d *Dev) httpAddress() (HTTP, error) {
	if d.HTTP == "" {
		return HTTP{HTTP: devHTTP, orFreePort: true}, nil
	}
	if host, _, err := net.SplitHostPort(d.HTTP); err == nil && !loopback(host) {
		return HTTP{}, problem("leasehold dev --http 127.0.0.1:7421, or run leasehold coordinator, which can secure it",
			"--http: %s: leasehold dev listens only on this machine", d.HTTP)
	}
	return HTTP{HTTP: d.HTTP}, nil
}

// findable opens the servers for clients that look for instances, on this machine alone.
func (d *Dev) findable(ctx context.Context, h *Host, r *coordinator.Replica, log *slog.Logger) (*guide, error) {
	for flag, address := range map[string]string{"--dns": d.DNS, "--xds": d.XDS} {
		if host, _, err := net.SplitHostPort(address); err == nil && !loopback(host) {
			return nil, problem(fmt.Sprintf("leasehold dev %s 127.0.0.1:0, or run leasehold coordinator", flag),
				"%s: %s: leasehold dev listens only on this machine", flag, address)
		}
	}
	return d.Discovery.open(ctx, h, r, access.Config{}, log)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
