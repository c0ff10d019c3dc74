package gateway

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/store/filetemplate"
)

// peers are the healthy instances of groups, as files name them. Changes are batched: a file's view
// of its peers changes at most once per settle time.
//
// A peer is removed only on positive evidence (SAFE-18): its record or its report, or a note that
// its record was deleted on purpose. A peer with a lost record stays until an operator accepts the
// loss.
type peers struct {
	g *Gateway

	watched sync.Map // groups with views

	// The locks of the cache, of Gateway and of sessions may be taken while mu is held, and not the
	// other way round.
	mu    sync.Mutex
	views map[viewOf]*view
}

// viewOf is the key of a view: files of one group and settle time share it.
type viewOf struct {
	group  string
	settle time.Duration
}

// view is the peers that files see now.
type view struct {
	list     []filetemplate.Peer // in order of instances; nil: not known yet
	taken    time.Time
	waits    bool // a timer runs
	rendered map[string]rendered
}

// rendered is the result of a template that is the same for all instances.
type rendered struct {
	data []byte
	err  error
}

// render renders a template over the peers of a group. A template with a shared name is rendered
// once for all instances. known is false if the peers cannot be determined.
func (p *peers) render(group string, settle time.Duration, shared string,
	do func([]filetemplate.Peer) ([]byte, error),
) (data []byte, known bool, err error) {
	p.mu.Lock()
	v := p.views[viewOf{group, settle}]
	if v == nil {
		v = &view{}
		p.views[viewOf{group, settle}] = v
		p.watched.Store(group, true) // before the cache is read, so that no later change is missed
	}
	if v.list == nil && !p.take(group, v) {
		p.mu.Unlock()
		return nil, false, nil
	}
	if shared == "" {
		list := v.list
		p.mu.Unlock()
		data, err = do(list)
		return data, true, err
	}
	defer p.mu.Unlock()
	r, done := v.rendered[shared]
	if !done {
		r.data, r.err = do(v.list)
		v.rendered[shared] = r
	}
	return r.data, true, r.err
}

// take reads the current peers; false if they cannot be determined. p.mu must be held.
func (p *peers) take(group string, v *view) (known bool) {
	p.g.deps.Cache.View(func(c *cache.Content) {
		hold := c.Shard.Record.Hold
		damaged := hold != nil && (hold.Damage > 0 || hold.Extras > 0)
		whole := v.list != nil || !damaged && !discovery.Incomplete(c, group)
		if known = whole && !p.g.isWrongShard(c); !known {
			return
		}
		v.list = p.merge(c, group, v.list)
	})
	if known {
		v.taken, v.rendered = time.Now(), map[string]rendered{}
	}
	return known
}

// merge returns the present peers, and former ones whose records are lost.
func (p *peers) merge(c *cache.Content, group string, before []filetemplate.Peer) []filetemplate.Peer {
	list := []filetemplate.Peer{} // not nil, because it is known that there are none
	for _, e := range discovery.Endpoints(c, group) {
		list = append(list, filetemplate.Peer{Instance: e.Instance, Slot: e.Slot, Zone: e.Zone, Address: e.Address})
	}
	for _, old := range before {
		key := p.g.cfg.Keys.Instance(old.Instance)
		_, recorded := c.Instances[old.Instance]
		_, deleted := c.Gone[key]
		if lost, missing := c.Missing[key]; missing && lost.At <= discovery.Acknowledged(c) {
			continue
		}
		listed := slices.ContainsFunc(list, func(n filetemplate.Peer) bool { return n.Instance == old.Instance })
		if !recorded && !deleted && !listed {
			list = append(list, old)
		}
	}
	slices.SortFunc(list, func(a, b filetemplate.Peer) int { return strings.Compare(a.Instance, b.Instance) })
	return list
}

// changed schedules a refresh of a group's views; "" is every group. The cache may be locked.
func (p *peers) changed(group string) {
	if _, watched := p.watched.Load(group); watched || group == "" {
		p.g.spawn(func() { p.schedule(group) })
	}
}

func (p *peers) schedule(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for of, v := range p.views {
		if v.waits || group != "" && of.group != group {
			continue
		}
		v.waits = true
		time.AfterFunc(max(0, time.Until(v.taken.Add(of.settle))), func() { p.g.spawn(func() { p.refresh(of, v) }) })
	}
}

// refresh updates a view and notifies the agents with files that may have changed.
func (p *peers) refresh(of viewOf, v *view) {
	if !p.retake(of, v) {
		return
	}
	for _, s := range p.users(of) {
		s.notify(topicFiles)
	}
}

// retake updates a view and reports whether the peers have changed. A view without users is
// forgotten.
func (p *peers) retake(of viewOf, v *view) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	v.waits = false
	// Under the lock: a session that begins meanwhile renders its files afterwards, from a new view.
	if len(p.users(of)) == 0 {
		delete(p.views, of)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(p.views)), func(o viewOf) bool { return o.group == of.group }) {
			p.watched.Delete(of.group)
		}
		return false
	}
	before, was := v.list, v.rendered
	if !p.take(of.group, v) {
		return false
	}
	if before != nil && slices.Equal(before, v.list) {
		v.rendered = was
		return false
	}
	return true
}

// users returns the sessions whose files see a view.
func (p *peers) users(of viewOf) []*session {
	var out []*session
	for _, s := range p.g.all() {
		if rec := s.filesRecord(); rec != nil && rec.Group == of.group {
			out = append(out, s)
		}
	}
	return out
}
