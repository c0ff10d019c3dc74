package groupfile

import (
	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
	"go.yaml.in/yaml/v4"
)

// Setting is a setting of the shard in a file.
type Setting struct {
	Name  string
	Value string // as written; "default" is its default

	file       string
	key, value *yaml.Node
}

// Problem describes what is wrong with the setting, at its place in the file.
func (s Setting) Problem(e *store.FieldError) yamlfile.Problem {
	p := yamlfile.Problem{File: s.file, Field: "settings." + e.Path, Line: s.value.Line, Column: s.value.Column}
	switch near := suggest.Nearest(e.Name, e.Known); {
	case near != "":
		p.What, p.Line, p.Column = "unknown setting: did you mean "+near+"?", s.key.Line, s.key.Column
	case len(e.Known) > 0:
		p.What, p.Line, p.Column = "unknown setting: must be "+e.Allowed, s.key.Line, s.key.Column
	default:
		p.What = e.Value + ": must be " + e.Allowed
		if e.Rule != "" {
			p.What += " (" + e.Rule + ")"
		}
	}
	return p
}

// hasSettings reports whether a document is about settings of the shard instead of a group.
func hasSettings(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return false
	}
	settings := false
	for i := 0; i+1 < len(root.Content); i += 2 {
		switch root.Content[i].Value {
		case "settings":
			settings = true
		case "name":
			return false
		}
	}
	return settings
}

// readSettings reads a document of settings. Package store defines which settings exist.
func (f *File) readSettings(root *yaml.Node) {
	r := &f.Reader
	r.Fields("", root, func(key, value *yaml.Node) {
		switch {
		case key.Value != "settings":
			r.Wrong(key, key.Value, "unknown field: a document with settings has nothing else")
		case yamlfile.IsNothing(value):
		case value.Kind != yaml.MappingNode:
			r.Wrong(value, "settings", "%s: must have fields like provider_poll: 10s", yamlfile.Shown(value))
		default:
			r.Fields("settings", value, func(key, value *yaml.Node) {
				if value.Kind != yaml.ScalarNode || yamlfile.IsNothing(value) {
					r.Wrong(value, "settings."+key.Value, "%s: must be a value", yamlfile.Shown(value))
					return
				}
				f.Settings = append(f.Settings, Setting{
					Name: key.Value, Value: value.Value, file: r.File, key: key, value: value,
				})
			})
		}
	})
}
