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
func (s *Session) who() string {
	if name := s.connection(nil).Caller(); name != "" {
		return name + " (" + s.env.User + ")"
	}
	return s.env.User
}

// denied explains what etcd refused, to which user, and what helps. may is the attempted action,
// such as "change groups".
func (s *Session) denied(ctx context.Context, err error, may string) error {
	if s.api != nil {
		s.api.denied = true
	}
	what := s.command
	c := s.connection(nil)
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
	return s.notAllowed(ctx, err, name, may)
}

// notAllowed explains which role a user has that does not permit an action.
func (s *Session) notAllowed(ctx context.Context, err error, name, may string) error {
	roles, unknown := s.rolesOf(ctx, name)
	in := rights.In(roles, s.flags.Shard)
	role := store.RoleOperator
	if slices.Contains(in, store.RoleOperator) { // only coordinators write records
		role = store.RoleCoordinator
	}
	ask := "ask etcd's root to run leasehold auth add " + name + " --role " + string(role) + s.shardFlag()
	switch {
	case errors.Is(unknown, store.ErrNotFound):
		from := "--user"
		if c := s.connection(nil); c.Username == "" {
			from = "the name in " + c.Cert
		}
		return failure(Failed, ask, "%s: etcd knows no user %q (%s)", s.command, name, from)
	case unknown != nil:
		return failure(Failed, "leasehold auth show", "%s: etcd refused: %s", s.command, err)
	case len(in) > 0:
		return failure(Failed, ask, "%s: user %q has the role %s, which may not %s", s.command, name, rights.Names(in),
			may)
	case len(rights.Shards(roles)) > 0:
		return failure(Failed, ask, "%s: user %q has no role in shard %s, only in %s", s.command, name, s.flags.Shard,
			strings.Join(rights.Shards(roles), ", "))
	default:
		return failure(Failed, ask, "%s: user %q has no role in shard %s", s.command, name, s.flags.Shard)
	}
}

// shardFlag returns the --shard flag for a suggested command, empty for the default shard.
func (s *Session) shardFlag() string {
	if s.flags.Shard == defaultShard {
		return ""
	}
	return " --shard " + s.flags.Shard
}

// defaultShard is the shard of commands that name none.
const defaultShard = "default"

// rolesOf returns the roles of a user, as etcd reports them to that user.
func (s *Session) rolesOf(ctx context.Context, name string) (roles []string, err error) {
	etcd, leave, err := s.env.Rights(ctx, s.connection(nil))
	if err != nil {
		return nil, err
	}
	roles, err = etcd.RolesOf(ctx, name)
	return roles, errors.Join(err, leave())
}

// reading describes the reading of a key, for a refusal.
func (s *Session) reading(key string) string {
	if strings.HasPrefix(key, s.keys().Prefix()) {
		return "read shard " + s.flags.Shard
	}
	return "read " + key
}

// writing describes what a transaction writes, for a refusal.
func (s *Session) writing(txn store.Txn) string {
	for _, w := range txn.Writes {
		kind, _, _ := s.keys().Split(w.Key)
		switch kind {
		case store.KindGroups, store.KindStatic:
			return "change groups"
		case store.KindRequests:
			return "give orders"
		case store.KindShard:
			return "hold or release the shard"
		case store.KindSecrets:
			return "change secrets"
		}
	}
	return fmt.Sprintf("write %s", txn.Writes[0].Key)
}
