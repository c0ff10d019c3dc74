package rights

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Etcd stores users and roles. Calls may be repeated: a state that is reached already is no error.
type Etcd interface {
	Enabled(ctx context.Context) (bool, error)
	// RolesOf is permitted to every user for itself; the error wraps store.ErrNotFound if the user
	// does not exist.
	RolesOf(ctx context.Context, user string) ([]string, error)

	// Once authentication is on, only root may call the other methods.

	Users(ctx context.Context) (map[string][]string, error)
	Roles(ctx context.Context) (map[string][]store.Permission, error)
	AddRole(ctx context.Context, role string) error
	Allow(ctx context.Context, role string, p store.Permission) error
	Forbid(ctx context.Context, role string, p store.Permission) error
	AddUser(ctx context.Context, name, password string) error // without a password, only a certificate is accepted
	RemoveUser(ctx context.Context, name string) error
	Give(ctx context.Context, user, role string) error
	Take(ctx context.Context, user, role string) error
	Enable(ctx context.Context) error
	Disable(ctx context.Context) error
}

// State holds etcd's users and roles.
type State struct {
	Enabled bool
	Users   map[string][]string // roles of each user
	Roles   map[string][]store.Permission
}

// Read reads the users and roles.
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

// Do carries out steps, and reports each that was done.
func Do(ctx context.Context, etcd Etcd, steps []Step, done func(Step)) error {
	for _, s := range steps {
		if err := s.Do(ctx, etcd); err != nil {
			return err
		}
		done(s)
	}
	return nil
}

// Wanted is the desired state for one shard.
type Wanted struct {
	Shard string
	// Users have these roles in the shard. A user that has roles already, in any shard, keeps those
	// and gets none.
	Users map[string]store.Role
	// Passwords of users that are created. A user without one authenticates by a certificate alone.
	Passwords map[string]string
}

// Steps returns the missing steps, without enabling authentication: Enable does that.
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

// root creates the user and the role without which etcd does not turn authentication on.
func (w Wanted) root(st State) []Step {
	var steps []Step
	if _, there := st.Roles[store.RoleRoot]; !there {
		steps = append(steps, addRole(store.RoleRoot))
	}
	_, there := st.Users[store.RoleRoot]
	if password := w.Passwords[store.RoleRoot]; there && password != "" && !st.Enabled {
		// Its password cannot be checked before authentication is on, and afterwards it may be too
		// late.
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

// remakeTime bounds what follows the removal of a user that is recreated.
const remakeTime = 30 * time.Second

// remade recreates a user with another password and its present roles. Once it has begun it is
// completed even if the caller's context ends: otherwise the user would be gone, or without its
// roles in other shards.
func remade(ctx context.Context, e Etcd, name, password string, roles []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remakeTime)
	defer cancel()
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

// roleSteps gives a role its rights, and removes all others.
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
		what = "may write, but not read "
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

// userSteps creates a user and gives it a role.
func (w Wanted) userSteps(st State, name, role string) []Step {
	var steps []Step
	if _, there := st.Users[name]; !there {
		how := "authenticated by its certificate"
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

// Missing returns the wanted users that have no role in the shard and will get none, because they
// have roles already.
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

// Made returns the users that Steps creates, or gives a password.
func (w Wanted) Made(st State) []string {
	var out []string
	for _, name := range append([]string{store.RoleRoot}, slices.Sorted(maps.Keys(w.Users))...) {
		if _, there := st.Users[name]; !there || name == store.RoleRoot && !st.Enabled {
			out = append(out, name)
		}
	}
	return out
}

// Add returns the steps that give one user one role in the shard, and no other there. A password is
// for a user that is created, or replaces the old one.
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

// Remove returns the steps that remove a user's rights in the shard. A user without other rights is
// deleted.
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

// taken removes the roles of the shard from a user, except one.
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

// In returns the roles of a user that belong to a shard.
func In(roles []string, shard string) []store.Role {
	var out []store.Role
	for _, name := range roles {
		if s, r, ok := store.SplitRole(name); ok && s == shard {
			out = append(out, r)
		}
	}
	return out
}

// Shards returns the shards in which a user has roles, in order.
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

// Names formats roles for people.
func Names(roles []store.Role) string {
	var out []string
	for _, r := range roles {
		out = append(out, string(r))
	}
	return strings.Join(out, ", ")
}
