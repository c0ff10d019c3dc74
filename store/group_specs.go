package store

import (
	"bytes"
	"encoding/json"
)

// GroupSpecs reads the status of groups. The spec in force is most of a status, and changes rarely,
// while the numbers of a group that follows its load change all the time: a spec whose text has not
// changed is not read again. A caller must not change what a status refers to. The zero value is
// ready. It is not safe for concurrent use.
type GroupSpecs struct {
	known map[string]groupText // by the key of the status
}

type groupText struct {
	text []byte
	spec *Group
}

// Decode is Decode for the status of a group.
func (s *GroupSpecs) Decode(kv KV) (Versioned[Status], error) {
	before := s.known[kv.Key]
	record := struct {
		Status
		Accepted sharedGroup `json:"accepted"` // goes before the one of Status
	}{Accepted: sharedGroup{groupText: before}}
	err := decodeInto(kv, &record)
	v := Versioned[Status]{
		Record: record.Status, Key: kv.Key, Created: kv.Created, Modified: kv.Modified, Lease: kv.Lease,
	}
	if !record.Accepted.present {
		return v, err
	}
	v.Record.Accepted = record.Accepted.spec
	if err == nil && before.spec != v.Record.Accepted {
		if s.known == nil {
			s.known = map[string]groupText{}
		}
		s.known[kv.Key] = record.Accepted.groupText
	}
	return v, err
}

// Forget forgets the spec of a status that is gone.
func (s *GroupSpecs) Forget(key string) { delete(s.known, key) }

// sharedGroup is a spec that is compared with the last one before it is read.
type sharedGroup struct {
	groupText
	present bool
}

// UnmarshalJSON takes the last spec if the text is the same.
func (g *sharedGroup) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	g.present = true
	if g.spec != nil && bytes.Equal(text, g.text) {
		return nil
	}
	spec := new(Group)
	if err := json.Unmarshal(text, spec); err != nil {
		return err
	}
	g.groupText = groupText{text: bytes.Clone(text), spec: spec}
	return nil
}
