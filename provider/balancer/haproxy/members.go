package haproxy

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
)

// namePrefix marks Leasehold's servers. HAProxy allows letters, digits and _ . : - in names; none
// of the parts has a colon.
const namePrefix = "lh:"

// serverName returns the name of an instance's server.
func (b *Balancer) serverName(shard, instance string) string {
	return namePrefix + shard + ":" + b.name + ":" + instance
}

func (b *Balancer) listServers(servers []server, shard string) (out balancer.Target) {
	for _, s := range servers {
		instance, ok := strings.CutPrefix(s.name, b.serverName(shard, ""))
		if !ok || instance == "" || strings.Contains(instance, ":") {
			out.Foreign++
			continue
		}
		st := s.status(instance)
		st.DefaultWeight = added(s).configured
		if b.checks && !s.checked && st.State == balancer.Ready {
			st.State = balancer.Disabled // a call was interrupted before it was enabled
		}
		out.Members = append(out.Members, st)
	}
	return out
}

// addServer adds the member's server, or corrects the existing one.
func (b *Balancer) addServer(ctx context.Context, t *target, shard string, m balancer.Member) error {
	servers, err := b.servers(ctx, t)
	if err != nil {
		return err
	}
	name := b.serverName(shard, m.Instance)
	said, err := t.ask(ctx, strings.Join(b.adding(named(servers, name), name, m), ";"))
	if err != nil {
		return err
	}
	return b.verify(ctx, t, said, func(servers []server) bool {
		s := named(servers, name)
		return s != nil && s.at(m) && s.state() == balancer.Ready && s.checked == b.checks && added(*s).weighs(m)
	})
}

// adding returns the commands for a server, whether it exists or not.
func (b *Balancer) adding(s *server, name string, m balancer.Member) (commands []string) {
	switch {
	case s == nil:
		line := fmt.Sprintf("add server %s/%s %s %s", b.backend, name, endpoint(m), b.options)
		if m.Weight > 0 {
			line += fmt.Sprintf(" weight %d", m.Weight)
		}
		commands = append(commands, line)
	case !s.at(m):
		// Through maintenance, so that the health of the old address does not count for the new
		// one.
		commands = append(commands, b.set(name, "state maint"), b.set(name, address(m)))
		fallthrough
	default:
		if !added(*s).weighs(m) {
			commands = append(commands, b.set(name, fmt.Sprintf("weight %d", cmp.Or(m.Weight, defaultWeight))))
		}
	}
	if b.checks && (s == nil || !s.checked) {
		commands = append(commands, "enable health "+b.backend+"/"+name)
	}
	return append(commands, b.set(name, "state ready"))
}

// defaultWeight is HAProxy's weight of a server whose line has none.
const defaultWeight = 1

// added returns an added server with the weight that it has without the group's. HAProxy takes the
// one on the line that adds a server for the configured one, and that is the group's.
func added(s server) server {
	s.configured = min(s.configured, defaultWeight)
	return s
}

// removeServer deletes the member's server. HAProxy deletes no server with connections, so the
// remaining ones are cut.
func (b *Balancer) removeServer(ctx context.Context, t *target, shard string, m balancer.Member) error {
	for said := ""; ; {
		servers, err := b.servers(ctx, t)
		if err != nil {
			return err
		}
		found := b.find(servers, shard, m)
		if len(found) == 0 {
			return nil
		}
		s := found[0]
		if said != "" {
			// Sessions end some time after the command that ends them.
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", ctx.Err(), b.refusal(said))
			case <-time.After(deleteAgain):
			}
		}
		said, err = t.ask(ctx, strings.Join([]string{
			b.set(s.name, "state maint"), "shutdown sessions server " + b.backend + "/" + s.name,
			"del server " + b.backend + "/" + s.name,
		}, ";"))
		if err != nil {
			return err
		}
	}
}

// deleteAgain is how long HAProxy gets to end sessions before the next attempt to delete a server.
const deleteAgain = 20 * time.Millisecond

func named(servers []server, name string) *server {
	for i := range servers {
		if servers[i].name == name {
			return &servers[i]
		}
	}
	return nil
}

// endpoint returns a member's address and port. HAProxy takes the last colon for the port's.
func endpoint(m balancer.Member) string { return fmt.Sprintf("%s:%d", m.Address, m.Port) }

// address returns the part of a command that sets a member's address.
func address(m balancer.Member) string { return fmt.Sprintf("addr %s port %d", m.Address, m.Port) }
