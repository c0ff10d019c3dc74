package cluster

import (
	"sync"

	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/faults/network"
)

// harms are lasting faults, and the machines that have them, including machines created meanwhile.
type harms struct {
	mu   sync.Mutex
	last int
	cuts map[int]func(instance string) bool
	hit  map[int]map[string]bool
}

func (h *harms) init() { h.cuts, h.hit = map[int]func(string) bool{}, map[int]map[string]bool{} }

// CutMachines cuts machines off from every replica, including those created meanwhile. mend ends
// it.
func (c *Cluster) CutMachines(which func(instance string) bool, how network.Rule) (mend func() error) {
	h := &c.harms
	h.mu.Lock()
	h.last++
	n := h.last
	h.cuts[n], h.hit[n] = which, map[string]bool{}
	for _, id := range c.Cloud.Existing() {
		c.cutOne(n, id)
	}
	h.mu.Unlock()
	how.From, how.To = func(party string) bool { return c.IsMachine(party) && which(party) }, c.IsReplica
	lift := c.Impose(how)
	return func() error {
		lift()
		h.mu.Lock()
		defer h.mu.Unlock()
		for id := range h.hit[n] {
			c.Cloud.NoteHarm(id, history.Cut, true)
		}
		delete(h.cuts, n)
		delete(h.hit, n)
		return nil
	}
}

// cutOne records that a machine is cut off, if it is.
func (c *Cluster) cutOne(n int, id string) {
	h := &c.harms
	if h.cuts[n](id) && !h.hit[n][id] {
		h.hit[n][id] = true
		c.Cloud.NoteHarm(id, history.Cut, false)
	}
}

// machineMade is called for every machine before it boots.
func (c *Cluster) machineMade(id string) {
	c.harms.mu.Lock()
	defer c.harms.mu.Unlock()
	for n := range c.harms.cuts {
		c.cutOne(n, id)
	}
}
