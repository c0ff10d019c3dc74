package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/store/embedetcd"
)

// Command is the command "server".
type Command struct {
	Name      string        `help:"Name of this host in the cluster." placeholder:"NAME"`
	Init      bool          `help:"Make a new cluster, shard and authorities, with this host as the first. Run it once by hand; leave it out of the service file." xor:"how"`
	NoShard   bool          `help:"With --init: make no shard, because you restore it from a backup. Authorities in the data directory are kept."`
	Join      string        `help:"Join the cluster of this host, by its port for agents. Needs --token, once." placeholder:"HOST:PORT" xor:"how"`
	Token     string        `help:"Token of leasehold server add: for one host, for an hour." env:"LEASEHOLD_SERVER_TOKEN" placeholder:"TOKEN"`
	Address   string        `help:"Host name or IP address at which other hosts, agents and operators reach this one (default: its name)." placeholder:"HOST"`
	Bind      string        `help:"IP address to listen on (default: 0.0.0.0)." placeholder:"IP"`
	Port      int           `help:"Port for agents (default: 7420)." placeholder:"PORT"`
	EtcdPort  int           `help:"Port for clients of etcd: replicas and operators (default: 2379)." placeholder:"PORT"`
	PeerPort  int           `help:"Port for etcd's other members (default: 2380)." placeholder:"PORT"`
	DataDir   string        `help:"Data directory (default: ${default})." env:"LEASEHOLD_SERVER_DIR" default:"${server_dir}" type:"path" placeholder:"DIR"`
	Machines  string        `help:"Directory of the process provider's machines (default: in the data directory)." type:"path" placeholder:"DIR"`
	Part      string        `hidden:"" help:"Run one part of the server, for the server itself." enum:"member,replica," default:""`
	HangLimit time.Duration `hidden:"" help:"How long a part may give no sign of life before it is started again." default:"2m"`

	services.Replica `embed:""`
}

// Run keeps the member and the replica running until ctx ends.
func (c *Command) Run(ctx context.Context, h *services.Host) error {
	place := Place{Dir: c.DataDir}
	if abs, err := filepath.Abs(c.DataDir); err == nil {
		place.Dir = abs
	}
	if c.Part != "" {
		return c.runPart(ctx, h, place)
	}
	program.OutliveOutput()
	r, err := c.record(ctx, h, place)
	if err != nil {
		return err
	}
	return c.supervise(ctx, h, place, r)
}

// record reads this host's record or creates it: as the first host, or by joining others.
func (c *Command) record(ctx context.Context, h *services.Host, place Place) (Record, error) {
	_, err := place.load()
	switch {
	case err != nil && !isNew(err):
		return Record{}, err
	case isNew(err) && !c.Init && c.Join == "":
		return Record{}, problem("leasehold server --name NAME --init on the first host of a new cluster; for others, on a "+
			"host of the cluster: leasehold server add NAME, or replace NAME if it was in it",
			"%s holds no server: nothing is started or created", place.Dir)
	case isNew(err) && c.Init && h.Service.Supervised():
		// The service may have been started again after its disk was lost. It must not make a
		// second cluster (SAFE-15).
		return Record{}, problem("run leasehold server --name NAME --init once by hand; if this host was in a cluster, on "+
			"another host of it: leasehold server replace NAME",
			"--init: %s is empty, and a service must not create a cluster", place.Dir)
	}
	fresh, log := isNew(err), h.Logger(c.LogLevel)
	if fresh && c.NoShard && !place.hasAuthorities() {
		log.Warn("this cluster gets new authorities: agents of a shard that is restored do not trust them, "+
			"and their machines will have to be replaced", "next", "if there is a copy of pki and secrets.key: end this, "+
			"remove "+place.Dir+", put the copy there, and start again")
	}
	var wanted Record
	if fresh {
		if wanted, err = c.wanted(ctx, h.Shard); err != nil {
			return Record{}, err
		}
		if hint := elsewhere(ctx, wanted.Address); hint != "" {
			log.Warn("other hosts may not reach this one", "why", hint, "next", "unless an address translation leads here: "+
				"Ctrl-C, then choose --address")
		}
	}
	if err := place.open(); err != nil {
		return Record{}, err
	}
	if fresh {
		if err := c.first(ctx, place, wanted, log); err != nil {
			return Record{}, err
		}
	}
	r, err := place.load()
	if err != nil {
		return r, err
	}
	if err := c.agrees(r); err != nil {
		return r, err
	}
	return r, place.lostData(r)
}

// first creates the record of a host in a new directory.
func (c *Command) first(ctx context.Context, place Place, wanted Record, log *slog.Logger) error {
	if embedetcd.HasData(place.etcd()) {
		return problem("choose another directory with --data-dir, or restore "+place.record(),
			"%s has an etcd's data, and no record of a server", place.etcd())
	}
	if c.Join != "" {
		return place.join(ctx, wanted, c.Join, c.Token, log)
	}
	if place.hasAuthorities() && !c.NoShard { // with --no-shard the restored shard has them
		return problem("choose another directory with --data-dir, or remove "+place.Dir+
			"; to restore a shard with these authorities, add --no-shard",
			"--init: %s has certificates already, and no record of a server", place.credentials().Dir)
	}
	wanted.Restore = c.NoShard
	if err := place.begin(wanted); err != nil {
		return problem(services.DirectoryNext(err), "data directory: %s", err)
	}
	return nil
}

// wanted returns the record that the flags describe.
func (c *Command) wanted(ctx context.Context, shard string) (Record, error) {
	r := Record{
		Name: c.Name, Address: c.Address, Bind: c.Bind, Port: c.Port, EtcdPort: c.EtcdPort, PeerPort: c.PeerPort,
		Shard: shard,
	}
	if !identity.IsName(r.Name) {
		return r, problem("leasehold server --name a --init",
			"--name: %q: must be letters, digits, dots, dashes and underscores", r.Name)
	}
	if r.Address == "" {
		r.Address = r.Name
	}
	if r.Bind == "" {
		r.Bind = "0.0.0.0"
	}
	if net.ParseIP(r.Bind) == nil {
		return r, problem("leasehold server run --help", "--bind: %q: must be an IP address of this host", r.Bind)
	}
	for _, p := range []struct {
		port  *int
		usual int
		flag  string
	}{{&r.Port, 7420, "--port"}, {&r.EtcdPort, 2379, "--etcd-port"}, {&r.PeerPort, 2380, "--peer-port"}} {
		if *p.port == 0 {
			*p.port = p.usual
		}
		if *p.port < 1 || *p.port > 65535 {
			return r, problem("leasehold server run --help", "%s: %d: must be 1 to 65535", p.flag, *p.port)
		}
		if err := free(ctx, r.listen(*p.port)); err != nil {
			return r, listenProblem(p.flag, r.listen(*p.port), err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(limited, r.Address); err != nil {
		return r, problem("give a name or IP address of this host that the others reach, with --address",
			"--address: %s: this host cannot resolve it", r.Address)
	}
	return r, nil
}

// agrees refuses flags that differ from the host's record: the other hosts know it by the recorded
// values.
func (c *Command) agrees(r Record) error {
	for _, f := range []struct {
		flag      string
		given, is any
		unset     any
	}{
		{"--name", c.Name, r.Name, ""},
		{"--address", c.Address, r.Address, ""},
		{"--bind", c.Bind, r.Bind, ""},
		{"--port", c.Port, r.Port, 0},
		{"--etcd-port", c.EtcdPort, r.EtcdPort, 0},
		{"--peer-port", c.PeerPort, r.PeerPort, 0},
	} {
		if f.given != f.unset && f.given != f.is {
			return problem("leave it out; to move a host, add it under another name and remove this one",
				"%s: %v: this host was set up with %v", f.flag, f.given, f.is)
		}
	}
	return nil
}

// say prints what runs and, after the first start of a cluster, how others join.
func (c *Command) say(ctx context.Context, h *services.Host, place Place, r Record, was phase) error {
	var b strings.Builder
	fmt.Fprintf(&b, "ready  %s  agents %s  etcd %s  data %s\n", r.Name, r.at(r.Port), r.at(r.EtcdPort), place.Dir)
	if place.Dir != DefaultDir && was != joined {
		fmt.Fprintf(&b, "for commands on this host: export LEASEHOLD_CONFIG=%s\n", place.Settings())
	}
	if was == beginning {
		admin, err := place.admin(ctx, r)
		if err != nil {
			return err
		}
		defer admin.Close()
		if r.Restore {
			fmt.Fprintf(&b, "restore the shard now: leasehold restore FILE --confirm=%s; other hosts are ready after that\n",
				r.Shard)
		}
		b.WriteString("to bear the loss of a host, run on two others, each command once and within an hour:\n")
		for _, name := range following(r.Name) {
			token, err := admin.Token(ctx, "leasehold server --init")
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "  %s\n", r.joinCommand(name, token))
		}
	}
	_, _ = io.WriteString(h.Stdout, b.String()) // a failure cannot be reported anywhere else
	return nil
}

// following suggests names for two more hosts: b and c after a, db-2 and db-3 after db-1.
func following(name string) []string {
	stem, last := name[:len(name)-1], name[len(name)-1]
	if last >= '0' && last <= '7' || last >= 'a' && last <= 'x' && len(name) == 1 ||
		len(name) > 1 && !alphanumeric(name[len(name)-2]) && last >= 'a' && last <= 'x' {
		return []string{stem + string(last+1), stem + string(last+2)}
	}
	return []string{name + "-2", name + "-3"}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func explain(err error) error {
	var known *services.Problem
	if errors.As(err, &known) {
		return known
	}
	return err
}

func free(ctx context.Context, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

func listenProblem(flag, address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return problem("stop the program that listens there, or choose another port with "+flag,
			"%s: %s is taken by another program", flag, address)
	}
	return problem("choose an address and port of this host with --bind and "+flag, "%s: cannot listen on %s: %s", flag,
		address, err)
}
