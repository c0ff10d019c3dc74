// Package discovery returns the addresses of the healthy instances of a shard, for clients that
// find them without a load balancer (LB-4).
//
// # Invariants
//
//   - It reads only a replica's cache, so it answers with the last known state while etcd is
//     unreachable.
//   - Only positive evidence takes an instance out: its record says that it drains or is removed,
//     or its own report says that it is unhealthy. A lost lease, a storm, a hold and lost or
//     unreadable records take out nothing (SAFE-18).
//   - For a group of which this replica does not know all instances there is no answer, rather than
//     an incomplete one.
package discovery

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// Endpoint is an instance that is in service.
type Endpoint struct {
	Instance string
	Group    string
	Slot     int // -1 for an instance on demand
	Zone     string
	// Address is the workload's address, as the provider reports it: a host, or HOST:PORT.
	Address string
}

// HostPort splits the address. The port is 0 if the address has none.
func (e Endpoint) HostPort() (host string, port uint16) {
	host, text, err := net.SplitHostPort(e.Address)
	if err != nil {
		return e.Address, 0
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return host, 0
	}
	return host, uint16(n)
}

// IP splits the address; false if its host is a name.
func (e Endpoint) IP() (netip.AddrPort, bool) {
	host, port := e.HostPort()
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Zone() != "" {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip.Unmap(), port), true
}

// Endpoints returns the instances in service of some groups, or of all if none is named, in order
// of their IDs. An instance is in service once it runs and its provider has reported its address.
func Endpoints(c *cache.Content, groups ...string) []Endpoint {
	var out []Endpoint
	add := func(rec *store.Instance) {
		if rec.Phase != store.Running || rec.Address == "" || len(groups) > 0 && !slices.Contains(groups, rec.Group) {
			return
		}
		if r, known := c.Reports[rec.ID]; known && !r.Record.Healthy && r.Record.Instance == rec.ID {
			return
		}
		out = append(out, Endpoint{
			Instance: rec.ID, Group: rec.Group, Slot: rec.Slot, Zone: rec.Zone, Address: rec.Address,
		})
	}
	if len(groups) == 0 {
		for id := range c.Instances {
			rec := c.Instances[id].Record
			add(&rec)
		}
	}
	for _, group := range slices.Compact(slices.Sorted(slices.Values(groups))) {
		for _, id := range c.ByGroup[group] {
			rec := c.Instances[id].Record
			add(&rec)
		}
	}
	for _, lost := range c.Missing {
		if _, there := c.Instances[lost.Name]; !there && lost.Instance != nil && lost.At > Acknowledged(c) {
			add(lost.Instance)
		}
	}
	slices.SortFunc(out, func(a, b Endpoint) int { return strings.Compare(a.Instance, b.Instance) })
	return out
}
