package targetgroup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
	"github.com/leasehold/leasehold/provider/balancer"
)

// Balancer is one or more target groups.
type Balancer struct {
	api         api
	gate        *amazon.Gate
	region      string
	groups      []string // ARNs
	timeout     time.Duration
	consistency time.Duration
	lookup      func(name string) (string, error)

	mu     sync.Mutex
	looked map[string]bool // groups known to take IP addresses
}

var _ balancer.Balancer = (*Balancer)(nil)

// Capabilities returns the capabilities of target groups: they count no connections and know no
// weights of targets.
func (b *Balancer) Capabilities() balancer.Capabilities {
	return balancer.Capabilities{
		CallTimeout: b.timeout, Consistency: b.consistency, Health: true, DrainEnds: true, Leaves: true,
	}
}

// Validate refuses weights and settings: there are none.
func (b *Balancer) Validate(u balancer.Use) error { return balancer.CheckUse(b.Capabilities(), u) }

// Add registers the member in every group, also a draining one.
func (b *Balancer) Add(ctx context.Context, shard string, m balancer.Member) error {
	if err := b.Validate(m.Use); err != nil {
		return err
	}
	return b.change(ctx, shard, m, func(ctx context.Context, group string) error {
		if err := b.look(ctx, group); err != nil {
			return err
		}
		return b.call(ctx, "target group "+nameOf(group), func(ctx context.Context) error {
			_, err := b.api.RegisterTargets(ctx, &elb.RegisterTargetsInput{
				TargetGroupArn: &group,
				Targets:        []types.TargetDescription{targetOf(m)},
			})
			return err
		})
	})
}

// Drain deregisters the member in every group: it then drains for the group's deregistration delay.
func (b *Balancer) Drain(ctx context.Context, shard string, m balancer.Member) error {
	return b.change(ctx, shard, m, func(ctx context.Context, group string) error { return b.deregister(ctx, group, m) })
}

// Remove does the same as Drain: Amazon removes a target when its drain has ended.
func (b *Balancer) Remove(ctx context.Context, shard string, m balancer.Member) error {
	return b.Drain(ctx, shard, m)
}

func (b *Balancer) deregister(ctx context.Context, group string, m balancer.Member) error {
	found, err := b.health(ctx, group, []types.TargetDescription{targetOf(m)})
	if err != nil {
		return err
	}
	leaving := len(found) > 0 // an answer without the target proves nothing
	for _, t := range found {
		leaving = leaving && (t.status.State == balancer.Draining || t.absent)
	}
	if leaving {
		return nil
	}
	return b.call(ctx, "target group "+nameOf(group), func(ctx context.Context) error {
		_, err := b.api.DeregisterTargets(ctx, &elb.DeregisterTargetsInput{
			TargetGroupArn: &group,
			Targets:        []types.TargetDescription{targetOf(m)},
		})
		return err
	})
}

// List reads the health of all targets of every group, which comes in one answer.
func (b *Balancer) List(ctx context.Context, shard string, recorded []balancer.Member) (balancer.Listing, error) {
	if err := balancer.CheckShard(shard); err != nil {
		return balancer.Listing{}, err
	}
	instances := map[netip.AddrPort]string{}
	for _, m := range recorded {
		if at, err := netip.ParseAddr(m.Address); err == nil {
			instances[netip.AddrPortFrom(at, uint16(m.Port))] = m.Instance
		}
	}
	return balancer.Listed(ctx, b.each(ctx, func(ctx context.Context, group string) (out balancer.Target) {
		found, err := b.health(ctx, group, nil)
		if err != nil {
			return balancer.Target{Err: err}
		}
		for _, t := range found {
			instance, ok := instances[t.at]
			if !ok {
				out.Foreign++
				continue
			}
			t.status.Instance = instance
			out.Members = append(out.Members, t.status)
		}
		return out
	}))
}

// change applies a change of a member to every group at once.
func (b *Balancer) change(ctx context.Context, shard string, m balancer.Member,
	do func(context.Context, string) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := balancer.Check(shard, m); err != nil {
		return err
	}
	err := balancer.Failure(b.each(ctx, func(ctx context.Context, group string) balancer.Target {
		return balancer.Target{Err: do(ctx, group)}
	}))
	if ended := ctx.Err(); err != nil && ended != nil {
		return errors.Join(ended, err)
	}
	return err
}

func (b *Balancer) each(ctx context.Context, do func(context.Context, string) balancer.Target) []balancer.Target {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	names := make([]string, len(b.groups))
	for i, group := range b.groups {
		names[i] = nameOf(group)
	}
	return balancer.Each(names, func(i int) balancer.Target { return do(ctx, b.groups[i]) })
}

// look makes sure, once per group, that its targets are IP addresses.
func (b *Balancer) look(ctx context.Context, group string) error {
	b.mu.Lock()
	looked := b.looked[group]
	b.mu.Unlock()
	if looked {
		return nil
	}
	scope := "target group " + nameOf(group)
	var out *elb.DescribeTargetGroupsOutput
	err := b.call(ctx, scope, func(ctx context.Context) (err error) {
		out, err = b.api.DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{TargetGroupArns: []string{group}})
		return err
	})
	switch {
	case err != nil:
		return err
	case len(out.TargetGroups) != 1 || aws.ToString(out.TargetGroups[0].TargetGroupArn) != group:
		return fmt.Errorf("describe %s: the answer is about %d groups", scope, len(out.TargetGroups))
	case out.TargetGroups[0].TargetType != types.TargetTypeEnumIp:
		return balancer.Errorf(provider.Invalid, scope, "its targets are of type %q: make one of type ip",
			out.TargetGroups[0].TargetType)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked[group] = true
	return nil
}

// target is a group's entry.
type target struct {
	at     netip.AddrPort
	status balancer.Status // without the instance
	absent bool            // requested by name, and not registered
}

// health reads some targets of a group, or all.
func (b *Balancer) health(ctx context.Context, group string, of []types.TargetDescription) ([]target, error) {
	var out *elb.DescribeTargetHealthOutput
	err := b.call(ctx, "target group "+nameOf(group), func(ctx context.Context) (err error) {
		out, err = b.api.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: &group, Targets: of})
		if err == nil && out.TargetHealthDescriptions == nil {
			// The SDK takes an empty body for an answer in which nothing is set.
			err = errors.New("the answer has no list of targets, not even an empty one: Amazon did not answer")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var found []target
	seen := map[netip.AddrPort]bool{}
	for _, d := range out.TargetHealthDescriptions {
		t, err := read(d)
		if err == nil && seen[t.at] {
			err = fmt.Errorf("target %s is listed twice", t.at)
		}
		if err != nil {
			return nil, fmt.Errorf("read the targets of %s: %w", nameOf(group), err)
		}
		seen[t.at] = true
		found = append(found, t)
	}
	return found, nil
}

func read(d types.TargetHealthDescription) (t target, err error) {
	if d.Target == nil || d.TargetHealth == nil {
		return t, errors.New("a target has no ID or no health")
	}
	address, err := netip.ParseAddr(aws.ToString(d.Target.Id))
	port := aws.ToInt32(d.Target.Port)
	if err != nil || port < 1 || port > 65535 {
		return t, fmt.Errorf("target %q, port %d: is not an address and a port", aws.ToString(d.Target.Id), port)
	}
	t.at = netip.AddrPortFrom(address, uint16(port))
	t.status = balancer.Status{
		Member: balancer.Member{Address: address.String(), Port: int(port)}, State: balancer.Ready, Health: balancer.Down,
		Connections: balancer.UnknownConnections, Why: strings.TrimSpace(string(d.TargetHealth.State) + " " +
			string(d.TargetHealth.Reason)),
	}
	t.absent = d.TargetHealth.Reason == types.TargetHealthReasonEnumNotRegistered
	switch d.TargetHealth.State {
	case types.TargetHealthStateEnumHealthy:
		t.status.Health = balancer.Up
	case types.TargetHealthStateEnumUnhealthy:
	case types.TargetHealthStateEnumDraining:
		t.status.State, t.status.Health = balancer.Draining, balancer.Checking
	case types.TargetHealthStateEnumUnhealthyDraining:
		t.status.State = balancer.Draining
	case types.TargetHealthStateEnumUnavailable:
		if d.TargetHealth.Reason == types.TargetHealthReasonEnumHealthCheckDisabled {
			t.status.Health = balancer.HealthUnknown
			break
		}
		t.status.Health = balancer.Checking
	case types.TargetHealthStateEnumUnused:
		// No load balancer uses the group, or not in this zone: it gets no traffic for another
		// reason than its health.
		t.status.Health = balancer.Checking
	default: // initial, or a value of a later API: it proves nothing
		t.status.Health = balancer.Checking
	}
	return t, nil
}

func targetOf(m balancer.Member) types.TargetDescription {
	return types.TargetDescription{Id: aws.String(m.Address), Port: aws.Int32(int32(m.Port))}
}

// nameOf returns the name of a group in its ARN.
func nameOf(arn string) string { return strings.Split(arn, "/")[1] }
