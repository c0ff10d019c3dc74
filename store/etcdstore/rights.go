package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
)

// Rights administers etcd's users and roles. All but [Rights.Enabled] and [Rights.RolesOf] of
// oneself is for etcd's root alone, once authentication is on. Calls may be repeated: what is there
// already, or gone already, is no error.
type Rights struct {
	store  *Store // for its configuration: it is not opened
	client *clientv3.Client
}

// OpenRights connects to etcd as [Open] does.
func OpenRights(ctx context.Context, cfg Config) (*Rights, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	ctx, stop := context.WithTimeout(ctx, cfg.DialTimeout)
	defer stop()
	client, err := s.newClient(ctx)
	if err == nil {
		// This needs no login: it shows whether one is needed.
		if _, err = client.AuthStatus(ctx); err == nil {
			return &Rights{store: s, client: client}, nil
		}
		err = errors.Join(err, closeClient(client))
	}
	s.cancel()
	return nil, s.explainDial(ctx, err)
}

// Close closes the connection.
func (r *Rights) Close() error {
	r.store.cancel()
	return closeClient(r.client)
}

// Enabled reports whether authentication is on.
func (r *Rights) Enabled(ctx context.Context) (bool, error) {
	st, err := r.client.AuthStatus(ctx)
	if err != nil {
		return false, fmt.Errorf("ask whether authentication is on: %w", readError(ctx, err))
	}
	return st.Enabled, nil
}

// RolesOf returns the roles of a user. The error wraps store.ErrNotFound if there is no such user.
func (r *Rights) RolesOf(ctx context.Context, user string) ([]string, error) {
	u, err := r.client.UserGet(ctx, user)
	if errors.Is(rpctypes.Error(err), rpctypes.ErrUserNotFound) {
		return nil, fmt.Errorf("user %s: %w", user, store.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read user %s: %w", user, readError(ctx, err))
	}
	return u.Roles, nil
}

// Users returns all users with their roles.
func (r *Rights) Users(ctx context.Context) (map[string][]string, error) {
	list, err := r.client.UserList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", readError(ctx, err))
	}
	all := make(map[string][]string, len(list.Users))
	for _, name := range list.Users {
		roles, err := r.RolesOf(ctx, name)
		if errors.Is(err, store.ErrNotFound) { // went away meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		all[name] = roles
	}
	return all, nil
}

// Roles returns all roles with what they permit.
func (r *Rights) Roles(ctx context.Context) (map[string][]store.Permission, error) {
	list, err := r.client.RoleList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list roles: %w", readError(ctx, err))
	}
	all := make(map[string][]store.Permission, len(list.Roles))
	for _, name := range list.Roles {
		role, err := r.client.RoleGet(ctx, name)
		if errors.Is(rpctypes.Error(err), rpctypes.ErrRoleNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read role %s: %w", name, readError(ctx, err))
		}
		all[name] = []store.Permission{}
		for _, p := range role.Perm {
			all[name] = append(all[name], permissionOf(p))
		}
	}
	return all, nil
}

// permissionOf reads a permission.
func permissionOf(p *authpb.Permission) store.Permission {
	out := store.Permission{Key: string(p.Key), Write: p.PermType != authpb.READ}
	switch end := string(p.RangeEnd); end {
	case "":
	case clientv3.GetPrefixRangeEnd(out.Key):
		out.Prefix = true
	default:
		out.End = end
	}
	if p.PermType == authpb.WRITE {
		out.Blind = true
	}
	return out
}

func endOf(p store.Permission) string {
	if p.Prefix {
		return clientv3.GetPrefixRangeEnd(p.Key)
	}
	return p.End
}

// AddRole makes a role that permits nothing yet.
func (r *Rights) AddRole(ctx context.Context, role string) error {
	_, err := r.client.RoleAdd(ctx, role)
	return changed(ctx, "make role "+role, err, rpctypes.ErrRoleAlreadyExist)
}

// Allow adds a permission to a role.
func (r *Rights) Allow(ctx context.Context, role string, p store.Permission) error {
	how := clientv3.PermissionType(clientv3.PermRead)
	if p.Write {
		how = clientv3.PermissionType(clientv3.PermReadWrite)
	}
	_, err := r.client.RoleGrantPermission(ctx, role, p.Key, endOf(p), how)
	return changed(ctx, "grant permission to role "+role, err, nil)
}

// Forbid takes a permission from a role.
func (r *Rights) Forbid(ctx context.Context, role string, p store.Permission) error {
	_, err := r.client.RoleRevokePermission(ctx, role, p.Key, endOf(p))
	return changed(ctx, "take permission from role "+role, err, rpctypes.ErrPermissionNotGranted)
}

// AddUser makes a user. Without a password it can log in only with a certificate that names it.
func (r *Rights) AddUser(ctx context.Context, name, password string) error {
	_, err := r.client.UserAddWithOptions(ctx, name, password, &clientv3.UserAddOptions{NoPassword: password == ""})
	return changed(ctx, "make user "+name, err, rpctypes.ErrUserAlreadyExist)
}

// RemoveUser removes a user.
func (r *Rights) RemoveUser(ctx context.Context, name string) error {
	_, err := r.client.UserDelete(ctx, name)
	return changed(ctx, "remove user "+name, err, rpctypes.ErrUserNotFound)
}

// Give gives a user a role.
func (r *Rights) Give(ctx context.Context, user, role string) error {
	_, err := r.client.UserGrantRole(ctx, user, role)
	return changed(ctx, "give user "+user+" role "+role, err, nil)
}

// Take takes a role from a user.
func (r *Rights) Take(ctx context.Context, user, role string) error {
	_, err := r.client.UserRevokeRole(ctx, user, role)
	return changed(ctx, "take role "+role+" from user "+user, err, rpctypes.ErrRoleNotGranted)
}

// Enable turns authentication on: from then on every client must authenticate.
func (r *Rights) Enable(ctx context.Context) error {
	_, err := r.client.AuthEnable(ctx)
	return changed(ctx, "turn authentication on", err, nil)
}

// Disable turns authentication off.
func (r *Rights) Disable(ctx context.Context) error {
	_, err := r.client.AuthDisable(ctx)
	return changed(ctx, "turn authentication off", err, nil)
}

// changed translates the error of a change; fine is the error that means that nothing had to
// change.
func changed(ctx context.Context, what string, err, fine error) error {
	if err == nil || fine != nil && errors.Is(rpctypes.Error(err), fine) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, writeError(ctx, err, true))
}
