package store

import (
	"slices"
	"strings"
)

// Role is what a user may do in a shard (SEC-4). etcd keeps the rights: users have roles, roles
// have permissions.
type Role string

// The roles, from the weakest to the strongest.
const (
	RoleViewer      Role = "viewer"      // reads everything of the shard
	RoleOperator    Role = "operator"    // and writes what is wanted: what the commands write
	RoleCoordinator Role = "coordinator" // and writes what is
)

// RoleRoot is etcd's own role and user, which may do everything in every shard and administers
// users.
const RoleRoot = "root"

// Roles returns all roles, from the weakest to the strongest.
func Roles() []Role { return []Role{RoleViewer, RoleOperator, RoleCoordinator} }

const rolePrefix = "leasehold-"

// RoleName returns how etcd calls a role of this shard.
func (k Keys) RoleName(r Role) string { return rolePrefix + k.shard() + "-" + string(r) }

func (k Keys) shard() string { return strings.TrimSuffix(strings.TrimPrefix(k.root, Root), "/") }

// SplitRole takes etcd's name of a role apart. It fails for roles that are not ours.
func SplitRole(name string) (shard string, r Role, ok bool) {
	rest, ours := strings.CutPrefix(name, rolePrefix)
	at := strings.LastIndex(rest, "-")
	if !ours || at <= 0 {
		return "", "", false
	}
	shard, r = rest[:at], Role(rest[at+1:])
	return shard, r, slices.Contains(Roles(), r)
}

// Permission lets a role read, or read and write, a key or all keys with a prefix.
type Permission struct {
	Key    string
	Prefix bool
	Write  bool

	// What etcd knows beside that and we never grant: a range up to this key, and writing without
	// reading.
	End   string
	Blind bool
}

// operatorKinds are the kinds of keys that commands write.
var operatorKinds = []string{KindGroups, KindStatic, KindRequests, KindSecrets}

// Permissions returns what a role may do in this shard, ordered by key.
//
// The key that is [Root] itself exists in no shard: reading it is how a store asks etcd for its
// revision.
func (k Keys) Permissions(r Role) []Permission {
	all := []Permission{{Key: Root}, {Key: k.root, Prefix: true, Write: r == RoleCoordinator}}
	if r == RoleOperator {
		all = append(all, Permission{Key: k.Shard(), Write: true}, Permission{Key: k.Backup(), Write: true})
		for _, kind := range operatorKinds {
			all = append(all, Permission{Key: k.Of(kind), Prefix: true, Write: true})
		}
	}
	slices.SortFunc(all, func(a, b Permission) int { return strings.Compare(a.Key, b.Key) })
	return all
}
