package store

import "encoding/json"

// ProviderNone is the provider of machines that people set up by hand (PROV-9).
const ProviderNone = "none"

// InstanceSpecs reads the records of many instances. Nearly all of a group are made from the same
// spec, which is most of a record: it is read once, and held once in memory. Who is given a record
// changes nothing that its spec refers to. The zero value is ready. It is not safe for concurrent
// use.
type InstanceSpecs struct {
	known map[string]InstanceSpec // by their JSON
}

// mostSpecs bounds the cached specs: a long-lived process sees many templates.
const mostSpecs = 10_000

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
	if known, ok := s.from.known[string(text)]; ok {
		s.InstanceSpec = known
		return nil
	}
	if err := json.Unmarshal(text, &s.InstanceSpec); err != nil {
		return err
	}
	if s.from.known == nil || len(s.from.known) >= mostSpecs {
		s.from.known = map[string]InstanceSpec{}
	}
	s.from.known[string(text)] = s.InstanceSpec
	return nil
}
