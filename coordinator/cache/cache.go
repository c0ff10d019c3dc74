package cache

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Content is the content of the shard's keys, and the settings in force. Callers only read it.
type Content struct {
	Revision   store.Revision
	Shard      store.Versioned[store.Shard]
	Served     store.Versioned[store.Served]
	Leaders    map[string]store.KV
	Replicas   map[string]store.Versioned[store.Replica]
	Groups     map[string]store.KV // undecoded: the leader decides whether a spec is valid
	Static     map[string]store.KV // undecoded
	Status     map[string]store.Versioned[store.Status]
	Slots      map[string]map[int]store.Versioned[store.Slot]
	Instances  map[string]store.Versioned[store.Instance]
	ByGroup    map[string][]string // IDs of instances, in order
	Alive      map[string]store.Versioned[store.Alive]
	Reports    map[string]store.Versioned[store.Report]
	Requests   map[string]store.Versioned[store.Request]
	ToGroup    map[string][]string // IDs of requests for groups, in order; those for the shard are at ""
	ToInstance map[string][]string // IDs of requests for instances, in order
	Strays     map[string]store.Versioned[store.Stray]
	Claiming   map[string]map[string]bool // IDs of strays by the group that their claims name
	Secrets    map[string]store.Versioned[store.Secret]
	Turns      map[string]store.Revision                   // the last written value of each group's key
	Tokens     map[string]store.Versioned[store.JoinToken] // by hash
	Joined     map[string]store.Versioned[store.Joined]    // by instance
	// Records that are only displayed, and decide nothing. An unreadable value is left out: its
	// writer rewrites it.
	Backup   store.Versioned[store.Backup]
	Webhooks map[string]store.Versioned[store.Webhook]
	Extras   map[string]store.Versioned[store.Extra]
	// Unreadable has the reason for each key whose value cannot be read. Its last readable value
	// stays in the maps above, so that the record does not count as absent.
	Unreadable map[string]string
	Spoiled    map[string]Spoiled         // what else is known about unreadable keys
	Missing    map[string]Missing         // lost records, by key: absent, and not deleted on purpose (SAFE-15)
	Gone       map[string]Note            // what was deleted on purpose, by key
	GoneIn     map[string]map[string]Note // the instances' notes, by group and ID

	specs  store.InstanceSpecs
	groups store.GroupSpecs
	texts  texts
	// settings are the last settings in force. They stay when the shard's key is gone or listed again:
	// a value outside a setting's range leaves the setting unchanged (REC-20).
	settings *store.ShardSettings
}

// Change is one change of one key.
type Change struct {
	Kind    string // see the kinds in package store
	Name    string
	Group   string // the affected group, if any
	Deleted bool
	// Same is set if only a report's numbers, a turn or a join changed: nothing that others act on.
	Same bool
	// Numbers is set if nothing is new in a group's status but the numbers of a wish by load. Readers
	// show them, but no plan that sees them decides anything else.
	Numbers bool
	// Alive is the former value of an alive key, if it existed.
	Alive *store.Alive
	// Loads is set if the change stands for reports in which only the load is new.
	Loads *Loads
}

// Loads are reports of a group's agents at one time that have nothing new but their load, and that
// no Content includes yet. Only simulations have them.
type Loads struct {
	Group     string
	At        time.Time
	Instances []string // in order
	Windows   [][]store.HostWindow
	Revisions []store.Revision
}

// Write makes a report one of these.
func (l *Loads) Write(i int, v *store.Versioned[store.Report]) {
	v.Record.Received, v.Record.Sent, v.Modified = l.At, l.At, l.Revisions[i]
	v.Record.Host = store.HostReport{Windows: l.Windows[i]}
}

// Listener receives changes. Its methods are called with the content locked against change, and
// must neither block nor call the cache.
type Listener interface {
	// Listed reports that the content was read again: anything may have changed.
	Listed(*Content)
	// Changed reports the changes of one or several revisions.
	Changed(*Content, []Change)
	// Interrupted reports that the content is out of date until Listed.
	Interrupted(error)
}

// Cache is the shard's records in memory.
type Cache struct {
	keys store.Keys
	next *Content // a listing in progress; used only by the goroutine that follows etcd

	mu          sync.RWMutex
	content     *Content // nil until the first listing
	heard       time.Time
	interrupted error
	listeners   map[int]Listener
	nextID      int
	moved       chan struct{} // closed and replaced whenever the revision grows
}

// New makes an empty cache of the shard with these keys.
func New(keys store.Keys) *Cache {
	return &Cache{keys: keys, listeners: map[int]Listener{}, moved: make(chan struct{})}
}

// Run follows the store until ctx ends.
func (p *Cache) Run(ctx context.Context, s store.Store) error {
	var wanted []string
	for _, kind := range []string{
		store.KindLeader, store.KindReplicas, store.KindGroups, store.KindStatic, store.KindStatus, store.KindSlots,
		store.KindInstances, store.KindAlive, store.KindReports, store.KindRequests, store.KindStrays, store.KindTurns,
		store.KindTokens, store.KindJoined, store.KindSecrets, store.KindGone,
		store.KindWebhooks, store.KindExtras,
	} {
		wanted = append(wanted, p.keys.Of(kind))
	}
	wanted = append(wanted, p.keys.Shard(), p.keys.Served(), p.keys.Backup())
	return store.Follow(ctx, s, p.keys.Prefix(), wanted, (*follower)(p))
}

// View calls read with the content, and reports whether there is any yet. The content does not
// change during the call.
func (p *Cache) View(read func(*Content)) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.content == nil {
		return false
	}
	read(p.content)
	return true
}

// Heard returns when etcd last sent anything, progress included, and what interrupts the watch, if
// anything.
func (p *Cache) Heard() (time.Time, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.heard, p.interrupted
}

// Listen calls a listener for every later change, beginning with Listed if there is content. The
// returned function ends that; after it has returned, the listener is not called again.
func (p *Cache) Listen(l Listener) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.nextID
	p.nextID++
	p.listeners[id] = l
	if p.content != nil {
		l.Listed(p.content)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, id)
	}
}

// WaitFor waits until the cache shows everything up to a revision.
func (p *Cache) WaitFor(ctx context.Context, rev store.Revision) error {
	for {
		p.mu.RLock()
		reached := p.content != nil && p.content.Revision >= rev
		moved := p.moved
		p.mu.RUnlock()
		if reached {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-moved:
		}
	}
}

// follower is the cache as store.Follow uses it.
type follower Cache

// Part adds a part of a listing, beside the content that others still read.
func (f *follower) Part(kvs []store.KV) {
	if f.next == nil {
		f.next = NewContent()
		if f.content != nil { // only this goroutine writes it
			f.next.settings = f.content.settings
		}
	}
	f.next.Take(f.keys, kvs)
}

func (f *follower) Reset(rev store.Revision) {
	f.Part(nil) // there may have been none
	c := f.next
	c.Revision, f.next = rev, nil
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Inherit(f.keys, f.content, f.age())
	f.content, f.interrupted = c, nil
	f.advance()
	for _, listener := range f.ordered() {
		listener.Listed(c)
	}
}

// age returns for how long the content was not updated. The monotonic clock stops while the machine
// sleeps, but leases do not.
func (f *follower) age() time.Duration {
	now := time.Now()
	return max(now.Sub(f.heard), now.Round(0).Sub(f.heard.Round(0)))
}

func (f *follower) Apply(b store.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var changes []Change
	for _, e := range b.Events {
		if change, ok := f.content.Apply(f.keys, e); ok {
			changes = append(changes, change)
		}
	}
	f.content.Revision = max(f.content.Revision, b.Revision)
	f.advance()
	for _, listener := range f.ordered() {
		listener.Changed(f.content, changes)
	}
}

func (f *follower) Interrupted(err error) {
	f.next = nil
	f.mu.Lock()
	defer f.mu.Unlock()
	f.interrupted = err
	for _, listener := range f.ordered() {
		listener.Interrupted(err)
	}
}

func (f *follower) advance() {
	f.heard = time.Now()
	close(f.moved)
	f.moved = make(chan struct{})
}

func (f *follower) ordered() []Listener {
	out := make([]Listener, 0, len(f.listeners))
	for id := range f.nextID {
		if l, ok := f.listeners[id]; ok {
			out = append(out, l)
		}
	}
	return out
}
