package xdsserver

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/coordinator/discovery"
)

// Limits on names with a port. Each is kept encoded, and clients choose them.
const (
	maxPortsOfGroup = 16
	maxPorts        = 4096
)

// directory is the part of discovery.Directory that resources come from.
type directory interface {
	Find(group string) (*discovery.Group, bool)
	Names() []string
}

// catalog holds the resources of all groups: under GROUP with the provider's ports, and under
// GROUP:PORT for each port that a client has requested.
type catalog struct {
	directory directory
	log       *slog.Logger

	mu    sync.Mutex
	ports map[string][]uint16 // asked for, by group
	asked int                 // ports, of all groups
	ready bool

	listeners, clusters, endpoints *cachev3.LinearCache

	refusals, rejections rate.Sometimes // in the log: clients decide how many there are
}

// newCatalog makes a catalog whose versions begin with a prefix that no other replica uses, so that
// a client that comes from another replica gets everything.
func newCatalog(d directory, prefix string, log *slog.Logger) *catalog {
	of := func(kind string) *cachev3.LinearCache {
		return cachev3.NewLinearCache(kind, cachev3.WithVersionPrefix(prefix))
	}
	return &catalog{
		directory: d, log: log, ports: map[string][]uint16{},
		listeners: of(resource.ListenerType), clusters: of(resource.ClusterType), endpoints: of(resource.EndpointType),
		refusals: rate.Sometimes{Interval: time.Minute}, rejections: rate.Sometimes{Interval: time.Minute},
	}
}

// caches returns the resources as the server of the protocol reads them.
func (c *catalog) caches() cachev3.Cache {
	return &cachev3.MuxCache{
		Classify:      func(r *cachev3.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cachev3.DeltaRequest) string { return r.GetTypeUrl() },
		Caches: map[string]cachev3.Cache{
			resource.ListenerType: c.listeners, resource.ClusterType: c.clusters, resource.EndpointType: c.endpoints,
		},
	}
}

// isReady reports whether the shard has been read and all groups are here.
func (c *catalog) isReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// changed updates some groups from the directory.
func (c *catalog) changed(groups []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.update(groups, func(group string) []uint16 { return append([]uint16{0}, c.ports[group]...) })
	c.ready = true
}

// ask records the ports in the names that a client requests.
func (c *catalog) ask(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	swept := false
	for _, name := range names {
		group, port := parse(name)
		if c.asked >= maxPorts && !swept {
			c.sweep()
			swept = true
		}
		switch {
		case port == 0 || slices.Contains(c.ports[group], port):
			continue
		case len(c.ports[group]) >= maxPortsOfGroup || c.asked >= maxPorts:
			c.refusals.Do(func() {
				c.log.Warn("xds client requests more ports than allowed; the answer is that the resource does not exist",
					"group", fmt.Sprintf("%.100s", group), "port", port)
			})
			continue
		}
		c.ports[group] = append(c.ports[group], port)
		c.asked++
		c.update([]string{group}, func(string) []uint16 { return []uint16{port} })
	}
}

// sweep forgets the ports of groups that do not exist. A client that waits for one of them has to
// request it again. c.mu must be held.
func (c *catalog) sweep() {
	for group, ports := range c.ports {
		if _, there := c.directory.Find(group); !there {
			c.asked -= len(ports)
			delete(c.ports, group)
		}
	}
}

// withholds reports whether the directory withholds one of the groups that a client requests. An
// answer without it would have the client drop it.
func (c *catalog) withholds(names []string) bool {
	if slices.Contains(names, "*") {
		names = c.directory.Names()
	}
	return slices.ContainsFunc(names, func(name string) bool {
		group, _ := parse(name)
		g, there := c.directory.Find(group)
		return there && g.Withheld
	})
}

// rejected logs why a client rejected an answer.
func (c *catalog) rejected(why string) {
	if why != "" {
		c.rejections.Do(func() { c.log.Warn("xds client rejects an answer", "error", fmt.Sprintf("%.500s", why)) })
	}
}

// update encodes groups under some of their ports, or removes them. c.mu must be held.
func (c *catalog) update(groups []string, portsOf func(group string) []uint16) {
	set := map[string]types.Resource{} // endpoints
	newListeners, newClusters := map[string]types.Resource{}, map[string]types.Resource{}
	var gone []string
	had := c.clusters.GetResources()
	for _, group := range groups {
		g, there := c.directory.Find(group)
		if there && g.Withheld {
			continue
		}
		for _, port := range portsOf(group) {
			name := nameOf(group, port)
			if !there {
				gone = append(gone, name)
				continue
			}
			set[name] = endpointsOf(name, g.Endpoints, port)
			if _, has := had[name]; has {
				continue // they depend on the name alone
			}
			l, err := listenerOf(name)
			if err != nil {
				c.log.Error("group cannot be served by xds", "group", group, "error", err)
				continue
			}
			newListeners[name], newClusters[name] = l, clusterOf(name)
		}
	}
	// A resource is added before those that refer to it, and removed after them.
	err := c.endpoints.UpdateResources(set, nil)
	if err == nil && len(newClusters)+len(gone) > 0 {
		err = c.clusters.UpdateResources(newClusters, nil)
	}
	if err == nil && len(newListeners)+len(gone) > 0 {
		err = c.listeners.UpdateResources(newListeners, gone)
	}
	if err == nil && len(gone) > 0 {
		if err = c.clusters.UpdateResources(nil, gone); err == nil {
			err = c.endpoints.UpdateResources(nil, gone)
		}
	}
	if err != nil {
		c.log.Error("groups cannot be served by xds", "error", err)
	}
}

// parse splits a name. The port is 0 if it has none.
func parse(name string) (group string, port uint16) {
	group, text, has := strings.Cut(name, ":")
	n, err := strconv.ParseUint(text, 10, 16)
	if !has || err != nil || nameOf(group, uint16(n)) != name {
		return name, 0
	}
	return group, uint16(n)
}

func nameOf(group string, port uint16) string {
	if port == 0 {
		return group
	}
	return fmt.Sprintf("%s:%d", group, port)
}
