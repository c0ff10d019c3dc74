package trouble

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/tests/faults/network"
)

var ofNetwork = []Kind{
	{Name: "replica-cut-from-etcd", Weight: 4, Least: 2 * time.Second, Most: 15 * time.Second, Do: replicaCutFromEtcd},
	{
		Name: "replica-cut-from-agents", Weight: 3, Takes: []Part{Paths}, Least: 2 * time.Second, Most: 12 * time.Second,
		Do: replicaCutFromAgents,
	},
	{
		Name: "member-cut-from-members", Weight: 3, Takes: []Part{Etcd}, Least: 2 * time.Second, Most: 12 * time.Second,
		Do: memberCut,
	},
	{
		Name: "network-slow", Weight: 2, Takes: []Part{Paths}, Least: 5 * time.Second, Most: 15 * time.Second,
		Do: networkSlow,
	},
	{Name: "ways-to-etcd-reset", Weight: 2, Do: waysToEtcdReset},
	{Name: "connections-reset", Weight: 2, Do: connectionsReset},
}

// cutting is a way to cut: silent, in both directions or one, or refusing connections.
func cutting(s *Site) network.Rule {
	return pick(s, []network.Rule{
		{Only: network.Both, Silent: true},
		{Only: network.There, Silent: true},
		{Only: network.Back, Silent: true},
		{Only: network.Both, Refuse: true, Reset: true},
	})
}

func impose(s *Site, r network.Rule) func() error {
	lift := s.Impose(r)
	return func() error { lift(); return nil }
}

func how(r network.Rule) string {
	switch {
	case r.Refuse:
		return "refused"
	case r.Only == network.There:
		return "silent one way"
	case r.Only == network.Back:
		return "silent the other way"
	}
	return "silent"
}

func replicaCutFromEtcd(_ context.Context, s *Site) (string, func() error, error) {
	id, what := replica(s)
	r := cutting(s)
	r.From, r.To = network.Any(id), s.IsMember
	if s.Chance(30) { // from one member alone
		r.To = network.Any(fmt.Sprintf("m%d", s.IntN(s.MemberCount())))
		what += ", from one member"
	}
	return what + ", " + how(r), impose(s, r), nil
}

func replicaCutFromAgents(_ context.Context, s *Site) (string, func() error, error) {
	id, what := replica(s)
	r := cutting(s)
	r.From, r.To = s.IsMachine, network.Any(id)
	return what + ", " + how(r), impose(s, r), nil
}

func memberCut(_ context.Context, s *Site) (string, func() error, error) {
	name := fmt.Sprintf("m%d", s.IntN(s.MemberCount()))
	to := cutting(s)
	to.From, to.To = s.IsMember, network.Any(name)
	from := to
	from.From, from.To = network.Any(name), s.IsMember
	what := fmt.Sprintf("%s, %s", name, how(to))
	one, other := impose(s, to), impose(s, from)
	return what, func() error { _ = one(); return other() }, nil
}

func networkSlow(_ context.Context, s *Site) (string, func() error, error) {
	r := network.Rule{
		Only: network.Both, Delay: s.between(20*time.Millisecond, 200*time.Millisecond),
		Jitter: s.between(10*time.Millisecond, 200*time.Millisecond),
	}
	r.Loss = 0.1 * s.Float64()
	return fmt.Sprintf("%s and up to %s more, %.0f%% lost", r.Delay, r.Jitter, 100*r.Loss), impose(s, r), nil
}

// connectionsReset: a router between machines and replicas restarts, and all connections break.
func connectionsReset(_ context.Context, s *Site) (string, func() error, error) {
	hit := s.ReplicaIDs()
	if s.Chance(50) {
		hit = []string{pick(s, hit)}
	}
	lift := s.Impose(network.Rule{From: s.IsMachine, To: network.Any(hit...), Only: network.Both, Reset: true})
	lift()
	return fmt.Sprint(hit), nil, nil
}

// waysToEtcdReset: the same between replicas and etcd. Every watch must restart and catch up.
func waysToEtcdReset(ctx context.Context, s *Site) (string, func() error, error) {
	hit := s.ReplicaIDs()
	if leads := s.LeaderNow(); leads != "" && s.Chance(50) {
		hit = []string{leads}
	}
	away := s.between(100*time.Millisecond, 2*time.Second) // so long there is no other
	lift := s.Impose(network.Rule{
		From: network.Any(hit...), To: s.IsMember, Only: network.Both, Reset: true,
		Refuse: true,
	})
	wait(ctx, away)
	lift()
	return fmt.Sprintf("%v, for %s", hit, away), nil, nil
}
