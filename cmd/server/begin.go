package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/keyfile"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// begin prepares the first host's directory with everything that a member and a replica need to
// start.
func (p Place) begin(r Record) error {
	r.Phase, r.Cluster = beginning, strings.ToLower(rand.Text())
	r.Members = []Peer{r.self()}
	return p.save(r)
}

// prepare creates what is missing before the parts start. On the first host that includes the
// authorities and the keys for secrets; no other host ever creates these.
func (p Place) prepare(r Record) error {
	credentials := p.credentials()
	if r.Phase == beginning {
		if err := credentials.MakeAuthorities(); err != nil {
			return err
		}
		if err := keyfile.Create(p.secrets(), encryption.Ring{}.With(encryption.NewKey())); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := credentials.Issue(r.hosts()); err != nil {
		return err
	}
	return p.writeSettings(r)
}

// found grants etcd's users their rights and, if wanted, creates the shard, once the first member
// serves.
func (p Place) found(ctx context.Context, r Record, shard bool) (err error) {
	credentials := p.credentials()
	if err := credentials.GiveRights(ctx, r.local(r.EtcdPort), r.Shard); err != nil || !shard {
		return err
	}
	st, err := p.store(ctx, []string{r.local(r.EtcdPort)}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	made, err := store.NewShard(r.Shard, "")
	if err != nil {
		return err
	}
	if err := store.CreateShard(ctx, st, store.KeysOf(r.Shard), made); err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	return nil
}

// store opens the shard as a coordinator does. Only etcd's root may compact, so compaction uses
// root's connection.
func (p Place) store(ctx context.Context, endpoints []string, log *slog.Logger) (*etcdstore.Store, error) {
	secure, err := p.credentials().Client(string(store.RoleCoordinator))
	if err != nil {
		return nil, err
	}
	root, err := p.credentials().Client(store.RoleRoot)
	if err != nil {
		return nil, err
	}
	return etcdstore.Open(ctx, etcdstore.Config{Endpoints: endpoints, TLS: secure, Compactor: root, Logger: log})
}

// writeSettings writes the settings with which commands on this host reach the shard as an
// operator, unless the file has them already.
func (p Place) writeSettings(r Record) error {
	cert, key := p.credentials().Of(string(store.RoleOperator))
	var endpoints []string
	for _, e := range r.endpoints() {
		endpoints = append(endpoints, fmt.Sprintf("%q", strings.TrimPrefix(e, "https://")))
	}
	text := fmt.Sprintf("# leasehold server writes this: commands on this host find it\nendpoints: [%s]\n"+
		"cacert: %q\ncert: %q\nkey: %q\nshard: %q\n",
		strings.Join(endpoints, ", "), p.credentials().CA("operators"), cert, key, r.Shard)
	if present, err := os.ReadFile(p.Settings()); err == nil && string(present) == text {
		return nil
	}
	return durable.Replace(p.Settings(), []byte(text), 0o600)
}
