package server

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold/leasehold/cmd/server/membership"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// Admin changes the cluster, on one of its hosts.
type Admin struct {
	place   Place
	record  Record
	members *etcdstore.Members
}

// Open reads a host's record and connects to its cluster.
func Open(ctx context.Context, place Place) (*Admin, error) {
	r, err := place.load()
	if isNew(err) {
		return nil,
			problem("run it on a host of the cluster, as the user who runs leasehold server there, or name its --data-dir",
				"%s holds no server", place.Dir)
	}
	if err != nil {
		return nil, err
	}
	return place.admin(ctx, r)
}

// admin connects to the cluster as etcd's root.
func (p Place) admin(ctx context.Context, r Record) (*Admin, error) {
	secure, err := p.credentials().Client(store.RoleRoot)
	if err != nil {
		return nil, err
	}
	members, err := etcdstore.OpenMembers(ctx, etcdstore.Config{Endpoints: r.endpoints(), TLS: secure})
	if err != nil {
		return nil, err
	}
	return &Admin{place: p, record: r, members: members}, nil
}

// Close closes the connection.
func (a *Admin) Close() { _ = a.members.Close() }

// Record returns what the host has recorded about itself.
func (a *Admin) Record() Record { return a.record }

// Members lists etcd's members, by name.
func (a *Admin) Members(ctx context.Context) ([]etcdstore.Member, error) { return a.members.List(ctx) }

// Cluster returns the members in the form that decisions need.
func (a *Admin) Cluster(ctx context.Context) (membership.Cluster, error) {
	list, err := a.members.List(ctx)
	return ClusterOf(list), err
}

// ClusterOf converts etcd's member list to the form that decisions need.
func ClusterOf(list []etcdstore.Member) membership.Cluster {
	var lead uint64
	for _, m := range list {
		lead = max(lead, m.Index)
	}
	var c membership.Cluster
	for _, m := range list {
		one := membership.Member{ID: m.ID, Name: m.Name, Learner: m.Learner, Answers: m.Answers}
		one.Behind = m.Learner && m.Index < lead-lead/10
		if len(m.Peers) > 0 {
			one.Peer = m.Peers[0]
		}
		if len(m.Clients) > 0 {
			one.Client = m.Clients[0]
		}
		c = append(c, one)
	}
	slices.SortFunc(c, func(a, b membership.Member) int {
		switch {
		case a.Label() < b.Label():
			return -1
		case a.Label() > b.Label():
			return 1
		}
		return 0
	})
	return c
}

// Token creates a token with which one host can join once, within an hour.
func (a *Admin) Token(ctx context.Context, by string) (text string, err error) {
	cluster, err := a.Cluster(ctx)
	if err != nil {
		return "", err
	}
	if why := cluster.NoQuorum(); why != "" {
		return "", problem("start leasehold server on the hosts that do not answer", "%s", why)
	}
	st, err := a.place.store(ctx, a.record.endpoints(), nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return a.place.invite(ctx, st, a.record.Shard, by)
}

// JoinCommand returns the command to run on a host that joins.
func (a *Admin) JoinCommand(name, token string) string { return a.record.joinCommand(name, token) }

func (r Record) joinCommand(name, token string) string {
	return "leasehold server --name " + name + " --join " + r.at(r.Port) + " --token " + token
}

// MayAdd returns why no host of this name may join, or nil: one that joins waits until others that
// are being added vote. Where it would be reached is not known yet.
func (a *Admin) MayAdd(ctx context.Context, name string) error {
	cluster, err := a.Cluster(ctx)
	if err != nil {
		return err
	}
	no := cluster.MayAdd(name, "")
	if no != nil && no.Busy {
		return nil
	}
	return refusal(no)
}

// MayRemove returns why a host may not be removed now, or nil.
func (a *Admin) MayRemove(ctx context.Context, name string) error {
	cluster, err := a.Cluster(ctx)
	if err != nil {
		return err
	}
	return refusal(cluster.MayRemove(name))
}

// MayReplace returns why a host may not be replaced now, or nil.
func (a *Admin) MayReplace(ctx context.Context, name string) error {
	cluster, err := a.Cluster(ctx)
	if err != nil {
		return err
	}
	return refusal(cluster.MayReplace(name))
}

// Remove removes a host for good.
func (a *Admin) Remove(ctx context.Context, name string) error {
	return a.remove(ctx, name, membership.Cluster.MayRemove)
}

// Replace removes a host that lost its data so that it can join again.
func (a *Admin) Replace(ctx context.Context, name string) error {
	return a.remove(ctx, name, membership.Cluster.MayReplace)
}

func (a *Admin) remove(ctx context.Context, name string,
	may func(membership.Cluster, string) *membership.Refusal,
) error {
	cluster, err := a.Cluster(ctx)
	if err != nil {
		return err
	}
	if r := may(cluster, name); r != nil {
		return refusal(r)
	}
	m, _ := cluster.Find(name)
	return settled(ctx, func() error { return a.members.Remove(ctx, m.ID) })
}

// refusal turns a refused change of the cluster into an error for operators.
func refusal(r *membership.Refusal) error {
	if r == nil {
		return nil
	}
	return problem(r.Next, "%s", r.What)
}
