package scenario

import (
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
)

// reading is the state of reading one file.
type reading struct {
	yamlfile.Reader
	applied  yamlfile.Problems // reads group files that events apply
	setting  Setting
	groups   []store.Group // all groups that exist at any time
	known    []string      // their names
	sources  []string      // external metrics that they name
	zones    []string      // zones of the provider
	sections []Section
}

// Section is a mapping of a scenario, with its fields.
type Section struct {
	Path   string
	Fields []Field
}
