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

// who is who gives orders, for whoever reads of it later: etcd's user, if there is one, and who that is on which host.
func (s *Session) who() string {
	if name := s.connection(nil).Caller(); name != "" {
		return name + " (" + s.env.User + ")"
	}
	return s.env.User
}

// denied says what etcd refused to whom, and what helps. may is what was tried, as "change groups".
func (s *Session) denied(ctx context.Context, err error, may string) error {
	what := s.command
	c := s.connection(nil)
	name := c.Caller()
	switch {
	case errors.Is(err, store.ErrLogin):
		return failure(Failed, "look at --user, or have root set it anew: leasehold auth add "+name+" --role ROLE --passwords FILE",
			"%s: etcd knows no user %q with that password", what, name)
	case errors.Is(err, store.ErrNobody) && c.Username == "" && c.Cert == "":
		return failure(Failed, "give --cacert, --cert and --key, or --user NAME:PASSWORD; leasehold config show has what is set",
			"%s: etcd asks who you are, and nothing says so", what)
	case errors.Is(err, store.ErrNobody) && c.Cert == "":
		return failure(Failed, "give --cert and --key as well; leasehold config show has what is set", "%s: etcd asks for a certificate, and none was given", what)
	case errors.Is(err, store.ErrNobody) && name == "":
		return failure(Failed, "give a certificate whose common name is etcd's user, or --user NAME:PASSWORD", "%s: etcd asks who you are, and the certificate %s names nobody", what, c.Cert)
	case errors.Is(err, store.ErrNobody):
		return failure(Failed, "run etcd with --client-cert-auth and --trusted-ca-file, or give --user NAME:PASSWORD",
			"%s: etcd asks who you are, and does not go by the certificate of %q", what, name)
	}
	return s.notAllowed(ctx, err, name, may)
}

// notAllowed says which role somebody has who may not do something.
func (s *Session) notAllowed(ctx context.Context, err error, name, may string) error {
	roles, unknown := s.rolesOf(ctx, name)
	in := rights.In(roles, s.flags.Shard)
	role := store.RoleOperator
	if slices.Contains(in, store.RoleOperator) { // records are the coordinators' to write
		role = store.RoleCoordinator
	}
	ask := "ask whoever is etcd's root: leasehold auth add " + name + " --role " + string(role) + s.shardFlag()
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
		return failure(Failed, ask, "%s: user %q has the role %s, which may not %s", s.command, name, rights.Names(in), may)
	case len(rights.Shards(roles)) > 0:
		return failure(Failed, ask, "%s: user %q has no role in shard %s, only in %s", s.command, name, s.flags.Shard, strings.Join(rights.Shards(roles), ", "))
	default:
		return failure(Failed, ask, "%s: user %q has no role in shard %s", s.command, name, s.flags.Shard)
	}
}

// shardFlag names the shard for a command that is to be typed, where it is not the usual one.
func (s *Session) shardFlag() string {
	if s.flags.Shard == defaultShard {
		return ""
	}
	return " --shard " + s.flags.Shard
}

// defaultShard is the shard of commands that name none.
const defaultShard = "default"

// rolesOf are the roles of a user, as etcd tells that user himself.
func (s *Session) rolesOf(ctx context.Context, name string) (roles []string, err error) {
	etcd, leave, err := s.env.Rights(ctx, s.connection(nil))
	if err != nil {
		return nil, err
	}
	roles, err = etcd.RolesOf(ctx, name)
	return roles, errors.Join(err, leave())
}

// reading is what reading a key is, in the words of a refusal.
func (s *Session) reading(key string) string {
	if strings.HasPrefix(key, s.keys().Prefix()) {
		return "read shard " + s.flags.Shard
	}
	return "read " + key
}

// writing is what a transaction does, in the words of a refusal.
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
