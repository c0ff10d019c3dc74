package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
)

// Create looks for the machine, and runs it if EC2 shows none. It returns when EC2 has accepted it.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (m provider.Machine, err error) {
	k := key{req.Bootstrap.Shard, req.Bootstrap.Instance}
	err = p.locks.With(ctx, k, func() error {
		if _, is := p.zones[req.Zone]; !is {
			return &provider.Error{
				Kind: provider.Invalid, Scope: "zone " + req.Zone, Message: "the provider has " + strings.Join(p.zoneNames(), ", "),
			}
		}
		s, err := p.see(ctx, k, false)
		if err != nil {
			return err
		}
		var is bool
		if m, is, err = p.existing(k, s); is || err != nil {
			return err
		}
		m, err = p.launch(ctx, k, req)
		return err
	})
	if err != nil {
		return provider.Machine{}, fmt.Errorf("create machine %s: %w", k.instance, err)
	}
	return m, nil
}

// existing is the machine that an instance has already, whatever its state.
func (p *Provider) existing(k key, s sight) (m provider.Machine, is bool, err error) {
	if len(s.live) > 0 {
		return s.live[0].machine(), true, nil
	}
	for _, i := range s.dead {
		if i.endedByItself() && !p.isGone(i) {
			return i.machine(), true, nil
		}
	}
	if len(s.dead) > 0 {
		return m, false, provider.ErrDeleted
	}
	if m, hidden := p.unseen(k); hidden {
		return m, true, nil
	}
	for _, i := range s.strange {
		if !i.ending() {
			return m, false, fmt.Errorf("%s has this instance's tags, and Leasehold did not make it: "+
				"remove its tags leasehold:*", i.id())
		}
	}
	return m, false, nil
}

// launch tries the types in order of preference, each in the subnets in order of free addresses.
func (p *Provider) launch(ctx context.Context, k key, req provider.CreateRequest) (provider.Machine, error) {
	in, err := p.input(ctx, k, req)
	if err != nil {
		return provider.Machine{}, err
	}
	subnets, err := p.subnetsOf(ctx, req.Zone)
	if err != nil {
		return provider.Machine{}, err
	}
	machineTypes := req.Template.InstanceTypes
	if len(machineTypes) == 0 {
		machineTypes = []string{""} // the launch template's
	}
	var full []error
	unsupported := true // by every type
next:
	for _, typ := range machineTypes {
		for _, subnet := range subnets {
			m, err := p.run(ctx, k, attempt(in, typ, subnet))
			switch code := amazon.CodeOf(err); {
			case err == nil:
				return m, nil
			case code == codeNoAddress:
				full, unsupported = append(full, fmt.Errorf("%s: %w", subnet, err)), false
			case code == codeUnsupported:
				full = append(full, err)
				continue next
			case provider.KindOf(err) == provider.Capacity:
				full, unsupported = append(full, err), false
				continue next // all subnets of the zone are in one availability zone
			default:
				return m, err
			}
		}
	}
	out := &provider.Error{Kind: provider.Capacity, Scope: "zone " + req.Zone, Message: errors.Join(full...).Error()}
	if unsupported {
		out.Kind = provider.Invalid
	}
	out.Message = strings.ReplaceAll(out.Message, "\n", "; ")
	return provider.Machine{}, out
}

// run runs one machine with the first client token that is not spent. If EC2 knows that token from
// a request that was not the same (the join token differs each time), that request's machine is the
// one. A token is spent only if EC2 has shown no machine of it for the time of its consistency:
// then it belongs to a request that was refused.
func (p *Provider) run(ctx context.Context, k key, in *ec2.RunInstancesInput) (none provider.Machine, err error) {
	for {
		p.mu.Lock()
		n := p.spent[k]
		p.mu.Unlock()
		in.ClientToken = aws.String(tokenOf(k, n))
		var out *ec2.RunInstancesOutput
		err := p.call(ctx, string(in.InstanceType), func(ctx context.Context) (err error) {
			out, err = p.api.RunInstances(ctx, in)
			return err
		})
		switch {
		case err == nil && len(out.Instances) == 1:
			return p.accepted(k, in, instance{out.Instances[0]})
		case err == nil:
			return none, fmt.Errorf("run instance: EC2 answered with %d machines instead of one", len(out.Instances))
		case amazon.CodeOf(err) != codeMismatch:
			return none, fmt.Errorf("run instance: %w", err)
		}
		found, err := p.awaitToken(ctx, *in.ClientToken)
		if err != nil {
			return none, fmt.Errorf("run instance: an earlier call may have made it: %w", err)
		}
		if found != nil {
			return p.accepted(k, in, *found)
		}
		p.mu.Lock()
		p.spent[k] = n + 1
		p.mu.Unlock()
	}
}

// accepted is a machine of this instance's client token.
func (p *Provider) accepted(k key, in *ec2.RunInstancesInput, i instance) (provider.Machine, error) {
	if i.terminated() && (!i.endedByItself() || p.isGone(i)) {
		return provider.Machine{}, provider.ErrDeleted
	}
	if i.tag(tagInstance) == "" { // EC2 shows tags later than machines
		i.Tags = in.TagSpecifications[0].Tags
	}
	m := i.machine()
	p.born(k, m)
	return m, nil
}

// awaitToken returns the machine that was made with a client token, or nil if EC2 shows none in the
// time of its consistency.
func (p *Provider) awaitToken(ctx context.Context, token string) (found *instance, err error) {
	for begun := time.Now(); ; {
		err := p.pages(ctx, func() []types.Filter { return []types.Filter{filter("client-token", token)} },
			func(i instance) { found = &i })
		if err != nil || found != nil {
			return found, err
		}
		if time.Since(begun) > p.consistency {
			return nil, nil
		}
		if err := amazon.Wait(ctx, p.poll); err != nil {
			return nil, err
		}
	}
}

// input is the request for a machine, without type, subnet and client token.
func (p *Provider) input(ctx context.Context, k key, req provider.CreateRequest) (*ec2.RunInstancesInput, error) {
	s, err := p.readSettings(req.Template.Settings)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", provider.ErrInvalid, err)
	}
	data, err := userData(req, s.UserData)
	if err != nil {
		return nil, err
	}
	in := &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), UserData: aws.String(data),
		MetadataOptions: &types.InstanceMetadataOptionsRequest{
			HttpTokens: types.HttpTokensStateRequired, HttpEndpoint: types.InstanceMetadataEndpointStateEnabled,
			HttpPutResponseHopLimit: aws.Int32(s.MetadataHops),
		},
		// A machine that powers itself off stays as evidence until it is deleted.
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorStop,
		SecurityGroupIds:                  slices.Clone(p.groups),
	}
	if s.SecurityGroups != nil {
		in.SecurityGroupIds = s.SecurityGroups
	}
	if s.Image == "" && s.LaunchTemplate == nil {
		s.Image = p.image
	}
	if s.Image != "" {
		in.ImageId = aws.String(s.Image)
	}
	if l := s.LaunchTemplate; l != nil {
		in.LaunchTemplate = &types.LaunchTemplateSpecification{
			LaunchTemplateId: optional(l.ID), LaunchTemplateName: optional(l.Name), Version: optional(l.Version),
		}
	}
	in.KeyName = optional(s.KeyName)
	if name := s.InstanceProfile; name != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String(name)}
		if strings.HasPrefix(name, "arn:") {
			in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Arn: aws.String(name)}
		}
	}
	if s.PublicAddress != nil { // EC2 takes it for an interface alone
		in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0), AssociatePublicIpAddress: s.PublicAddress, DeleteOnTermination: aws.Bool(true),
			Groups: in.SecurityGroupIds,
		}}
		in.SecurityGroupIds = nil
	}
	if req.Template.Spot {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{
			MarketType: types.MarketTypeSpot,
			SpotOptions: &types.SpotMarketOptions{
				SpotInstanceType:             types.SpotInstanceTypeOneTime,
				InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
			},
		}
		in.InstanceInitiatedShutdownBehavior = types.ShutdownBehaviorTerminate // EC2 cannot stop such a machine
	}
	if d := s.RootDisk; d != nil {
		device, err := p.rootDevice(ctx, s.Image)
		if err != nil {
			return nil, err
		}
		disk := &types.EbsBlockDevice{
			VolumeSize: aws.Int32(d.GiB), VolumeType: types.VolumeTypeGp3, Encrypted: d.Encrypted,
			DeleteOnTermination: aws.Bool(true),
		}
		if d.Type != "" {
			disk.VolumeType = types.VolumeType(d.Type)
		}
		in.BlockDeviceMappings = []types.BlockDeviceMapping{{DeviceName: aws.String(device), Ebs: disk}}
	}
	in.TagSpecifications = tagSpecifications(k, req)
	return in, nil
}

// attempt is the request with a type, "" for the launch template's, in a subnet.
func attempt(in *ec2.RunInstancesInput, typ, subnet string) *ec2.RunInstancesInput {
	out := *in
	out.InstanceType = types.InstanceType(typ)
	if len(in.NetworkInterfaces) == 0 {
		out.SubnetId = aws.String(subnet)
		return &out
	}
	out.NetworkInterfaces = slices.Clone(in.NetworkInterfaces)
	out.NetworkInterfaces[0].SubnetId = aws.String(subnet)
	return &out
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return aws.String(text)
}

// tagSpecifications tag the machine and all that is made with it, in the call that makes it
// (PROV-8).
func tagSpecifications(k key, req provider.CreateRequest) []types.TagSpecification {
	values := map[string]string{tagName: cmp.Or(req.Bootstrap.Name, k.instance)}
	for name, value := range req.Template.Tags {
		values[name] = value
	}
	for name, value := range map[string]string{
		tagShard: k.shard, tagInstance: k.instance, tagGroup: req.Bootstrap.Group, tagZone: req.Zone,
	} {
		values[name] = value
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // the same request has the same text
	var tags []types.Tag
	for _, name := range names {
		tags = append(tags, types.Tag{Key: aws.String(name), Value: aws.String(values[name])})
	}
	of := []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface}
	if req.Template.Spot {
		of = append(of, types.ResourceTypeSpotInstancesRequest)
	}
	var out []types.TagSpecification
	for _, r := range of {
		out = append(out, types.TagSpecification{ResourceType: r, Tags: tags})
	}
	return out
}
