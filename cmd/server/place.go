package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/provider/durable"
)

// DefaultDir is the default data directory.
const DefaultDir = "/var/lib/leasehold/server"

// Place is a data directory.
type Place struct{ Dir string }

func (p Place) file(name string) string { return filepath.Join(p.Dir, name) }

// Settings returns the file with which commands on this host reach the shard.
func (p Place) Settings() string { return p.file("config.yaml") }

func (p Place) etcd() string    { return p.file("etcd") }
func (p Place) secrets() string { return p.file("secrets.key") }
func (p Place) replica() string { return p.file("replica") }
func (p Place) record() string  { return p.file("server.json") }

func (p Place) credentials() services.Credentials {
	return services.Credentials{Dir: p.file("pki")}
}

// hasAuthorities reports whether the directory has certificate authorities, with or without a
// record.
func (p Place) hasAuthorities() bool {
	_, err := os.Stat(p.credentials().Dir)
	return err == nil
}

// phase is how much of the first start or of the join a host has completed.
type phase string

const (
	beginning phase = "beginning" // first host, which is creating the cluster
	joining   phase = "joining"   // admitted by another host; its member has not served yet
	learning  phase = "learning"  // its member has served, and catches up or votes already
	joined    phase = "joined"    // a member, which never creates a cluster again
)

// Peer is a host of the cluster.
type Peer struct {
	Name   string `json:"name"`
	Peer   string `json:"peer"`   // URL for other members
	Client string `json:"client"` // URL for clients
}

// Record is what a host has recorded about itself. It is written once and changes only with the
// cluster.
type Record struct {
	Schema   int    `json:"schema"`
	Name     string `json:"name"`
	Address  string `json:"address"` // host name or IP address for other hosts, agents and operators
	Bind     string `json:"bind"`    // IP address to listen on
	Port     int    `json:"port"`    // port for agents
	EtcdPort int    `json:"etcd_port"`
	PeerPort int    `json:"peer_port"`
	Shard    string `json:"shard"`
	Restore  bool   `json:"restore,omitempty"` // the shard comes from a backup: none is made
	Cluster  string `json:"cluster"`           // etcd's token for the cluster
	Phase    phase  `json:"phase"`
	// Members are the cluster's hosts at the last look, this one included.
	Members []Peer `json:"members"`
}

const recordSchema = 1

func (r Record) at(port int) string { return net.JoinHostPort(r.Address, strconv.Itoa(port)) }

func (r Record) listen(port int) string { return net.JoinHostPort(r.Bind, strconv.Itoa(port)) }

// local returns the address at which processes of this host reach one of its ports.
func (r Record) local(port int) string {
	host := r.Bind
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

func (r Record) self() Peer {
	return Peer{Name: r.Name, Peer: "https://" + r.at(r.PeerPort), Client: "https://" + r.at(r.EtcdPort)}
}

// endpoints returns etcd's members, this host's first. A member that does not vote yet answers no
// request.
func (r Record) endpoints() []string {
	var out []string
	if r.Phase != joining && r.Phase != learning {
		out = append(out, r.local(r.EtcdPort))
	}
	for _, m := range r.Members {
		if m.Name != r.Name && m.Client != "" {
			out = append(out, m.Client)
		}
	}
	return out
}

// hosts returns the names in the certificate of this host's member.
func (r Record) hosts() []string {
	hosts := []string{"127.0.0.1", "localhost"}
	for _, h := range []string{r.Address, r.Bind} {
		if ip := net.ParseIP(h); h != hosts[0] && h != hosts[1] && (ip == nil || !ip.IsUnspecified()) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// load reads the record; the error wraps fs.ErrNotExist if there is none.
func (p Place) load() (Record, error) {
	text, err := os.ReadFile(p.record())
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, problem("restore it from a backup; or, with other hosts running, remove "+p.Dir+
			" and join again: leasehold server replace NAME on one of them",
			"%s cannot be read: %s", p.record(), err)
	}
	if r.Schema != recordSchema {
		return Record{}, problem("install the version that wrote it", "%s has schema %d: this program knows %d", p.record(),
			r.Schema, recordSchema)
	}
	return r, nil
}

func (p Place) save(r Record) error {
	r.Schema = recordSchema
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(p.record(), append(text, '\n'), 0o600)
}

// open makes the directory if necessary, and locks it until the process ends.
func (p Place) open() error {
	err := durable.MakeDir(p.Dir)
	switch {
	case errors.Is(err, durable.ErrShared):
		return problem("run server as the user whose directory it is, or choose one of your own, with --data-dir",
			"data directory: %s", err)
	case err != nil:
		return problem("run server as root, or choose a directory that you may write to, with --data-dir",
			"data directory: %s", err)
	}
	lock, err := durable.Lock(p.file("server.lock"))
	if held := (*durable.HeldError)(nil); errors.As(err, &held) {
		return problem("use that one, or another --data-dir", "data directory %s: another leasehold server runs on it (%s)",
			p.Dir, held.Holder)
	}
	if err != nil {
		return problem(services.DirectoryNext(err), "data directory: %s", err)
	}
	// The descriptor stays open, since the lock lasts only as long as it.
	locks = append(locks, lock)
	return nil
}

// locks keeps the lock files referenced, so that the garbage collector closes none of them.
var locks []*os.File

// isNew reports whether the directory was never used.
func isNew(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func problem(next, format string, args ...any) error {
	return &services.Problem{What: fmt.Sprintf(format, args...), Next: next}
}
