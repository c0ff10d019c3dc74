package haproxy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
)

// Balancer is one backend of one or more HAProxy processes.
type Balancer struct {
	name    string
	backend string
	slots   string // prefix; "": servers are added
	options string // of servers that are added
	checks  bool   // servers that are added are checked
	timeout time.Duration
	targets []*target
}

var _ balancer.Balancer = (*Balancer)(nil)

// Capabilities returns HAProxy's.
func (b *Balancer) Capabilities() balancer.Capabilities {
	return balancer.Capabilities{
		CallTimeout: commandsOfACall * b.timeout, Named: b.slots == "", Health: b.checks || b.slots != "",
		Connections: true, DrainEnds: true, Weights: true,
	}
}

// Validate looks at weights alone: there are no settings.
func (b *Balancer) Validate(u balancer.Use) error { return balancer.CheckUse(b.Capabilities(), u) }

// Add makes the member ready in every process.
func (b *Balancer) Add(ctx context.Context, shard string, m balancer.Member) error {
	do := b.addServer
	if b.slots != "" {
		do = b.addSlot
	}
	return b.change(ctx, shard, m, do)
}

// Drain has every process begin no new connections to the member.
func (b *Balancer) Drain(ctx context.Context, shard string, m balancer.Member) error {
	return b.change(ctx, shard, m, b.drain)
}

// Remove takes the member out of every process, and cuts what is still in use.
func (b *Balancer) Remove(ctx context.Context, shard string, m balancer.Member) error {
	do := b.removeServer
	if b.slots != "" {
		do = b.removeSlot
	}
	return b.change(ctx, shard, m, do)
}

// List reads every process.
func (b *Balancer) List(ctx context.Context, shard string, recorded []balancer.Member) (balancer.Listing, error) {
	if err := balancer.CheckShard(shard); err != nil {
		return balancer.Listing{}, err
	}
	return balancer.Listed(ctx, b.each(ctx, func(ctx context.Context, t *target) (out balancer.Target) {
		servers, err := b.servers(ctx, t)
		if err != nil {
			return balancer.Target{Err: err}
		}
		if b.slots != "" {
			return b.listSlots(servers, recorded)
		}
		return b.listServers(servers, shard)
	}))
}

// change does something to a member in every process at once. Our calls lock each process, so
// that two of them do not choose one slot.
func (b *Balancer) change(ctx context.Context, shard string, m balancer.Member,
	do func(context.Context, *target, string, balancer.Member) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := balancer.Check(shard, m); err != nil {
		return err
	}
	if err := b.Validate(m.Use); err != nil {
		return err
	}
	err := balancer.Failure(b.each(ctx, func(ctx context.Context, t *target) (out balancer.Target) {
		var release func()
		if release, out.Err = t.take(ctx); out.Err == nil {
			defer release()
			out.Err = do(ctx, t, shard, m)
		}
		return out
	}))
	if ended := ctx.Err(); err != nil && ended != nil {
		return errors.Join(ended, err)
	}
	return err
}

// each asks all processes at once.
func (b *Balancer) each(ctx context.Context, do func(context.Context, *target) balancer.Target) []balancer.Target {
	ctx, cancel := context.WithTimeout(ctx, commandsOfACall*b.timeout)
	defer cancel()
	names := make([]string, len(b.targets))
	for i, t := range b.targets {
		names[i] = t.name
	}
	return balancer.Each(names, func(i int) balancer.Target { return do(ctx, b.targets[i]) })
}

// find returns the servers of a member at the address that was named, those in maintenance left out
// of slots: they are free. There is one at most, unless two coordinators have taken a slot each.
func (b *Balancer) find(servers []server, shard string, m balancer.Member) (found []server) {
	name := b.serverName(shard, m.Instance)
	for _, s := range servers {
		if s.at(m) && (b.slots == "" && s.name == name || b.slots != "" && b.isSlot(s) && !s.maintenance) {
			found = append(found, s)
		}
	}
	return found
}

// drain has the member's servers begin nothing new. One in maintenance has no new connections
// either.
func (b *Balancer) drain(ctx context.Context, t *target, shard string, m balancer.Member) error {
	servers, err := b.servers(ctx, t)
	if err != nil {
		return err
	}
	var commands []string
	for _, s := range b.find(servers, shard, m) {
		if s.state() == balancer.Ready {
			commands = append(commands, b.set(s.name, "state drain"))
		}
	}
	if len(commands) == 0 {
		return nil
	}
	said, err := t.ask(ctx, strings.Join(commands, ";"))
	if err != nil {
		return err
	}
	return b.verify(ctx, t, said, func(servers []server) bool {
		return !slices.ContainsFunc(b.find(servers, shard, m), func(s server) bool { return s.state() == balancer.Ready })
	})
}

// set returns a command that changes a server.
func (b *Balancer) set(name, what string) string {
	return "set server " + b.backend + "/" + name + " " + what
}

// verify reads the servers again, and fails with what HAProxy said if they are not as they should
// be.
func (b *Balancer) verify(ctx context.Context, t *target, said string, done func([]server) bool) error {
	servers, err := b.servers(ctx, t)
	if err != nil {
		return err
	}
	if !done(servers) {
		return b.refusal(said)
	}
	return nil
}

// refusal returns the error of commands that had no effect.
func (b *Balancer) refusal(said string) error {
	scope := "backend " + b.backend
	switch {
	case strings.TrimSpace(said) == "":
		return balancer.Errorf(provider.Temporary, scope, "the change had no effect: another client "+
			"changed the server at the same time")
	// An option that does not exist, or a backend whose algorithm takes no servers at run time.
	case strings.Contains(said, "unknown keyword"), strings.Contains(said, "must use a dynamic load balancing"),
		strings.Contains(said, "is not permitted"), strings.Contains(said, "backend cannot use"):
		return balancer.Errorf(provider.Invalid, scope, "HAProxy says: %s", quoted(said))
	}
	return balancer.Errorf(provider.Temporary, scope, "HAProxy says: %s", quoted(said))
}
