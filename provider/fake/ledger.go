package fake

import (
	"maps"
	"slices"
	"sort"
	"time"
)

// Life is all that happened under one instance ID.
type Life struct {
	Instance string
	Shard    string
	Group    string
	Slot     int
	Zone     string

	Calls      map[Call]int // that were begun
	Made       int          // machines made; more than 1 would be a bug of this package
	Deleted    int          // machines removed by a Delete; a Delete of what is gone does not count
	Boots      int
	Vanished   bool
	Overlapped bool // two calls were under way at once (SAFE-8 forbids it to one coordinator)
	MadeAt     time.Time
	GoneAt     time.Time // zero while there is a machine

	under int // calls under way
}

// Exists reports whether there is a machine under this ID now.
func (l Life) Exists() bool { return l.Made > 0 && l.GoneAt.IsZero() }

// Ledger is every instance for which there ever was a call, in order of ID.
func (p *Provider) Ledger() []Life {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Life, 0, len(p.lives))
	for id, l := range p.lives {
		if id != "" { // the Lists
			all = append(all, l.copy())
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Instance < all[j].Instance })
	return all
}

// Life is what happened under one ID.
func (p *Provider) Life(instance string) Life {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.lives[instance]; l != nil {
		return l.copy()
	}
	return Life{Instance: instance}
}

// Existing are the IDs of all machines that exist now, up or down, in order.
func (p *Provider) Existing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for id, l := range p.lives {
		if l.Exists() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Made is how many machines were ever made.
func (p *Provider) Made() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lives {
		n += l.Made
	}
	return n
}

// MostAtOnce is the greatest number of calls that were under way at once, Lists apart.
func (p *Provider) MostAtOnce() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// Lists is how often List was called.
func (p *Provider) Lists() int { return p.Life("").Calls[CallList] }

func (l *Life) copy() Life {
	c := *l
	c.Calls = maps.Clone(l.Calls)
	return c
}

func (p *Provider) life(shard, instance string) *Life {
	l := p.lives[instance]
	if l == nil {
		l = &Life{Instance: instance, Shard: shard, Calls: map[Call]int{}}
		p.lives[instance] = l
	}
	return l
}

func (p *Provider) enter(c Call, shard, instance string) {
	l := p.life(shard, instance)
	l.Calls[c]++
	l.under++
	if instance == "" {
		return
	}
	if l.under > 1 {
		l.Overlapped = true
	}
	p.under++
	p.most = max(p.most, p.under)
}

func (p *Provider) leave(shard, instance string) {
	p.life(shard, instance).under--
	if instance != "" {
		p.under--
	}
}
