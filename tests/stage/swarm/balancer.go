package swarm

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/fake/socket"
)

// Balancer is a load balancer in the process that serves a socket. It has one target, which checks its
// members and knows their names.
type Balancer struct {
	*socket.Client
	replica string
}

var _ balancer.Balancer = Balancer{}

// BalancerTarget is the name of its target.
const BalancerTarget = "front"

// NewBalancer returns a replica's load balancer, which connects with the first call.
func NewBalancer(replica, path string) Balancer { return Balancer{socket.NewClient(path), replica} }

// MemberCall is a call of the load balancer's contract, as it is sent over the socket.
type MemberCall struct {
	Replica string        // the replica that calls
	Left    time.Duration // the caller's time limit; 0: none
	Shard   string
	Member  balancer.Member
}

// MemberAnswer is the result of a call.
type MemberAnswer struct {
	Members []balancer.Status
	Err     string
}

// Failure is the error of the call.
func (a MemberAnswer) Failure() error {
	if a.Err == "" {
		return nil
	}
	return errors.New(a.Err)
}

// Capabilities are those of a load balancer that answers within seconds.
func (Balancer) Capabilities() balancer.Capabilities {
	return balancer.Capabilities{
		CallTimeout: 3 * time.Second, Named: true, Health: true, Connections: true, DrainEnds: true,
	}
}

// Validate accepts every use.
func (Balancer) Validate(balancer.Use) error { return nil }

// Add adds a member.
func (b Balancer) Add(ctx context.Context, shard string, m balancer.Member) error {
	return b.call(ctx, "Add", shard, m)
}

// Drain drains a member.
func (b Balancer) Drain(ctx context.Context, shard string, m balancer.Member) error {
	return b.call(ctx, "Drain", shard, m)
}

// Remove removes a member.
func (b Balancer) Remove(ctx context.Context, shard string, m balancer.Member) error {
	return b.call(ctx, "Remove", shard, m)
}

// List lists the members.
func (b Balancer) List(ctx context.Context, shard string, _ []balancer.Member) (balancer.Listing, error) {
	a, err := b.ask(ctx, "List", shard, balancer.Member{})
	if err != nil {
		return balancer.Listing{}, err
	}
	return balancer.Listing{Targets: []balancer.Target{{Name: BalancerTarget, Members: a.Members}}}, nil
}

func (b Balancer) call(ctx context.Context, method, shard string, m balancer.Member) error {
	_, err := b.ask(ctx, method, shard, m)
	return err
}

func (b Balancer) ask(ctx context.Context, method, shard string, m balancer.Member) (MemberAnswer, error) {
	return socket.Ask[MemberAnswer](ctx, b.Client, "Traffic."+method,
		MemberCall{Replica: b.replica, Left: socket.Left(ctx), Shard: shard, Member: m})
}
