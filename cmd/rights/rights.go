package rights

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Etcd is where users and roles are kept. Calls may be repeated: what is so already is no error.
type Etcd interface {
	Enabled(ctx context.Context) (bool, error)
	// RolesOf is permitted to every user about itself; the error wraps store.ErrNotFound if there
	// is no such user.
	RolesOf(ctx context.Context, user string) ([]string, error)

	// The rest is for root alone, once authentication is on.

	Users(ctx context.Context) (map[string][]string, error)
	Roles(ctx context.Context) (map[string][]store.Permission, error)
	AddRole(ctx context.Context, role string) error
	Allow(ctx context.Context, role string, p store.Permission) error
	Forbid(ctx context.Context, role string, p store.Permission) error
	AddUser(ctx context.Context, name, password string) error // without a password: only a certificate is believed
	RemoveUser(ctx context.Context, name string) error
	Give(ctx context.Context, user, role string) error
	Take(ctx context.Context, user, role string) error
	Enable(ctx context.Context) error
	Disable(ctx context.Context) error
}

// State is what etcd has of users and roles.
type State struct {
	Enabled bool
	Users   map[string][]string // roles of each
	Roles   map[string][]store.Permission
}

// Read reads all of it.
func Read(ctx context.Context, etcd Etcd) (st State, err error) {
	if st.Enabled, err = etcd.Enabled(ctx); err != nil {
		return st, err
	}
	if st.Users, err = etcd.Users(ctx); err != nil {
		return st, err
	}
	st.Roles, err = etcd.Roles(ctx)
	return st, err
}

// Step is one change.
type Step struct {
	What string // as "+ user eva" or "- role x"
	Do   func(context.Context, Etcd) error
}

// Do carries out steps, and tells of each that was done.
func Do(ctx context.Context, etcd Etcd, steps []Step, told func(Step)) error {
	for _, s := range steps {
		if err := s.Do(ctx, etcd); err != nil {
			return err
		}
		told(s)
	}
	return nil
}

// Wanted is how it should be for one shard.
type Wanted struct {
	Shard string
	// Users have these roles in the shard. A user that has roles already, in any shard, keeps
	// those and gets none.
	Users map[string]store.Role
	// Passwords of users that are made. Who has none is known by a certificate alone.
	Passwords map[string]string
}

// Steps are what is missing, authentication excepted: that is turned on by Enable.
func (w Wanted) Steps(st State) []Step {
	keys := store.KeysOf(w.Shard)
	steps := w.root(st)
	for _, r := range store.Roles() {
		steps = append(steps, roleSteps(st, keys.RoleName(r), keys.Permissions(r))...)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Users)) {
		if len(st.Users[name]) == 0 {
			steps = append(steps, w.userSteps(st, name, keys.RoleName(w.Users[name]))...)
		}
	}
	return steps
}

// root makes the user and the role without which etcd does not turn authentication on.
func (w Wanted) root(st State) []Step {
	var steps []Step
	if _, there := st.Roles[store.RoleRoot]; !there {
		steps = append(steps, addRole(store.RoleRoot))
	}
	_, there := st.Users[store.RoleRoot]
	if password := w.Passwords[store.RoleRoot]; there && password != "" && !st.Enabled {
		// Which password it had cannot be found out before authentication is on, and then it may be
		// too late.
		steps = append(steps, Step{
			What: "~ user root, with another password",
			Do: func(ctx context.Context, e Etcd) error {
				return remade(ctx, e, store.RoleRoot, password, st.Users[store.RoleRoot])
			},
		})
	}
	if !slices.Contains(st.Users[store.RoleRoot], store.RoleRoot) {
		steps = append(steps, w.userSteps(st, store.RoleRoot, store.RoleRoot)...)
	}
	if _, left := st.Users[spare]; left {
		steps = append(steps, removeUser(spare))
	}
	return steps
}

func removeUser(name string) Step {
	return Step{What: "- user " + name, Do: func(ctx context.Context, e Etcd) error { return e.RemoveUser(ctx, name) }}
}

// remade recreates a user with another password and its present roles.
func remade(ctx context.Context, e Etcd, name, password string, roles []string) error {
	if err := e.RemoveUser(ctx, name); err != nil {
		return err
	}
	if err := e.AddUser(ctx, name, password); err != nil {
		return err
	}
	for _, r := range roles {
		if err := e.Give(ctx, name, r); err != nil {
			return err
		}
	}
	return nil
}

func addRole(role string) Step {
	return Step{What: "+ role " + role, Do: func(ctx context.Context, e Etcd) error { return e.AddRole(ctx, role) }}
}

// roleSteps make a role what it should be: more rights than it should have are taken away as well.
func roleSteps(st State, role string, wanted []store.Permission) []Step {
	has, there := st.Roles[role]
	var steps []Step
	if !there {
		steps = append(steps, addRole(role))
	}
	for _, p := range has {
		if !slices.ContainsFunc(wanted,
			func(w store.Permission) bool { return w.Key == p.Key && w.Prefix == p.Prefix && w.End == p.End }) {
			steps = append(steps, Step{
				What: "- role " + role + " " + says(p),
				Do: func(ctx context.Context, e Etcd) error {
					return e.Forbid(ctx, role, p)
				},
			})
		}
	}
	for _, p := range wanted {
		if !slices.Contains(has, p) {
			steps = append(steps, Step{
				What: "+ role " + role + " " + says(p),
				Do: func(ctx context.Context, e Etcd) error {
					return e.Allow(ctx, role, p)
				},
			})
		}
	}
	return steps
}

func says(p store.Permission) string {
	what := "may read "
	switch {
	case p.Blind:
		what = "may write unread "
	case p.Write:
		what = "may read and write "
	}
	switch {
	case p.Prefix:
		return what + p.Key + "…"
	case p.End != "":
		return what + p.Key + " to " + p.End
	default:
		return what + p.Key
	}
}

// userSteps make a user and give it a role.
func (w Wanted) userSteps(st State, name, role string) []Step {
	var steps []Step
	if _, there := st.Users[name]; !there {
		how := "known by its certificate"
		if w.Passwords[name] != "" {
			how = "with a password"
		}
		steps = append(steps, Step{What: "+ user " + name + ", " + how, Do: func(ctx context.Context, e Etcd) error {
			return e.AddUser(ctx, name, w.Passwords[name])
		}})
	}
	return append(steps, Step{
		What: fmt.Sprintf("+ user %s has role %s", name, role),
		Do: func(ctx context.Context, e Etcd) error {
			return e.Give(ctx, name, role)
		},
	})
}

// Missing are the wanted users that have no role in the shard and will get none, because they have
// roles already.
func (w Wanted) Missing(st State) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.Users)) {
		if roles := st.Users[name]; len(roles) > 0 && len(In(roles, w.Shard)) == 0 &&
			!slices.Contains(roles, store.RoleRoot) {
			out = append(out, name)
		}
	}
	return out
}

// Made are the users that Steps makes, or gives a password.
func (w Wanted) Made(st State) []string {
	var out []string
	for _, name := range append([]string{store.RoleRoot}, slices.Sorted(maps.Keys(w.Users))...) {
		if _, there := st.Users[name]; !there || name == store.RoleRoot && !st.Enabled {
			out = append(out, name)
		}
	}
	return out
}

// Add are the steps that give one user one role in the shard, and no other there. A password is for
// a user that is made, or replaces the one it had.
func (w Wanted) Add(st State, name string, role store.Role) []Step {
	keys := store.KeysOf(w.Shard)
	roles, there := st.Users[name]
	var steps []Step
	if password := w.Passwords[name]; there && password != "" {
		steps = append(steps, Step{
			What: "~ user " + name + ", with another password",
			Do: func(ctx context.Context, e Etcd) error {
				return remade(ctx, e, name, password, roles)
			},
		})
	}
	if !slices.Contains(roles, keys.RoleName(role)) {
		steps = append(steps, w.userSteps(st, name, keys.RoleName(role))...)
	}
	return append(steps, w.taken(st, name, role)...)
}

// Remove are the steps that take a user's rights in the shard. A user with no other rights goes.
func (w Wanted) Remove(st State, name string) []Step {
	roles, there := st.Users[name]
	if others := len(roles) - len(In(roles, w.Shard)); others > 0 {
		return w.taken(st, name, "")
	}
	if !there {
		return nil
	}
	return []Step{removeUser(name)}
}

// taken takes the roles of the shard from a user, one excepted.
func (w Wanted) taken(st State, name string, but store.Role) []Step {
	var steps []Step
	for _, r := range In(st.Users[name], w.Shard) {
		if role := store.KeysOf(w.Shard).RoleName(r); r != but {
			steps = append(steps, Step{
				What: fmt.Sprintf("- user %s has role %s", name, role),
				Do: func(ctx context.Context, e Etcd) error {
					return e.Take(ctx, name, role)
				},
			})
		}
	}
	return steps
}

// In are those of a user's roles that are a shard's.
func In(roles []string, shard string) []store.Role {
	var out []store.Role
	for _, name := range roles {
		if s, r, ok := store.SplitRole(name); ok && s == shard {
			out = append(out, r)
		}
	}
	return out
}

// Shards are those in which a user has roles, in order.
func Shards(roles []string) []string {
	var out []string
	for _, name := range roles {
		if s, _, ok := store.SplitRole(name); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Names are roles as people read them.
func Names(roles []store.Role) string {
	var out []string
	for _, r := range roles {
		out = append(out, string(r))
	}
	return strings.Join(out, ", ")
}
