package sim

import "github.com/leasehold/leasehold/store"

// Lost holds the values that keys had before they were damaged.
type Lost []store.KV

// Lose deletes keys, as someone might do in etcd, all at once, and returns what they held.
func (w *World) Lose(keys ...string) Lost {
	var lost Lost
	var writes []store.Write
	for _, key := range keys {
		if c, there := w.db.cell(key); there {
			lost = append(lost, c.whole())
			writes = append(writes, store.Delete(key))
		}
	}
	w.note("%d keys are deleted by hand", len(lost))
	w.write(writes)
	return lost
}

// Corrupt writes garbage over keys, and returns what they held.
func (w *World) Corrupt(keys ...string) Lost {
	var lost Lost
	for _, key := range keys {
		if c, there := w.db.cell(key); there {
			lost = append(lost, c.whole())
			w.Spoil(key)
		}
	}
	return lost
}

// Repair restores the values of keys.
func (w *World) Repair(lost Lost) {
	w.note("%d keys are put back", len(lost))
	var writes []store.Write
	for _, kv := range lost {
		writes = append(writes, store.PutLeased(kv.Key, kv.Value, kv.Lease))
	}
	w.write(writes)
}
