package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/store"
)

// Auths are the commands about users and roles.
type Auths struct {
	Init   AuthInit   `cmd:"" help:"Set up the shard's roles and users in etcd, and enable authentication. Run it again to add what is missing."`
	Show   AuthShow   `cmd:"" help:"Show your etcd user, all users and their roles."`
	Add    AuthAdd    `cmd:"" help:"Give a user a role in the shard, replacing its present role; creates the user if necessary."`
	Remove AuthRemove `cmd:"" help:"Remove a user's role in the shard. A user without any other role is deleted."`
}

// rights runs an operation on etcd's users and roles, within the time limit of a command.
func (inv *Invocation) rights(ctx context.Context, do func(context.Context, rights.Etcd) error) error {
	if err := checkEndpoints(inv.flags.Endpoints); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 6*inv.requestLimit()) // dozens of requests
	defer cancel()
	etcd, leave, err := inv.env.Rights(limited, inv.connection(nil))
	if err != nil {
		return inv.openFailed(ctx, err)
	}
	err = errors.Join(do(limited, etcd), leave())
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.Is(err, store.ErrDenied):
		return inv.onlyRoot(ctx, err)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return inv.unreachable(inv.command, err)
	default:
		return err
	}
}

// onlyRoot reports that users and roles are for root.
func (inv *Invocation) onlyRoot(ctx context.Context, err error) error {
	name := inv.connection(nil).Caller()
	if _, unknown := inv.rolesOf(ctx, name); name == "" || unknown != nil || errors.Is(err, store.ErrNotLoggedIn) {
		return inv.denied(ctx, err, "change users and roles")
	}
	return failure(Failed, "give --cert and --key, or --user, of root",
		"%s: user %q may not change users and roles: only root may", inv.command, name)
}

// carryOut carries out steps and shows each; a dry run only shows them.
func (inv *Invocation) carryOut(ctx context.Context, etcd rights.Etcd, steps []rights.Step, dryRun bool) error {
	show := func(step rights.Step) { fmt.Fprintln(inv.env.Stdout, step.What) }
	if dryRun {
		for _, step := range steps {
			show(step)
		}
		return nil
	}
	return rights.Do(ctx, etcd, steps, show)
}

// AuthShow is the command auth show.
type AuthShow struct{}

// authDocument is the JSON form of auth show.
type authDocument struct {
	On      bool       `json:"on"`
	You     string     `json:"you"`
	Users   []authUser `json:"users"` // only your own user, unless you are root
	Missing []string   `json:"missing"`
}

type authUser struct {
	Name  string       `json:"name"`
	Roles []store.Role `json:"roles"` // in the shard
	Root  bool         `json:"root"`
	Other []string     `json:"other_shards"`
}

// Run shows users and roles. Users other than root see only themselves.
func (c *AuthShow) Run(ctx context.Context, inv *Invocation) error {
	doc := authDocument{Users: []authUser{}, Missing: []string{}, You: inv.connection(nil).Caller()}
	err := inv.rights(ctx, func(ctx context.Context, etcd rights.Etcd) (err error) {
		if doc.On, err = etcd.Enabled(ctx); err != nil {
			return err
		}
		st, err := rights.Read(ctx, etcd)
		if errors.Is(err, store.ErrDenied) && doc.You != "" && !errors.Is(err, store.ErrNotLoggedIn) {
			roles, err := etcd.RolesOf(ctx, doc.You)
			doc.Users = append(doc.Users, inv.authUser(doc.You, roles))
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(st.Users)) {
			doc.Users = append(doc.Users, inv.authUser(name, st.Users[name]))
		}
		for _, step := range (rights.Wanted{Shard: inv.flags.Shard}).Steps(st) {
			doc.Missing = append(doc.Missing, step.What)
		}
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return inv.denied(ctx, store.ErrDenied, "")
	}
	if err != nil {
		return err
	}
	if done, err := inv.records(doc); done {
		return err
	}
	return inv.showAuth(doc)
}

func (inv *Invocation) authUser(name string, roles []string) authUser {
	u := authUser{
		Name: name, Roles: rights.In(roles, inv.flags.Shard), Root: slices.Contains(roles, store.RoleRoot),
		Other: []string{},
	}
	for _, shard := range rights.Shards(roles) {
		if shard != inv.flags.Shard {
			u.Other = append(u.Other, shard)
		}
	}
	return u
}

func (inv *Invocation) showAuth(doc authDocument) error {
	scr := inv.screen()
	state := "authentication is on"
	if !doc.On {
		state = "authentication is off: every client that reaches etcd may do everything"
	}
	fmt.Fprintf(scr.W, "%s; you are %s\n", state, orDash(doc.You))
	t := output.Table{Columns: []output.Column{{Title: "USER"}, {Title: "ROLE"}, {Title: "OTHER SHARDS"}}}
	for _, u := range doc.Users {
		role := rights.Names(u.Roles)
		if u.Root {
			role = store.RoleRoot
		}
		t.Add(u.Name, orDash(role), orDash(strings.Join(u.Other, ",")))
	}
	if err := t.Write(scr, inv.wide()); err != nil {
		return err
	}
	switch {
	case len(doc.Missing) > 0:
		inv.note("%s to repair in shard %s: leasehold auth init --dry-run", counted(len(doc.Missing), "thing", "things"),
			inv.flags.Shard)
	case !doc.On:
		inv.note("enable it with: leasehold auth init")
	}
	return nil
}

// AuthAdd is the command auth add.
type AuthAdd struct {
	Name      string     `arg:"" help:"Name of the user: the common name of its certificate, or a name with a password."`
	Role      store.Role `help:"Role in the shard: ${enum}." enum:"viewer,operator,coordinator" required:""`
	Passwords string     `help:"Give the user a password from a line NAME:PASSWORD of this file (- is standard input); a missing password is generated and added to it. Without this flag the user authenticates with a certificate." placeholder:"FILE"`
	DryRun    bool       `help:"Show what would change, without changing anything."`
}

// Run grants the role.
func (c *AuthAdd) Run(ctx context.Context, inv *Invocation) error {
	return inv.changeUser(ctx, c.Name, func(ctx context.Context, etcd rights.Etcd, st rights.State) (err error) {
		w := rights.Wanted{Shard: inv.flags.Shard}
		if w.Passwords, err = inv.passwords(c.Passwords, []string{c.Name}, c.DryRun); err != nil {
			return err
		}
		// The role may be missing or have wrong rights, so it is repaired first.
		steps := append(w.Steps(st), w.Add(st, c.Name, c.Role)...)
		if err := inv.carryOut(ctx, etcd, steps, c.DryRun); err != nil {
			return err
		}
		inv.outcome(steps, c.DryRun, fmt.Sprintf("user %s has the role %s in shard %s", c.Name, c.Role, inv.flags.Shard))
		if !st.Enabled {
			inv.warn("authentication is off: every client that reaches etcd may do everything; " +
				"enable it with leasehold auth init")
		}
		return nil
	})
}

// changeUser changes one user.
func (inv *Invocation) changeUser(ctx context.Context, name string,
	do func(context.Context, rights.Etcd, rights.State) error,
) error {
	if err := inv.addable(name); err != nil {
		return err
	}
	return inv.rights(ctx, func(ctx context.Context, etcd rights.Etcd) error {
		st, err := rights.Read(ctx, etcd)
		if err != nil {
			return err
		}
		return do(ctx, etcd, st)
	})
}

// addable refuses names that no user can have.
func (inv *Invocation) addable(name string) error {
	if name == "" || name == store.RoleRoot || strings.ContainsAny(name, ":\n\r\x00") ||
		name != strings.TrimSpace(name) {
		return failure(Usage, "leasehold "+inv.command+" --help",
			"%s: user %q: must be a name without colon, and not root", inv.command, name)
	}
	return nil
}

// AuthRemove is the command auth remove.
type AuthRemove struct {
	Name   string `arg:"" help:"Name of the user."`
	DryRun bool   `help:"Show what would change, without changing anything."`
}

// Run removes the role.
func (c *AuthRemove) Run(ctx context.Context, inv *Invocation) error {
	return inv.changeUser(ctx, c.Name, func(ctx context.Context, etcd rights.Etcd, st rights.State) error {
		if _, there := st.Users[c.Name]; !there {
			return failure(NotFound, "leasehold auth show", "%s: etcd knows no user %q", inv.command, c.Name)
		}
		steps := rights.Wanted{Shard: inv.flags.Shard}.Remove(st, c.Name)
		if err := inv.carryOut(ctx, etcd, steps, c.DryRun); err != nil {
			return err
		}
		inv.outcome(steps, c.DryRun, fmt.Sprintf("user %s no longer has a role in shard %s", c.Name, inv.flags.Shard))
		return nil
	})
}

// outcome reports the result of the steps.
func (inv *Invocation) outcome(steps []rights.Step, dryRun bool, done string) {
	switch {
	case dryRun:
		fmt.Fprintln(inv.env.Stdout, "Nothing changed.")
	case len(steps) == 0:
		fmt.Fprintf(inv.env.Stdout, "%s unchanged\n", done)
	default:
		fmt.Fprintln(inv.env.Stdout, done)
	}
}

// allowed checks whether our user has the rights of a service.
func (inv *Invocation) allowed(ctx context.Context, role store.Role) error {
	etcd, leave, err := inv.env.Rights(ctx, inv.connection(nil))
	if err != nil {
		return inv.openFailed(ctx, err)
	}
	defer func() { _ = leave() }() // asked once
	on, err := etcd.Enabled(ctx)
	if err != nil || !on {
		return err
	}
	name := inv.connection(nil).Caller()
	roles, err := etcd.RolesOf(ctx, name)
	in := rights.In(roles, inv.flags.Shard)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrDenied):
		return inv.denied(ctx, errors.Join(store.ErrDenied, err), "")
	case err != nil, slices.Contains(in, role), slices.Contains(roles, store.RoleRoot):
		return err
	case len(in) == 0:
		return inv.denied(ctx, store.ErrDenied, "")
	}
	return failure(Failed,
		fmt.Sprintf("give --cert and --key, or --user, of a %s; create one with: leasehold auth add NAME --role %s%s",
			role, role, inv.shardFlag()),
		"%s: user %q has the role %s, and a %s needs the role %s", inv.command, name, rights.Names(in), role, role)
}
