package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/store"
)

// who names the author of an order, for the journal: the etcd user if there is one, and the user
// and host of this process.
func (inv *Invocation) who() string {
	if name := inv.connection(nil).Caller(); name != "" {
		return name + " (" + inv.env.User + ")"
	}
	return inv.env.User
}

// denied explains what etcd refused, to which user, and what helps. may is the attempted action,
// such as "change groups".
func (inv *Invocation) denied(ctx context.Context, err error, may string) error {
	if inv.api != nil {
		inv.api.denied = true
	}
	what := inv.command
	c := inv.connection(nil)
	name := c.Caller()
	switch {
	case errors.Is(err, store.ErrLogin):
		return failure(Failed,
			"check --user, or ask etcd's root for a new password: leasehold auth add "+name+" --role ROLE --passwords FILE",
			"%s: etcd knows no user %q with that password", what, name)
	case errors.Is(err, store.ErrNotLoggedIn) && c.Username == "" && c.Cert == "":
		return failure(Failed,
			"give --cacert, --cert and --key, or --user NAME:PASSWORD; leasehold config show lists what is set",
			"%s: etcd requires authentication, and no credentials are configured", what)
	case errors.Is(err, store.ErrNotLoggedIn) && c.Cert == "":
		return failure(Failed, "give --cert and --key as well; leasehold config show lists what is set",
			"%s: etcd requires a client certificate, and none is configured", what)
	case errors.Is(err, store.ErrNotLoggedIn) && name == "":
		return failure(Failed, "give a certificate whose common name is etcd's user, or --user NAME:PASSWORD",
			"%s: etcd requires authentication, and the certificate %s has no common name", what, c.Cert)
	case errors.Is(err, store.ErrNotLoggedIn):
		return failure(Failed, "run etcd with --client-cert-auth and --trusted-ca-file, or give --user NAME:PASSWORD",
			"%s: etcd requires authentication, and does not accept the certificate of %q", what, name)
	}
	return inv.notAllowed(ctx, err, name, may)
}

// notAllowed explains which role a user has that does not permit an action.
func (inv *Invocation) notAllowed(ctx context.Context, err error, name, may string) error {
	roles, unknown := inv.rolesOf(ctx, name)
	in := rights.In(roles, inv.flags.Shard)
	role := store.RoleOperator
	if slices.Contains(in, store.RoleOperator) { // only coordinators write records
		role = store.RoleCoordinator
	}
	ask := "ask etcd's root to run leasehold auth add " + name + " --role " + string(role) + inv.shardFlag()
	switch {
	case errors.Is(unknown, store.ErrNotFound):
		from := "--user"
		if c := inv.connection(nil); c.Username == "" {
			from = "the name in " + c.Cert
		}
		return failure(Failed, ask, "%s: etcd knows no user %q (%s)", inv.command, name, from)
	case unknown != nil:
		return failure(Failed, "leasehold auth show", "%s: etcd refused: %s", inv.command, err)
	case may == everyShard: // no role of a shard helps
		return failure(Failed,
			"name one shard with --shard, without --all-shards; or give --cert and --key, or --user, of root",
			"%s: user %q may not %s: only root may", inv.command, name, may)
	case len(in) > 0:
		return failure(Failed, ask, "%s: user %q has the role %s, which may not %s", inv.command, name, rights.Names(in),
			may)
	case len(rights.Shards(roles)) > 0:
		return failure(Failed, ask, "%s: user %q has no role in shard %s, only in %s", inv.command, name, inv.flags.Shard,
			strings.Join(rights.Shards(roles), ", "))
	default:
		return failure(Failed, ask, "%s: user %q has no role in shard %s", inv.command, name, inv.flags.Shard)
	}
}

// shardFlag returns the --shard flag for a suggested command, empty for the default shard.
func (inv *Invocation) shardFlag() string {
	if inv.flags.Shard == defaultShard {
		return ""
	}
	return " --shard " + inv.flags.Shard
}

// defaultShard is the shard of commands that name none.
const defaultShard = "default"

// rolesOf returns the roles of a user, as etcd reports them to that user.
func (inv *Invocation) rolesOf(ctx context.Context, name string) (roles []string, err error) {
	etcd, leave, err := inv.env.Rights(ctx, inv.connection(nil))
	if err != nil {
		return nil, err
	}
	roles, err = etcd.RolesOf(ctx, name)
	return roles, errors.Join(err, leave())
}

// everyShard describes the reading of all shards, for a refusal.
const everyShard = "read every shard"

// reading describes the reading of a key, for a refusal.
func (inv *Invocation) reading(key string) string {
	switch {
	case key == store.Root:
		return everyShard
	case strings.HasPrefix(key, inv.keys().Prefix()):
		return "read shard " + inv.flags.Shard
	default:
		return "read " + key
	}
}

// writing describes what a transaction writes, for a refusal.
func (inv *Invocation) writing(txn store.Txn) string {
	for _, w := range txn.Writes {
		kind, _, _ := inv.keys().Split(w.Key)
		switch kind {
		case store.KindGroups, store.KindStatic:
			return "change groups"
		case store.KindRequests:
			return "give orders"
		case store.KindShard:
			return "change, hold or freeze the shard"
		case store.KindSecrets:
			return "change secrets"
		}
	}
	return fmt.Sprintf("write %s", txn.Writes[0].Key)
}
