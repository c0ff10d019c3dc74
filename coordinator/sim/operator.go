package sim

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// Reachable reports whether etcd answers. Nothing can be changed while it does not.
func (w *World) Reachable() bool { return !w.db.down }

// Group returns the spec in groups/, as far as it can be read; false if there is none.
func (w *World) Group(name string) (store.Group, bool) {
	c, there := w.db.cells[w.keys.Group(name)]
	if !there {
		return store.Group{}, false
	}
	if v, ok := c.record.(*store.Versioned[store.Group]); ok {
		return v.Record, true
	}
	g, err := store.ReadGroup(c.kv.Value)
	if err != nil {
		return g, true
	}
	c.record = &store.Versioned[store.Group]{Record: g, Key: c.kv.Key, Created: c.kv.Created, Modified: c.kv.Modified}
	return g, true
}

// Apply writes a group's spec.
func (w *World) Apply(g store.Group) {
	w.note("group %s applied: size %d", g.Name, g.Size)
	w.put(w.keys.Group(g.Name), g, 0)
}

// Edit changes a group's spec; false if there is no such group.
func (w *World) Edit(name string, change func(*store.Group)) bool {
	g, there := w.Group(name)
	if !there {
		return false
	}
	change(&g)
	w.put(w.keys.Group(name), g, 0)
	return true
}

// Spoil writes something that is no record into a key, as someone might do in etcd.
func (w *World) Spoil(key string) {
	w.note("%s is spoiled by hand", key)
	w.write([]store.Write{store.Put(key, []byte("{"))})
}

// Drop removes a key, as someone might do in etcd.
func (w *World) Drop(key string) {
	w.note("%s is removed by hand", key)
	w.drop(key)
}

// Order gives the leader an order, and sets its ID and time.
func (w *World) Order(r store.Request) {
	w.orders++
	r.Schema, r.ID, r.At = store.Schema, fmt.Sprintf("order-%06d", w.orders), w.Now()
	if r.By == "" {
		r.By = "operator"
	}
	w.note("order: %s %s%s%s %s", r.Kind, r.Group, r.Instance, r.Zone, r.Mode)
	w.put(w.keys.Request(r.ID), r, 0)
}

// Hold puts the shard on hold, Release takes it off.
func (w *World) Hold() {
	w.note("the shard is put on hold")
	w.editShard(func(s *store.Shard) { s.Hold = &store.Hold{By: "operator", Why: "to see", At: w.Now()} })
}

// Release ends a hold.
func (w *World) Release() {
	w.note("the shard is released")
	w.editShard(func(s *store.Shard) { s.Release(w.Now()) })
}

// Set changes a setting of the shard, as leasehold config set does.
func (w *World) Set(name, value string) {
	w.note("%s is %s", name, value)
	w.editShard(func(s *store.Shard) {
		if err := s.Settings.Set(name, value); err != nil {
			w.broken(err.Error())
		}
	})
}

func (w *World) editShard(change func(*store.Shard)) {
	s := Read[store.Shard](w, w.keys.Shard()).Record
	change(&s)
	w.put(w.keys.Shard(), s, 0)
}

// Shard returns the shard's record.
func (w *World) Shard() store.Shard { return Read[store.Shard](w, w.keys.Shard()).Record }
