package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/program"
	"github.com/leasehold/leasehold/provider/settings"
)

// describeWithin is how long a program may take to describe itself.
const describeWithin = 30 * time.Second

// Balancer is a load balancer that a user's program operates.
type Balancer struct {
	name         string
	program      *program.Program
	capabilities balancer.Capabilities
}

var (
	_ balancer.Balancer   = (*Balancer)(nil)
	_ balancer.SecretUser = (*Balancer)(nil)
)

// New checks the configuration and asks the program to describe itself. The name is the balancer's.
func New(ctx context.Context, name string, c program.Config) (*Balancer, error) {
	if !balancer.IsName(name) {
		return nil, fmt.Errorf("name: %q: must be at most 40 of a-z, 0-9 and -, beginning with a letter", name)
	}
	p, err := program.New(c, API)
	if err != nil {
		return nil, err
	}
	b := &Balancer{name: name, program: p}
	if err := b.describe(ctx); err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	return b, nil
}

// UseSecrets sets the lookup of the shard's secrets.
func (b *Balancer) UseSecrets(lookup func(name string) (string, error)) { b.program.UseSecrets(lookup) }

// describe asks the program once for its abilities. That call gets no secrets: secrets are
// decrypted only while a coordinator runs.
func (b *Balancer) describe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	var d description
	if err := b.program.Call(ctx, program.Call{Method: "describe", Balancer: b.name, Bare: true, Aside: true},
		&d); err != nil {
		return err
	}
	if d.API != API {
		return fmt.Errorf("the program speaks version %d of the protocol, and this coordinator version %d", d.API, API)
	}
	c := balancer.Capabilities{
		Named: d.Capabilities.Named, Health: d.Capabilities.Health, Connections: d.Capabilities.Connections,
		DrainEnds: d.Capabilities.DrainEnds || d.Capabilities.Leaves, Leaves: d.Capabilities.Leaves,
		Weights: d.Capabilities.Weights, Settings: d.Settings,
	}
	var err error
	if c.Consistency, c.CallTimeout, err = program.Times(d.Consistency, d.CallTimeout); err != nil {
		return err
	}
	if _, err := settings.Compile(c.Settings); err != nil {
		return err
	}
	b.capabilities = c
	return nil
}

// Capabilities returns what the program described.
func (b *Balancer) Capabilities() balancer.Capabilities { return b.capabilities }

// Validate checks weights, and settings against the program's schema.
func (b *Balancer) Validate(u balancer.Use) error {
	errs := []error{balancer.CheckUse(b.capabilities, u)}
	if b.capabilities.Settings != nil {
		problems, err := settings.Problems(b.capabilities.Settings, u.Settings)
		errs = append(errs, err)
		for _, p := range problems {
			errs = append(errs, balancer.Errorf(provider.Invalid, p.Path, "%s", p.What))
		}
	}
	return errors.Join(errs...)
}

// Add has the program add the member.
func (b *Balancer) Add(ctx context.Context, shard string, m balancer.Member) error {
	if err := b.Validate(m.Use); err != nil {
		return err
	}
	return b.change(ctx, "add", shard, m, memberParams{
		Address: m.Address, Port: m.Port, Weight: m.Weight, Settings: m.Settings,
	})
}

// Drain has the program drain the member.
func (b *Balancer) Drain(ctx context.Context, shard string, m balancer.Member) error {
	return gone(b.change(ctx, "drain", shard, m, memberParams{Address: m.Address, Port: m.Port}))
}

// Remove has the program remove the member.
func (b *Balancer) Remove(ctx context.Context, shard string, m balancer.Member) error {
	return gone(b.change(ctx, "remove", shard, m, memberParams{Address: m.Address, Port: m.Port}))
}

// gone treats a missing member as drained and removed.
func gone(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

func (b *Balancer) change(ctx context.Context, method, shard string, m balancer.Member, params memberParams) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := balancer.Check(shard, m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.capabilities.CallTimeout)
	defer cancel()
	return balancer.Reword(b.program.Call(ctx, program.Call{
		Method: method, Shard: shard, Balancer: b.name, Instance: m.Instance, Params: params,
	}, &struct{}{}))
}

// List has the program list all of its targets.
func (b *Balancer) List(ctx context.Context, shard string, recorded []balancer.Member) (balancer.Listing, error) {
	if err := balancer.CheckShard(shard); err != nil {
		return balancer.Listing{}, err
	}
	params := listParams{Recorded: []record{}}
	for _, m := range recorded {
		params.Recorded = append(params.Recorded, record{m.Instance, m.Address, m.Port})
	}
	ctx, cancel := context.WithTimeout(ctx, b.capabilities.CallTimeout)
	defer cancel()
	var r listResult
	err := b.program.Call(ctx, program.Call{
		Method: "list", Shard: shard, Balancer: b.name, Params: params, Aside: true, Long: true,
	}, &r)
	if err != nil {
		return balancer.Listing{}, balancer.Reword(err)
	}
	l, err := r.read(shard, b.capabilities.Named, recorded)
	if err != nil {
		return balancer.Listing{}, err
	}
	return balancer.Listed(ctx, l.Targets)
}
