package discovery

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// Group is a directory's entry for one group. It is immutable.
type Group struct {
	Name      string
	Endpoints []Endpoint // in order of their instances' IDs
	// Withheld means that this replica has never known all instances of the group (see Incomplete).
	// It gives no answer, since a client would drop the missing ones.
	Withheld bool
}

// Directory keeps the endpoints of each group, so that a query does not read the cache, and a
// change is computed once for all subscribers. Only groups with changes are computed again.
type Directory struct {
	cache *cache.Cache

	groups atomic.Pointer[map[string]*Group] // nil: the shard has not been read. A published map is never modified

	mu      sync.Mutex
	changed func([]string)
	dirty   map[string]bool
	all     bool // everything is dirty
	wake    chan struct{}
}

// NewDirectory returns a directory that is empty until it runs.
func NewDirectory(c *cache.Cache) *Directory {
	return &Directory{cache: c, dirty: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// OnChange registers a function that is called, one call at a time, with the names of groups that
// have changed, appeared or disappeared, once Find returns the new values. Call it before Run.
func (d *Directory) OnChange(changed func(groups []string)) { d.changed = changed }

// Run follows the cache until ctx ends.
func (d *Directory) Run(ctx context.Context) {
	defer d.cache.Listen((*listener)(d))()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
			d.update()
		}
	}
}

// Ready reports whether the shard has been read. Until then nothing is known, which differs from an
// empty shard.
func (d *Directory) Ready() bool { return d.groups.Load() != nil }

// Find returns a group; false if there is none of that name, or nothing is known yet.
func (d *Directory) Find(name string) (*Group, bool) {
	groups := d.groups.Load()
	if groups == nil {
		return nil, false
	}
	g, there := (*groups)[name]
	return g, there
}

// Names returns the names of all groups, withheld ones included.
func (d *Directory) Names() []string {
	groups := d.groups.Load()
	if groups == nil {
		return nil
	}
	names := make([]string, 0, len(*groups))
	for name := range *groups {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Age returns the time since etcd last answered: the directory is that old.
func (d *Directory) Age() time.Duration {
	heard, _ := d.cache.Heard()
	if heard.IsZero() {
		return 0
	}
	return max(0, time.Since(heard))
}

// StaleAfter is the age from which a replica marks its answers as old. etcd reports progress more
// often.
const StaleAfter = 3 * time.Second

// update computes the dirty groups.
func (d *Directory) update() {
	d.mu.Lock()
	dirty, all := d.dirty, d.all
	d.dirty, d.all = map[string]bool{}, false
	d.mu.Unlock()

	before := map[string]*Group{}
	if groups := d.groups.Load(); groups != nil {
		before = *groups
	}
	after := make(map[string]*Group, len(before)+1)
	var changed []string
	if !d.cache.View(func(c *cache.Content) {
		if all {
			for name := range before {
				dirty[name] = true
			}
			for _, name := range Groups(c) {
				dirty[name] = true
			}
		}
		for name, g := range before {
			if !dirty[name] {
				after[name] = g
			}
		}
		for name := range dirty {
			old, had := before[name]
			endpoints := Endpoints(c, name)
			switch is := len(endpoints) > 0 || Knows(c, name); {
			case is && (!had || old.Withheld) && Incomplete(c, name):
				after[name] = &Group{Name: name, Withheld: true}
				continue
			case is && had && !old.Withheld && slices.Equal(old.Endpoints, endpoints):
				after[name] = old
				continue
			case is:
				after[name] = &Group{Name: name, Endpoints: endpoints}
			case !had:
				continue
			}
			changed = append(changed, name)
		}
	}) {
		return // nothing has been read yet: Listed wakes us again
	}
	if d.groups.Swap(&after) == nil || len(changed) > 0 {
		slices.Sort(changed)
		if d.changed != nil {
			d.changed(changed)
		}
	}
}

// mark records what has to be computed, and wakes Run.
func (d *Directory) mark(groups []string, all bool) {
	d.mu.Lock()
	for _, g := range groups {
		d.dirty[g] = true
	}
	d.all = d.all || all
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default: // it is already woken
	}
}

// listener implements cache.Listener for the directory.
type listener Directory

func (l *listener) Listed(*cache.Content) { (*Directory)(l).mark(nil, true) }

// Interrupted changes nothing: the last answer stays.
func (l *listener) Interrupted(error) {}

func (l *listener) Changed(c *cache.Content, changes []cache.Change) {
	var groups []string
	all := false
	for _, change := range changes {
		if change.Same {
			continue
		}
		switch change.Kind {
		case store.KindShard: // an operator may have released a hold for lost records
			all = true
		case store.KindInstances:
			of := c.Instances[change.Name].Record.Group
			groups = append(groups, change.Group, of)
			if change.Group == "" && of == "" { // one that was never read may be of any group
				all = true
			}
		case store.KindReports:
			groups = append(groups, change.Group, lostGroup(c, change.Name))
		case store.KindGone, store.KindGroups, store.KindStatic, store.KindStatus, store.KindStrays:
			groups = append(groups, change.Group)
		}
	}
	groups = slices.DeleteFunc(groups, func(g string) bool { return g == "" })
	if len(groups) > 0 || all {
		(*Directory)(l).mark(groups, all)
	}
}

// lostGroup returns the group of an instance whose record is lost; "" if it is not.
func lostGroup(c *cache.Content, id string) string {
	for _, lost := range c.Missing {
		if lost.Instance != nil && lost.Name == id {
			return lost.Instance.Group
		}
	}
	return ""
}

// Knows reports whether a group of that name exists or something remains of one: lost records
// count, because a group with lost records is damaged, not deleted.
func Knows(c *cache.Content, group string) bool {
	_, spec := c.Groups[group]
	_, static := c.Static[group]
	_, status := c.Status[group]
	if spec || static || status || len(c.ByGroup[group]) > 0 {
		return true
	}
	for _, lost := range c.Missing {
		if groupOf(lost) == group {
			return true
		}
	}
	return false
}

// Groups returns the names of all groups that Knows reports, in order.
func Groups(c *cache.Content) []string {
	names := c.GroupNames()
	for name := range c.ByGroup {
		names[name] = true
	}
	for _, lost := range c.Missing {
		names[groupOf(lost)] = true
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// groupOf returns the group of a lost record.
func groupOf(lost cache.Missing) string {
	if lost.Instance != nil {
		return lost.Instance.Group
	}
	return lost.Name // of a status
}
