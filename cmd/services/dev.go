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
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/coordinator/reason"
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
	parts, err := d.openStore(ctx, h)
	defer func() { err = errors.Join(err, parts.close()) }()
	if err != nil {
		return err
	}
	w, err := d.assemble(ctx, h, parts)
	if err != nil {
		return err
	}
	if err := parts.credentials.writeSettings(parts.dir, parts.etcd.Endpoint(), h.Shard); err != nil {
		return problem(DirectoryNext(err), "data directory: %s", err)
	}
	defer func() { err = errors.Join(err, parts.credentials.removeSettings(parts.dir)) }()
	return w.run(ctx, groups)
}

// devParts are the parts of leasehold dev that are open. close closes them, the last one first.
type devParts struct {
	dir         string
	log         *slog.Logger
	etcd        *embedetcd.Server
	credentials Credentials
	store       store.Store
	closers     []func() error
}

func (p *devParts) close() (err error) {
	for _, closePart := range slices.Backward(p.closers) {
		err = errors.Join(err, closePart())
	}
	return err
}

// openStore opens the data directory, and the etcd in it. The caller closes the parts after an
// error, too.
func (d *Dev) openStore(ctx context.Context, h *Host) (p *devParts, err error) {
	p = &devParts{}
	if p.dir, err = d.makeDataDir(); err != nil {
		return p, err
	}
	var closeLog func() error
	if p.log, closeLog, err = d.openLog(p.dir); err != nil {
		return p, err
	}
	p.closers = append(p.closers, closeLog)
	if p.etcd, p.credentials, err = d.startEtcd(ctx, p.dir, p.log); err != nil {
		return p, err
	}
	p.closers = append(p.closers, p.etcd.Close)
	st, err := p.credentials.open(ctx, p.dir, p.etcd.Endpoint(), h.Shard, p.log)
	if err != nil {
		return p, err
	}
	p.store, p.closers = st, append(p.closers, st.Close)
	return p, nil
}

// assemble creates the shard if it does not exist, and makes the replica and its servers. Nothing
// serves yet.
func (d *Dev) assemble(ctx context.Context, h *Host, p *devParts) (*devWorld, error) {
	providers, processes, err := d.providers(ctx, h, p.dir, p.log)
	if err != nil {
		return nil, err
	}
	agents, err := d.agentsAddress(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	id, err := replicaID()
	if err != nil {
		return nil, err
	}
	created, err := createShard(ctx, p.store, h.Shard, stateFile(p.dir, h.Shard))
	if err != nil {
		return nil, err
	}
	deps, err := d.dependencies(ctx, h, p)
	if err != nil {
		return nil, err
	}
	traces, endTraces, err := d.Traces.open(ctx, h, id, p.log)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() error { endTraces(); return nil })
	http, err := d.httpAddress()
	if err != nil {
		return nil, err
	}
	http.API, http.etcd = d.API, p.credentials.connection(p.etcd.Endpoint())
	w := &devWorld{
		web: newSide(h, p.log), h: h, dir: p.dir, store: p.store, processes: processes, keys: store.KeysOf(h.Shard),
		endpoint: p.etcd.Endpoint(), etcdStopped: p.etcd.Stopped(), first: created, ready: make(chan string, 1),
	}
	deps.Store, deps.Meter = w.web.measured(p.store), w.web.metrics
	deps.Providers, deps.Traces = providers, traces
	deps.Ready = func(address string) { w.ready <- address }
	w.replica, err = coordinator.New(coordinator.Config{
		Shard: h.Shard, ID: id, Listen: agents, Version: h.Version, StateFile: stateFile(p.dir, h.Shard),
		OwnEtcd: true,
	}, deps)
	if err != nil {
		return nil, err
	}
	if err = w.web.open(ctx, http, h, id, w.replica, p.store); err != nil {
		return nil, err
	}
	w.found, err = d.findable(ctx, h, w.replica, p.log)
	return w, err
}

// dependencies opens what the replica works with besides its store and its providers, and begins to
// reload the authority's files.
func (d *Dev) dependencies(ctx context.Context, h *Host, p *devParts) (deps coordinator.Deps, err error) {
	keys, err := devKeys(p.dir, p.log)
	if err != nil {
		return deps, err
	}
	issuing, err := pki.Open(p.credentials.Dir, p.log)
	if err != nil {
		return deps, err
	}
	deps = coordinator.Deps{Logger: p.log, Authority: issuing, Secrets: keys}
	if err = openNamed(ctx, h, d.Providers, p.credentials.Dir, &deps); err != nil {
		return deps, err
	}
	stop := follow(ctx, issuing)
	p.closers = append(p.closers, func() error { stop(); return nil })
	return deps, nil
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
	ready       chan string // receives the address when agents are served
}

func (w *devWorld) run(ctx context.Context, groups []store.Group) error {
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
	case address := <-w.ready:
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
		fmt.Fprintf(w.h.Stderr, "for other commands: export LEASEHOLD_CONFIG=%s\n", reason.ShellWord(DevSettings(w.dir)))
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
