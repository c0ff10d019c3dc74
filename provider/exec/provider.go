package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/program"
	"github.com/leasehold/leasehold/provider/settings"
	"github.com/leasehold/leasehold/provider/userdata"
)

// describeWithin is how long a program may take to describe itself.
const describeWithin = 30 * time.Second

// Config is what an operator sets.
type Config = program.Config

// Provider makes machines by running a program.
type Provider struct {
	*program.Program
	description  description
	capabilities provider.Capabilities
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Asker    = (*Provider)(nil)
)

// withConsole is a provider whose program keeps what machines write to their consoles.
type withConsole struct{ *Provider }

// New checks the configuration and has the program describe itself.
func New(ctx context.Context, c Config) (provider.Provider, error) {
	run, err := program.New(c, API)
	if err != nil {
		return nil, err
	}
	p := &Provider{Program: run}
	if err := p.describe(ctx); err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	if p.description.Capabilities.Console {
		return withConsole{p}, nil
	}
	return p, nil
}

// call runs the program once and decodes its result.
func (p *Provider) call(ctx context.Context, method, shard, instance string, params, result any) error {
	c := program.Call{
		Method: method, Shard: shard, Instance: instance, Params: params, Bare: method == "describe",
		Aside: method == "list" || method == "describe", Long: method == "list",
	}
	if create, is := params.(createParams); is {
		c.Hidden = map[string]string{"join token": create.token}
	}
	return p.Call(ctx, c, result)
}

// describe asks the program once what it can do. It gets no secrets for that: they are opened only
// when a coordinator runs.
func (p *Provider) describe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	if err := p.call(ctx, "describe", "", "", nil, &p.description); err != nil {
		return err
	}
	d := &p.description
	if d.API != API {
		return fmt.Errorf("the program speaks version %d of the protocol, and this coordinator version %d", d.API, API)
	}
	if len(d.Zones) == 0 || slices.Contains(d.Zones, "") {
		return errors.New("zones: must name at least one zone")
	}
	c := provider.Capabilities{
		Zones: d.Zones, Boots: d.Capabilities.Boots, Crashes: d.Capabilities.Crashes,
		Remembers: d.Capabilities.Remembers, Copies: d.Capabilities.Copies, MaxBootstrap: d.MaxBootstrap,
		Settings: d.Settings, Asks: d.Capabilities.Validate,
	}
	var err error
	if c.Consistency, c.CallTimeout, err = program.Times(d.Consistency, d.CallTimeout); err != nil {
		return err
	}
	if c.MaxBootstrap < 0 {
		return fmt.Errorf("max_bootstrap: %d: must be 0 or more", c.MaxBootstrap)
	}
	if _, err := settings.Compile(c.Settings); err != nil {
		return err
	}
	p.capabilities = c
	return nil
}

// Capabilities are what the program said of itself.
func (p *Provider) Capabilities() provider.Capabilities {
	c := p.capabilities
	c.Zones = slices.Clone(c.Zones)
	return c
}

// Validate checks zones and settings.
func (p *Provider) Validate(t provider.Template) error {
	var errs []error
	for _, z := range t.Zones {
		if !slices.Contains(p.capabilities.Zones, z) {
			errs = append(errs, p.zoneError(z))
		}
	}
	return errors.Join(append(errs, settings.Check(p.capabilities.Settings, t.Settings))...)
}

// Ask has the program validate a template, if it wants to be asked.
func (p *Provider) Ask(ctx context.Context, t provider.Template) error {
	if !p.capabilities.Asks {
		return nil
	}
	return p.call(ctx, "validate", "", "", templateOf(t), &struct{}{})
}

func (p *Provider) zoneError(z string) error {
	return &provider.Error{
		Kind: provider.Invalid, Scope: "zone " + z,
		Message: "the provider has " + strings.Join(p.capabilities.Zones, ", "),
	}
}

func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	if !slices.Contains(p.capabilities.Zones, req.Zone) {
		return provider.Machine{}, p.zoneError(req.Zone)
	}
	document, err := req.Bootstrap.Encode()
	if err != nil {
		return provider.Machine{}, err
	}
	if most := p.capabilities.MaxBootstrap; most > 0 && len(document) > most {
		return provider.Machine{}, &provider.Error{
			Kind: provider.Invalid, Scope: "bootstrap document",
			Message: fmt.Sprintf("%d bytes are more than the %d that the provider can hand over: shorten vars or run",
				len(document), most),
		}
	}
	script, err := userdata.Script(req.Bootstrap, req.Agent)
	if err != nil {
		return provider.Machine{}, err
	}
	b, tags := req.Bootstrap, req.Template.Tags
	if tags == nil {
		tags = map[string]string{}
	}
	var m machine
	err = p.call(ctx, "create", b.Shard, b.Instance, createParams{
		templateParams: templateOf(req.Template), Zone: req.Zone, Group: b.Group, Slot: b.Slot,
		Tags: tags, Bootstrap: string(document), UserData: script,
		Call: req.Call, token: b.JoinToken,
	}, &m)
	if err != nil {
		return provider.Machine{}, err
	}
	made, err := m.read(b.Shard)
	if err == nil && made.Instance != b.Instance {
		err = fmt.Errorf("the program was asked for machine %s and answers with %s", b.Instance, program.Clip(made.Instance))
	}
	return made, err
}

func (p *Provider) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	err := p.call(ctx, "stop", shard, instance, stopParams{Timeout: timeout.Seconds()}, &struct{}{})
	return gone(err)
}

func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	return gone(p.call(ctx, "delete", shard, instance, nil, &struct{}{}))
}

// RemoveCopy is asked only of a program with the capability copies.
func (p *Provider) RemoveCopy(ctx context.Context, shard, instance, ref, call string) error {
	return gone(p.call(ctx, "remove_copy", shard, instance, copyParams{Ref: ref, Call: call}, &struct{}{}))
}

// gone takes a machine that is not there for one that need not be stopped or deleted any more.
func gone(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

func (p *Provider) Restart(ctx context.Context, shard, instance, boot string) error {
	return p.call(ctx, "restart", shard, instance, restartParams{Boot: boot}, &struct{}{})
}

// maxPages bounds a List that never ends.
const maxPages = 1000

func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	machines := []provider.Machine{}
	seen := map[string]string{} // the ref of each instance; with copies, of each machine
	page := ""
	for range maxPages {
		var r listResult
		if err := p.call(ctx, "list", shard, "", listParams{Page: page}, &r); err != nil {
			return nil, err
		}
		for i := range r.Machines {
			m, err := r.Machines[i].read(shard)
			if err != nil {
				return nil, err
			}
			name := m.Instance
			if p.capabilities.Copies {
				name += " " + m.Ref // several for one instance are for the leader to sort out (PROV-4)
			}
			if other, twice := seen[name]; twice {
				return nil, fmt.Errorf("machine %s is listed twice, as %s and %s", m.Instance, other, m.Ref)
			}
			seen[name] = m.Ref
			machines = append(machines, m)
		}
		switch {
		case r.Complete && r.Next == "":
			return machines, nil
		case r.Complete || r.Next == "":
			return nil, errors.New("the last page of the list must say \"complete\": true, " +
				"and no other may: a part proves nothing")
		}
		page = r.Next
	}
	return nil, fmt.Errorf("the list has more than %d pages", maxPages)
}

// Console asks the program for the end of what a machine wrote.
func (p withConsole) Console(ctx context.Context, shard, instance string) ([]byte, error) {
	var r consoleResult
	if err := p.call(ctx, "console", shard, instance, nil, &r); err != nil {
		return nil, err
	}
	return r.Tail[max(0, len(r.Tail)-provider.ConsoleTail):], nil
}
