package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// database is the world's etcd: keys with revisions, transactions, and leases that end when agents
// say so.
type database struct {
	cells    map[string]*cell
	rev      store.Revision
	lease    store.LeaseID // the last one granted
	down     bool          // unreachable
	downFrom time.Duration
	extended time.Duration // when leases last got their full time again
	unheard  bool          // gateways do not see that leases end
}

// cell is a key with the record that its value was last decoded to. A report, and a status that the
// leader wrote, has no value until one is asked for: worlds write them far more often than anything
// reads their bytes.
type cell struct {
	kv     store.KV
	record any   // a pointer to a store.Versioned
	calm   *load // set if it is a report of a group whose load may be newer than the record
}

// whole returns the key with its value.
func (c *cell) whole() store.KV {
	if c.kv.Value != nil {
		return c.kv
	}
	switch v := c.record.(type) {
	case *store.Versioned[store.Report]:
		c.kv.Value = store.Encode(v.Record)
	case *store.Versioned[store.Status]:
		c.kv.Value = store.Encode(v.Record)
	}
	return c.kv
}

func newDatabase() database { return database{cells: map[string]*cell{}, rev: 1} }

// cell returns the cell of a key; false if there is no such key.
func (d *database) cell(key string) (*cell, bool) {
	c, there := d.cells[key]
	if there && c.calm != nil {
		c.calm.settle()
	}
	return c, there
}

func (d *database) grant() store.LeaseID {
	d.lease++
	return d.lease
}

// satisfies reports whether a condition holds.
func (d *database) satisfies(c store.Condition) bool {
	if cell, there := d.cell(c.Key); there {
		return c.Holds(cell.kv)
	}
	return c.Holds(store.KV{})
}

// commit performs a transaction, or fails as a store does. Writes of statuses by key have no value.
func (w *World) commit(txn store.Txn, statuses map[string]*store.Status) (store.Revision, error) {
	if err := txn.Validate(); err != nil {
		w.broken("transaction is not possible: " + err.Error())
		return 0, err
	}
	if w.db.down {
		return 0, store.ErrUnavailable
	}
	var broken []string
	for _, c := range txn.Conditions {
		if !w.db.satisfies(c) {
			broken = append(broken, c.Key)
		}
	}
	if len(broken) > 0 {
		return 0, &store.ConflictError{Keys: broken}
	}
	return w.writeAs(txn.Writes, statuses), nil
}

// write makes changes at one revision, and notifies all watchers.
func (w *World) write(writes []store.Write) store.Revision { return w.writeAs(writes, nil) }

func (w *World) writeAs(writes []store.Write, statuses map[string]*store.Status) store.Revision {
	d := &w.db
	d.rev++
	events := make([]change, 0, len(writes))
	for _, op := range writes {
		if strings.HasPrefix(op.Key, journalKey) {
			continue
		}
		old, had := d.cell(op.Key)
		if op.Delete {
			if had {
				delete(d.cells, op.Key)
				events = append(events, change{
					Event: store.Event{KV: store.KV{Key: op.Key, Modified: d.rev}, Deleted: true},
				})
			}
			continue
		}
		kv := store.KV{Key: op.Key, Value: op.Value, Created: d.rev, Modified: d.rev, Lease: op.Lease}
		if had {
			kv.Created = old.kv.Created
		}
		c, e := &cell{kv: kv}, change{Event: store.Event{KV: kv}}
		if st := statuses[op.Key]; st != nil {
			e.status = &store.Versioned[store.Status]{Record: *st, Key: kv.Key, Created: kv.Created, Modified: kv.Modified}
			c.record = e.status
		}
		d.cells[op.Key] = c
		if e.KV = c.kv; w.cfg.Observer.Changed != nil {
			e.KV = c.whole()
		}
		events = append(events, e)
	}
	if w.cfg.Observer.Changed != nil {
		for _, e := range events {
			w.cfg.Observer.Changed(w.Now(), e.Event)
		}
	}
	w.spread(events)
	return d.rev
}

// putReport writes the report of an agent. The leader's cache shares the record, since encoding and
// decoding one took most of the time of a world with loads.
func (w *World) putReport(key string, r *store.Report) *cell {
	d := &w.db
	d.rev++
	v := &store.Versioned[store.Report]{Record: *r, Key: key, Created: d.rev, Modified: d.rev}
	c, had := d.cell(key)
	if had {
		v.Created = c.kv.Created
	} else {
		c = &cell{}
		d.cells[key] = c
	}
	c.kv, c.record = store.KV{Key: key, Created: v.Created, Modified: v.Modified}, v
	if w.cfg.Observer.Changed != nil {
		w.cfg.Observer.Changed(w.Now(), store.Event{KV: c.whole()})
	}
	if w.leader != nil {
		w.leader.committed(batch{report: v, rev: d.rev})
	}
	return c
}

// spread passes changes to the watchers: the leader's cache and the gateways.
func (w *World) spread(events []change) {
	if w.leader != nil {
		w.leader.committed(batch{events: events, rev: w.db.rev})
	}
	for _, e := range events {
		kind, name, _ := w.keys.Split(e.KV.Key)
		a := w.agents[name]
		switch {
		case a == nil:
		case kind == store.KindReports:
			a.reported = nil
		case kind == store.KindInstances || kind == store.KindAlive:
			a.recordChanged(kind, e.Deleted)
		}
	}
}

// put writes one record unconditionally. It is for writers other than the leader.
func (w *World) put(key string, record any, lease store.LeaseID) {
	op := store.Put(key, store.Encode(record))
	op.Lease = lease
	w.write([]store.Write{op})
}

func (w *World) drop(key string) {
	if _, there := w.db.cells[key]; there {
		w.write([]store.Write{store.Delete(key)})
	}
}

// Read reads a record as it is now; it is not Present if there is none. The caller must not modify
// what it points to.
func Read[T any](w *World, key string) store.Versioned[T] {
	c, there := w.db.cell(key)
	if !there {
		return store.Versioned[T]{Key: key}
	}
	if v, ok := c.record.(*store.Versioned[T]); ok {
		return *v
	}
	v, err := store.Decode[T](c.kv)
	if err != nil {
		return store.Versioned[T]{Key: key, Created: c.kv.Created, Modified: c.kv.Modified}
	}
	c.record = &v
	return v
}

// Value returns the value of a key; nil if there is no such key.
func (w *World) Value(key string) []byte {
	if c, there := w.db.cell(key); there {
		return c.whole().Value
	}
	return nil
}

// Names lists the names below a kind's prefix, in order.
func (w *World) Names(kind string) []string {
	var out []string
	prefix := w.keys.Of(kind)
	for key := range w.db.cells {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// listing returns everything in the database, in order.
func (w *World) listing() store.Listing {
	for _, l := range w.loads {
		l.settle()
	}
	l := store.Listing{Revision: w.db.rev, KVs: make([]store.KV, 0, len(w.db.cells))}
	for _, c := range w.db.cells {
		l.KVs = append(l.KVs, c.whole())
	}
	slices.SortFunc(l.KVs, func(a, b store.KV) int { return strings.Compare(a.Key, b.Key) })
	return l
}

func (w *World) instance(id string) store.Versioned[store.Instance] {
	return Read[store.Instance](w, w.keys.Instance(id))
}

// Revision returns when a key was last written; 0 if there is no such key.
func (w *World) Revision(key string) store.Revision {
	if c, there := w.db.cell(key); there {
		return c.kv.Modified
	}
	return 0
}
