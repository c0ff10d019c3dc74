package story

import (
	"encoding/json"
	"errors"

	"github.com/leasehold/leasehold/store"
)

// Known is a group's spec, and its status from the leader.
type Known struct {
	Name   string
	Shard  string
	Spec   store.Group // for a static group: merged with its override
	Stored store.KV    // the zero KV: no such key in groups/
	Static store.KV    // the zero KV: the group is not static
	Bad    error       // why the spec cannot be used, if so
	Status store.Versioned[store.Status]
	Raw    json.RawMessage // the status as stored, for JSON output
	// StatusBad is why the status cannot be read, if so: then the spec in force is unknown
	// (SAFE-16).
	StatusBad error
}

// Revision returns the revision of the spec: the newer one of a static group and its override. 0
// means that there is none.
func (g Known) Revision() store.Revision { return max(g.Stored.Modified, g.Static.Modified) }

// Gone reports whether the group has no spec, although the leader still knows it.
func (g Known) Gone() bool { return g.Revision() == 0 }

// IsStatic reports whether config apply wrote the group.
func (g Known) IsStatic() bool { return g.Static.Modified != 0 }

// Read decodes the spec. For a static group whose override is missing, the last accepted spec stays
// in force.
func (g *Known) Read() {
	if g.Gone() {
		return
	}
	g.Spec, g.Bad = store.ReadInForce(valueOf(g.Static), valueOf(g.Stored))
	if lost := g.LostBeside(); lost != nil {
		g.Bad = errors.New(lost.Missing(*g.Status.Record.Accepted))
	}
}

// ReadStatus decodes the status.
func (g *Known) ReadStatus(kv store.KV) {
	if g.Status, g.StatusBad = store.Decode[store.Status](kv); g.StatusBad != nil {
		g.Status = store.Versioned[store.Status]{Key: kv.Key}
	}
}

// LostBeside returns the override of a static group that vanished; nil if none did.
func (g *Known) LostBeside() *store.Beside {
	if !g.IsStatic() {
		return nil
	}
	return g.Status.Record.LostBeside(g.Spec, g.Stored.Modified)
}

// valueOf returns nil for a missing key.
func valueOf(kv store.KV) []byte {
	if kv.Modified == 0 {
		return nil
	}
	return kv.Value
}
