package scenario

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// Kind is a kind of event.
type Kind struct {
	Name  string
	Short string // the field that a plain value sets; "" if none
	Doc   string
	read  reader
}

// A reader reads the fields of an event: its text, how long it lasts, and what it does. Play
// returns a detail for people.
type reader func(*fields) (what text, lasts time.Duration, play func(*stage) string)

// Kinds returns all kinds of events: failures of machines, zones, providers, coordinators and etcd,
// and what operators do.
func Kinds() []Kind {
	return slices.Concat(machineKinds(), providerKinds(), coordinatorKinds(), groupKinds(), loadKinds(), orderKinds())
}

// KindNames returns their names.
func KindNames() []string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func kindOf(name string) *Kind {
	for _, k := range Kinds() {
		if k.Name == name {
			return &k
		}
	}
	return nil
}

// Fields returns the fields of an event of the kind.
func (k Kind) Fields() []Field {
	r := &reading{setting: Setting{File: nothingToRead}, known: []string{"web"}}
	f := r.mapping("", &yaml.Node{Kind: yaml.MappingNode}, "")
	k.read(f)
	return f.asked
}

// Sections returns the mappings of a scenario, except its events.
func Sections() []Section {
	r := &reading{setting: Setting{File: nothingToRead}}
	r.scenario(&yaml.Node{Kind: yaml.MappingNode})
	last := len(r.sections) - 1 // the file is checked together with its parts
	return slices.Concat(r.sections[last:], r.sections[:last])
}
