package scenario

import (
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
)

// reading is the state of one reading of one file.
type reading struct {
	yamlfile.Reader
	applied  yamlfile.Problems // of files that events apply
	setting  Setting
	groups   []store.Group // all that there are at any time
	known    []string      // their names
	zones    []string      // of the provider
	sections []Section
}

// Section is a mapping of a scenario, with the fields that it may have.
type Section struct {
	Path   string
	Fields []Field
}
