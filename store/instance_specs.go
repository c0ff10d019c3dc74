package store

import "encoding/json"

// ProviderNone is the provider of machines that people set up by hand (PROV-9).
const ProviderNone = "none"

// InstanceSpecs reads the records of many instances. Nearly all of a group are made from the same
// spec, which is most of a record: it is read once, and held once in memory. A caller must not
// change what the spec of a record refers to. The zero value is ready. It is not safe for
// concurrent use.
type InstanceSpecs struct {
	// By their JSON: those read in this generation and in the one before. A long-lived process sees
	// many templates, and forgets what it did not read for a generation.
	known, older map[string]InstanceSpec
	read         int // in this generation
}

const (
	// maxSpecs bounds a generation.
	maxSpecs = 5_000
	// A generation ends after minRead reads and oftenRead more for each of its specs. Instances are
	// read again with each phase, so edits alone end a generation; where many specs are in use, each
	// of them is read in the meantime.
	oftenRead, minRead = 3, 1024
)

// spec returns the spec of this text, if it is known.
func (s *InstanceSpecs) spec(text []byte) (InstanceSpec, bool) {
	if s.read++; s.read > minRead+oftenRead*len(s.known) || len(s.known) >= maxSpecs {
		s.known, s.older, s.read = nil, s.known, 0
	}
	known, ok := s.known[string(text)]
	if ok {
		return known, true
	}
	if known, ok = s.older[string(text)]; ok {
		s.keep(text, known)
	}
	return known, ok
}

func (s *InstanceSpecs) keep(text []byte, spec InstanceSpec) {
	if s.known == nil {
		s.known = map[string]InstanceSpec{}
	}
	s.known[string(text)] = spec
}

// Decode is Decode for an instance's record.
func (s *InstanceSpecs) Decode(kv KV) (Versioned[Instance], error) {
	record := struct {
		Instance
		Spec sharedSpec `json:"spec"` // goes before Instance's
	}{Spec: sharedSpec{from: s}}
	err := decodeInto(kv, &record)
	v := Versioned[Instance]{
		Record: record.Instance, Key: kv.Key, Created: kv.Created, Modified: kv.Modified,
		Lease: kv.Lease,
	}
	v.Record.Spec = record.Spec.InstanceSpec
	return v, err
}

// sharedSpec is a spec that is looked up before it is read.
type sharedSpec struct {
	InstanceSpec
	from *InstanceSpecs
}

// UnmarshalJSON takes the spec that had the same text before, if there was one.
func (s *sharedSpec) UnmarshalJSON(text []byte) error {
	if known, ok := s.from.spec(text); ok {
		s.InstanceSpec = known
		return nil
	}
	if err := json.Unmarshal(text, &s.InstanceSpec); err != nil {
		return err
	}
	s.from.keep(text, s.InstanceSpec)
	return nil
}
