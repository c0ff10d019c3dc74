package ec2

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/leasehold/leasehold/provider"
)

// freeSubnets are the subnets of a zone by their free addresses when EC2 was asked.
type freeSubnets struct {
	ids   []string
	asked time.Time
}

// freshFor is how long EC2's word on free addresses is taken: a subnet that has filled up meanwhile
// refuses, and the next one is tried.
const freshFor = 15 * time.Second

// subnetsOf are the subnets of a zone, the one with the most free addresses first (PROV-6).
func (p *Provider) subnetsOf(ctx context.Context, zone string) ([]string, error) {
	ids := p.zones[zone].Subnets
	if len(ids) == 1 {
		return ids, nil
	}
	p.mu.Lock()
	known, asked := p.free[zone], time.Now()
	fresh := known.ids != nil && asked.Sub(known.asked) < freshFor
	if known.ids != nil && !fresh {
		p.free[zone] = freeSubnets{known.ids, asked} // one call asks again, the others take what is known
	}
	p.mu.Unlock()
	if fresh {
		return known.ids, nil
	}
	var out *ec2.DescribeSubnetsOutput
	err := p.read(ctx, "zone "+zone, func(ctx context.Context) (err error) {
		out, err = p.api.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: ids})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("describe the subnets of zone %s: %w", zone, err)
	}
	free, where := map[string]int32{}, ""
	for _, s := range out.Subnets {
		free[aws.ToString(s.SubnetId)] = aws.ToInt32(s.AvailableIpAddressCount)
		// EC2 tells client tokens apart by availability zone: one zone of ours in two of them could get
		// two machines for one instance.
		if at := aws.ToString(s.AvailabilityZone); where == "" {
			where = at
		} else if at != where {
			return nil, &provider.Error{
				Kind: provider.Invalid, Scope: "zone " + zone,
				Message: fmt.Sprintf("its subnets are in %s and in %s: correct the provider's zones, "+
					"each is one availability zone", where, at),
			}
		}
	}
	ids = slices.Clone(ids)
	slices.SortStableFunc(ids, func(a, b string) int { return int(free[b]) - int(free[a]) })
	p.mu.Lock()
	p.free[zone] = freeSubnets{ids, asked}
	p.mu.Unlock()
	return ids, nil
}

// rootDevice is the name of the root device of an image, which never changes.
func (p *Provider) rootDevice(ctx context.Context, image string) (string, error) {
	p.mu.Lock()
	name := p.roots[image]
	p.mu.Unlock()
	if name != "" {
		return name, nil
	}
	var out *ec2.DescribeImagesOutput
	err := p.read(ctx, "image "+image, func(ctx context.Context) (err error) {
		out, err = p.api.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{image}})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("describe image %s: %w", image, err)
	}
	if len(out.Images) != 1 || aws.ToString(out.Images[0].RootDeviceName) == "" {
		return "", &provider.Error{
			Kind: provider.Invalid, Scope: "image " + image,
			Message: "EC2 shows no such image with a root device: correct settings.image, or share the image with this account",
		}
	}
	name = aws.ToString(out.Images[0].RootDeviceName)
	p.mu.Lock()
	p.roots[image] = name
	p.mu.Unlock()
	return name, nil
}
