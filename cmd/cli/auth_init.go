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

// AuthInit is the command auth init.
type AuthInit struct {
	Users     []string `help:"Users to create, with their roles (none: create only root)." default:"coordinator=coordinator,operator=operator,viewer=viewer" placeholder:"NAME=ROLE"`
	Passwords string   `help:"Give users passwords from the lines NAME:PASSWORD of this file (- is standard input); missing passwords are generated and added to it. Without this flag users authenticate with certificates." placeholder:"FILE"`
	DryRun    bool     `help:"Show what would change, without changing anything."`
}

// Run sets everything up, and turns authentication on last.
func (c *AuthInit) Run(ctx context.Context, inv *Invocation) error {
	users, err := c.users(inv)
	if err != nil {
		return err
	}
	return inv.rights(ctx, func(ctx context.Context, etcd rights.Etcd) error {
		st, err := rights.Read(ctx, etcd)
		if err != nil {
			return err
		}
		w := rights.Wanted{Shard: inv.flags.Shard, Users: users}
		if !st.Enabled {
			if err := c.rootWillGetIn(inv); err != nil {
				return err
			}
		}
		if w.Passwords, err = inv.passwords(c.Passwords, w.Made(st), c.DryRun); err != nil {
			return err
		}
		steps := w.Steps(st)
		if err := inv.carryOut(ctx, etcd, steps, c.DryRun); err != nil {
			return err
		}
		if !st.Enabled {
			on := rights.Step{What: "+ authentication is on", Do: func(ctx context.Context, etcd rights.Etcd) error {
				return inv.enable(ctx, etcd, w.Passwords[store.RoleRoot])
			}}
			steps = append(steps, on)
			if err := inv.carryOut(ctx, etcd, []rights.Step{on}, c.DryRun); err != nil {
				return err
			}
		}
		for _, name := range w.Missing(st) {
			inv.note("user %s has roles only in %s, and was given none here: leasehold auth add %s --role %s%s", name,
				strings.Join(rights.Shards(st.Users[name]), ", "), name, users[name], inv.shardFlag())
		}
		inv.outcome(steps, c.DryRun, "rights of shard "+inv.flags.Shard+" are set up")
		if !st.Enabled && !c.DryRun {
			inv.note("from now on etcd refuses coordinators and commands without credentials")
		}
		return nil
	})
}

// users returns the users that --users names.
func (c *AuthInit) users(inv *Invocation) (map[string]store.Role, error) {
	users := map[string]store.Role{}
	if len(c.Users) == 1 && c.Users[0] == "none" {
		return users, nil
	}
	for _, word := range c.Users {
		name, role, _ := strings.Cut(word, "=")
		if !slices.Contains(store.Roles(), store.Role(role)) {
			return nil, failure(Usage, "leasehold auth init --users eva=operator,max=viewer",
				"--users: %q: must be NAME=ROLE, with a role of viewer, operator and coordinator", word)
		}
		if err := inv.addable(name); err != nil {
			return nil, err
		}
		users[name] = store.Role(role)
	}
	return users, nil
}

// rootWillGetIn refuses what would lock root out, as far as that can be known before authentication
// is enabled.
func (c *AuthInit) rootWillGetIn(inv *Invocation) error {
	conn := inv.connection(nil)
	switch name := conn.Caller(); {
	case c.Passwords != "":
		return nil
	case conn.Cert == "":
		return failure(Usage,
			"leasehold pki issue root, and give --cacert, --cert and --key; or --passwords FILE, for users with passwords",
			"auth init: root would be locked out afterwards: neither a certificate nor --passwords is given")
	case name != store.RoleRoot || conn.Username != "":
		return failure(Usage,
			"leasehold pki issue root, and give its --cert and --key; or --passwords FILE, for users with passwords",
			"auth init: root would be locked out afterwards: the certificate %s names %q", conn.Cert,
			Connection{Cert: conn.Cert}.Caller())
	}
	return nil
}

// enable enables authentication. If root cannot log in then, it is disabled again.
func (inv *Invocation) enable(ctx context.Context, etcd rights.Etcd, rootPassword string) error {
	as := func(name, password string) rights.Entry {
		c := inv.connection(nil)
		c.Username, c.Password = name, password
		return func(ctx context.Context) (rights.Etcd, func() error, error) { return inv.env.Rights(ctx, c) }
	}
	root := as("", "")
	if rootPassword != "" {
		root = as(store.RoleRoot, rootPassword)
	}
	err := rights.Enable(ctx, etcd, root, as, inv.env.RandomID(), func() {
		inv.note("root cannot log in: authentication is being turned off again, which may take some minutes")
	})
	if errors.Is(err, rights.ErrLockedOut) {
		next := "run etcd with --client-cert-auth and --trusted-ca-file, so that it authenticates by " +
			"certificate; or give --passwords FILE"
		if rootPassword != "" {
			next = "run leasehold auth init again; etcd's log says why root could not log in"
		}
		return failure(Failed, next, "auth init: %s", joined(err))
	}
	if err != nil {
		return fmt.Errorf("auth init: %w", err)
	}
	return nil
}
