package ec2

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
)

// List lists what has the shard's tag, also what this provider did not make. A terminated machine
// is listed while it is evidence: it ended by itself, it has no successor, and no Delete has seen
// it.
func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var strange, live, dead []instance
	err := p.pages(ctx, func() []types.Filter { return []types.Filter{filter("tag:"+tagShard, shard)} },
		func(i instance) {
			switch {
			case i.tag(tagShard) != shard || i.tag(tagInstance) == "":
			case !i.terminated() && i.isOf(key{shard, i.tag(tagInstance)}):
				live = append(live, i)
			case !i.terminated():
				strange = append(strange, i)
			case i.endedByItself() && !p.isGone(i):
				dead = append(dead, i)
			}
		})
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	there := map[string]bool{}
	for _, i := range live {
		there[i.tag(tagInstance)] = true
	}
	dead = slices.DeleteFunc(dead, func(i instance) bool { return there[i.tag(tagInstance)] })
	machines, seen := make([]provider.Machine, 0, len(live)), map[string]bool{}
	for _, i := range slices.Concat(strange, dead, live) {
		if !seen[i.id()] { // what comes or goes while pages are read may be on two of them
			machines = append(machines, i.machine())
		}
		seen[i.id()] = true
	}
	return machines, nil
}

// Console returns what EC2 has of the machine's console. Only newer types of machine show it as it
// is written; of others EC2 keeps a copy of some minutes ago.
func (p *Provider) Console(ctx context.Context, shard, instance string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tail, err := p.console(ctx, key{shard, instance})
	if err != nil {
		return nil, fmt.Errorf("read console of machine %s: %w", instance, err)
	}
	return tail, nil
}

func (p *Provider) console(ctx context.Context, k key) ([]byte, error) {
	s, err := p.see(ctx, k, true)
	if err != nil {
		return nil, err
	}
	var of instance
	switch {
	case len(s.live) > 0:
		of = s.live[0]
	case len(s.dead) > 0 && !p.isGone(s.dead[0]): // EC2 keeps it for about an hour
		of = s.dead[0]
	default:
		return nil, provider.ErrNotFound
	}
	latest := aws.Bool(true)
	for {
		var out *ec2.GetConsoleOutputOutput
		err := p.read(ctx, of.id(), func(ctx context.Context) (err error) {
			out, err = p.api.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: of.InstanceId, Latest: latest})
			return err
		})
		if latest != nil && amazon.CodeOf(err) == codeNoOperation {
			latest = nil // an older type
			continue
		}
		if err != nil {
			return nil, err
		}
		text, err := decodeConsole(aws.ToString(out.Output))
		return text[max(0, len(text)-provider.ConsoleTail):], err
	}
}
