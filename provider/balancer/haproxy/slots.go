package haproxy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
)

// isSlot reports whether a server is a slot: the prefix and a number.
func (b *Balancer) isSlot(s server) bool {
	number, ok := strings.CutPrefix(s.name, b.slots)
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// lostAddress reports whether a server has no address. A reload restores a slot's port and state,
// and its address only where the server-template has a name and init-addr last.
func (s server) lostAddress() bool { return s.address == "0.0.0.0" || s.address == "::" }

func (b *Balancer) listSlots(servers []server, recorded []balancer.Member) (out balancer.Target) {
	of := map[string]string{} // instances by address and port
	for _, m := range recorded {
		of[endpoint(m)] = m.Instance
	}
	for _, s := range servers {
		instance := of[endpoint(balancer.Member{Address: s.address, Port: s.port})]
		switch {
		case b.isSlot(s) && (s.maintenance || s.lostAddress()):
		case b.isSlot(s) && instance != "":
			out.Members = append(out.Members, s.status(instance))
		default:
			out.Foreign++
		}
	}
	return out
}

// addSlot makes the member's slot ready, or takes a free one for it. If two coordinators take the
// same slot at the same time, one of them notices when it reads the slot again; if neither does,
// the next List shows the missing member.
func (b *Balancer) addSlot(ctx context.Context, t *target, shard string, m balancer.Member) error {
	servers, err := b.servers(ctx, t)
	if err != nil {
		return err
	}
	// A slot that lost its address in a reload sends requests nowhere.
	var commands []string
	for i := range servers {
		if s := &servers[i]; b.isSlot(*s) && s.lostAddress() && !s.maintenance {
			commands = append(commands, b.set(s.name, "state maint"))
			s.maintenance = true
		}
	}
	found := b.find(servers, shard, m)
	for i, s := range found {
		if i > 0 {
			commands = append(commands, b.set(s.name, "state maint")) // one is enough
		}
	}
	if len(found) == 0 {
		free, err := b.freeSlot(servers, m)
		if err != nil {
			return err
		}
		found = []server{free}
		if !free.at(m) {
			commands = append(commands, b.set(free.name, address(m)))
		}
	}
	s := found[0]
	switch {
	case m.Weight > 0:
		commands = append(commands, b.set(s.name, fmt.Sprintf("weight %d", m.Weight)))
	case s.maintenance || !s.weighs(m):
		commands = append(commands, b.set(s.name, "weight 100%")) // HAProxy's configuration sets it
	}
	if s.checkable && !s.checked {
		commands = append(commands, "enable health "+b.backend+"/"+s.name)
	}
	commands = append(commands, b.set(s.name, "state ready"))
	said, err := t.ask(ctx, strings.Join(commands, ";"))
	if err != nil {
		return err
	}
	fall := 0
	err = b.verify(ctx, t, said, func(servers []server) bool {
		found := b.find(servers, shard, m)
		if len(found) != 1 {
			return false
		}
		fall = found[0].fall
		return found[0].state() == balancer.Ready && found[0].weighs(m)
	})
	if err == nil && fall == 1 { // 0: they are not checked
		err = errors.Join(b.removeSlot(ctx, t, shard, m), balancer.Errorf(provider.Invalid, "backend "+b.backend,
			"the slots have fall 1, with which one that was never checked looks up: give the server-template fall 2 or more"))
	}
	return err
}

// freeSlot returns a slot in maintenance: one that had this address before, or else one without
// connections.
func (b *Balancer) freeSlot(servers []server, m balancer.Member) (free server, err error) {
	slots, found := 0, false
	for _, s := range servers {
		if !b.isSlot(s) {
			continue
		}
		slots++
		switch {
		case !s.maintenance:
		case s.at(m):
			return s, nil
		case s.connections == 0 && !found:
			free, found = s, true
		}
	}
	scope := "backend " + b.backend
	switch {
	case slots == 0:
		return free, balancer.Errorf(provider.Invalid, scope, "there is no slot %s1, %s2 …: "+
			"HAProxy needs a server-template %s 1-N",
			b.slots, b.slots, b.slots)
	case !found:
		return free, balancer.Errorf(provider.Capacity, scope, "none of its %d slots is free: enlarge the server-template",
			slots)
	}
	return free, nil
}

// removeSlot frees every slot at the member's address.
func (b *Balancer) removeSlot(ctx context.Context, t *target, shard string, m balancer.Member) error {
	servers, err := b.servers(ctx, t)
	if err != nil {
		return err
	}
	var commands []string
	for _, s := range servers {
		if b.isSlot(s) && s.at(m) {
			commands = append(commands, b.set(s.name, "state maint"),
				"shutdown sessions server "+b.backend+"/"+s.name, b.set(s.name, "addr 0.0.0.0 port 0"))
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
		return len(b.find(servers, shard, m)) == 0
	})
}
