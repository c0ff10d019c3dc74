package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
)

// batch is one look at several machines of a shard: however many calls wait for their machines,
// each round of looks takes one request for maxBatch of them.
type batch struct {
	instances map[string]bool
	callers   int
	cancel    context.CancelFunc
	done      chan struct{}
	found     []instance // when done
	err       error
}

// maxBatch is EC2's limit of values of one filter.
const maxBatch = 200

// look returns the machines that have the tags of the shard and the instance, in any state. It
// shares its request with other looks that have to wait for the gate.
func (p *Provider) look(ctx context.Context, k key) ([]instance, error) {
	p.mu.Lock()
	b := p.batches[k.shard]
	if b == nil || len(b.instances) >= maxBatch {
		inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
		b = &batch{instances: map[string]bool{}, cancel: cancel, done: make(chan struct{})}
		p.batches[k.shard] = b
		go p.lookAtAll(inner, k.shard, b)
	}
	b.instances[k.instance] = true
	b.callers++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if b.callers--; b.callers == 0 {
			b.cancel()
			if p.batches[k.shard] == b {
				delete(p.batches, k.shard) // no caller may join what was given up
			}
		}
	}()
	select {
	case <-b.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b.err != nil {
		return nil, b.err
	}
	var found []instance
	for _, i := range b.found {
		if i.tag(tagInstance) == k.instance {
			found = append(found, i)
		}
	}
	return found, nil
}

func (p *Provider) lookAtAll(ctx context.Context, shard string, b *batch) {
	defer close(b.done)
	// Others may join until the first request is sent: what they did before they joined is older.
	var names []string
	b.err = p.pages(ctx, func() []types.Filter {
		if names == nil {
			p.mu.Lock()
			if p.batches[shard] == b {
				delete(p.batches, shard)
			}
			for name := range b.instances {
				names = append(names, name)
			}
			p.mu.Unlock()
			slices.Sort(names)
		}
		return []types.Filter{filter("tag:"+tagShard, shard), filter("tag:"+tagInstance, names...)}
	}, func(i instance) { b.found = append(b.found, i) })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.batches[shard] == b {
		delete(p.batches, shard) // it failed before its first request
	}
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// pageSize is the largest that EC2 allows.
const pageSize = 1000

// pages describes all machines that the filters choose, page by page, or fails. The filters are
// asked for when a request may be sent.
func (p *Provider) pages(ctx context.Context, filters func() []types.Filter, each func(instance)) error {
	var next *string
	for {
		var out *ec2.DescribeInstancesOutput
		err := p.read(ctx, "region "+p.region, func(ctx context.Context) (err error) {
			out, err = p.api.DescribeInstances(ctx, &ec2.DescribeInstancesInput{
				Filters: filters(), MaxResults: aws.Int32(pageSize), NextToken: next,
			})
			if err == nil && out.Reservations == nil {
				// The SDK takes an empty body, and a page of HTML, for an answer in which nothing is set.
				err = errors.New("the answer has no list of machines, not even an empty one: EC2 did not answer")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("describe instances: %w", err)
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				each(instance{i})
			}
		}
		if aws.ToString(out.NextToken) == "" {
			return nil
		}
		if next != nil && *next == *out.NextToken {
			return fmt.Errorf("describe instances: EC2 returned page token %q twice: the list has no end", *next)
		}
		next = out.NextToken
	}
}

// newborn is a machine that was made just now.
type newborn struct {
	machine provider.Machine
	made    time.Time
}

// born notes a machine that was made, for as long as EC2 may not show it.
func (p *Provider) born(k key, m provider.Machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for other, n := range p.young {
		if now.Sub(n.made) > p.consistency {
			delete(p.young, other)
		}
	}
	p.young[k] = newborn{m, now}
	delete(p.spent, k)
}

// unseen is the machine that was made so lately that EC2 may not show it yet.
func (p *Provider) unseen(k key) (provider.Machine, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, is := p.young[k]
	return n.machine, is && time.Since(n.made) <= p.consistency
}

// sight is what EC2 shows of an instance.
type sight struct {
	live    []instance // made by this provider: the oldest first
	dead    []instance // the same, terminated
	strange []instance // with the tags, but not made by this provider: left alone
}

// see looks at an instance's machines. One that was made just now is waited for, unless the caller
// does not want to.
func (p *Provider) see(ctx context.Context, k key, patient bool) (s sight, err error) {
	for {
		all, err := p.look(ctx, k)
		if err != nil {
			return s, err
		}
		s = sortOut(k, all)
		if _, hidden := p.unseen(k); !patient || !hidden || len(s.live)+len(s.dead) > 0 {
			return s, nil
		}
		if err := amazon.Wait(ctx, p.poll); err != nil {
			return s, err
		}
	}
}

func sortOut(k key, all []instance) (s sight) {
	for _, i := range all {
		switch {
		case !i.isOf(k):
			s.strange = append(s.strange, i)
		case i.terminated():
			s.dead = append(s.dead, i)
		default:
			s.live = append(s.live, i)
		}
	}
	slices.SortFunc(s.live, func(a, b instance) int {
		return aws.ToTime(a.LaunchTime).Compare(aws.ToTime(b.LaunchTime))
	})
	return s
}

// forgetAfter is how long terminated machines are remembered: longer than EC2 lists them.
const forgetAfter = 3 * time.Hour

// deleted notes that an instance is gone, and its terminated machines with it.
func (p *Provider) deleted(k key, dead []instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.young, k)
	delete(p.spent, k)
	now := time.Now()
	for id, at := range p.gone {
		if now.Sub(at) > forgetAfter {
			delete(p.gone, id)
		}
	}
	for _, i := range dead {
		p.gone[i.id()] = now
	}
}

func (p *Provider) isGone(i instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.gone[i.id()]
	return is
}
