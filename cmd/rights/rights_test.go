package rights

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// people is an etcd of which only users matter. It carries out nothing for a context that has
// ended.
type people struct {
	Etcd
	users   map[string][]string
	removed func()
}

func (p *people) RemoveUser(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	delete(p.users, name)
	p.removed()
	return nil
}

func (p *people) AddUser(ctx context.Context, name, _ string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.users[name] = nil
	return nil
}

func (p *people) Give(ctx context.Context, name, role string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.users[name] = append(p.users[name], role)
	return nil
}

// A command that is interrupted while it changes a password leaves the user its roles, also those
// in other shards.
//
// proves SEC-4
func TestAPasswordIsChangedWhollyOrNotAtAll(t *testing.T) {
	roles := []string{
		store.KeysOf("default").RoleName(store.RoleOperator), store.KeysOf("shop").RoleName(store.RoleViewer),
	}
	w := Wanted{Shard: "default", Passwords: map[string]string{"eva": "another"}}
	for _, before := range []bool{false, true} {
		ctx, interrupt := context.WithCancel(t.Context())
		etcd := &people{users: map[string][]string{"eva": slices.Clone(roles)}, removed: interrupt}
		steps := w.Add(State{Users: etcd.users}, "eva", store.RoleOperator)
		if before {
			interrupt()
		}
		err := Do(ctx, etcd, steps, func(Step) {})
		if errors.Is(err, context.Canceled) != before || !slices.Equal(etcd.users["eva"], roles) {
			t.Errorf("interrupted before: %t: %v: the user has the roles %q", before, err, etcd.users["eva"])
		}
		interrupt()
	}
}
