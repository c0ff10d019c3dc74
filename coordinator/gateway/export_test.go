package gateway

import "github.com/leasehold/leasehold/coordinator/cache"

// Listed has the gateway take up a list, as its cache does.
func (g *Gateway) Listed(c *cache.Content) { (*watcher)(g).Listed(c) }
