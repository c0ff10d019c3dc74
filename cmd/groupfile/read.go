package groupfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
	"go.yaml.in/yaml/v4"
)

// MaxGroups is the largest number of groups in one file.
const MaxGroups = 50

// File is a parsed file, not yet validated.
type File struct {
	yamlfile.Reader
	documents []document
	// Settings of the shard, if the file was read by ParseWithSettings.
	Settings []Setting
}

// document is one document of a file.
type document struct {
	walk   *walk
	root   *yaml.Node
	name   string // "" if it has none
	fields map[string]any
	unread map[string]bool // has a problem already, so the record's default does not count
}

// Entry is the result of one document of a file.
type Entry struct {
	Group    store.Group     // the resulting spec
	Override *store.Override // what is set for a static group (REC-6); nil: the file holds the whole group

	walk *walk
}

// Problem returns a problem with a field of the group, at its position in the file.
func (e Entry) Problem(field, what string) yamlfile.Problem {
	p := yamlfile.Problem{File: e.walk.File, Field: field, What: what}
	node := e.walk.at[field]
	if node == nil {
		node = e.walk.nearest(field)
	}
	if node != nil {
		p.Line, p.Column = node.Line, node.Column
	}
	return p
}

// Read reads the groups in a file, one in each YAML document, each as a whole. The name is for
// messages only. If the file is invalid the error is yamlfile.Problems.
func Read(name string, from io.Reader) ([]store.Group, error) {
	f, err := Parse(name, from)
	if err != nil {
		return nil, err
	}
	entries, err := f.Judge(nil)
	var groups []store.Group
	for _, e := range entries {
		groups = append(groups, e.Group)
	}
	return groups, err
}

// Parse parses a file. Judge returns what is wrong in it; the error is that it could not be read.
func Parse(name string, from io.Reader) (*File, error) { return parse(name, from, false) }

// ParseWithSettings is Parse for a file that may also have documents with settings of the shard.
func ParseWithSettings(name string, from io.Reader) (*File, error) { return parse(name, from, true) }

func parse(name string, from io.Reader, withSettings bool) (*File, error) {
	f := &File{Reader: yamlfile.Reader{File: name}}
	r := &f.Reader
	roots, err := r.Documents(from, MaxGroups, fmt.Sprintf("more than %d groups in one file", MaxGroups))
	if err != nil {
		return nil, err
	}
	where := map[string]*yaml.Node{}
	for _, root := range roots {
		if withSettings && hasSettings(root) {
			f.readSettings(root)
			continue
		}
		d, ok := readDocument(r, root)
		if !ok {
			continue
		}
		if first := where[d.name]; first != nil && d.name != "" {
			r.Wrong(root, "name", "group %q is in this file twice (first at line %d)", d.name, first.Line)
			continue
		}
		where[d.name] = root
		f.documents = append(f.documents, d)
	}
	if len(r.Problems) == 0 && len(f.documents) == 0 && len(f.Settings) == 0 {
		r.Wrong(nil, "", "there is no group in the file")
	}
	return f, nil
}

// Malformed reports whether the file is invalid whatever its groups are.
func (f *File) Malformed() bool { return len(f.Problems) > 0 }

// Judge validates the file. For a group in the map of static groups, a document may only set what
// can be set for a static group. The error lists everything that is wrong in the file, as
// yamlfile.Problems.
func (f *File) Judge(static map[string]store.Group) ([]Entry, error) {
	var entries []Entry
	for _, d := range f.documents {
		if g, ok := static[d.name]; ok {
			e := d.override(g)
			e.walk = d.walk
			entries = append(entries, e)
			continue
		}
		entries = append(entries, Entry{Group: d.group(), walk: d.walk})
	}
	if len(f.Problems) > 0 {
		return nil, f.Problems.Sorted()
	}
	return entries, nil
}

// readDocument reads the fields of one document.
func readDocument(r *yamlfile.Reader, root *yaml.Node) (document, bool) {
	before := len(r.Problems)
	d := document{walk: &walk{Reader: r, at: map[string]*yaml.Node{"": root}}, root: root, unread: map[string]bool{}}
	r.Places = d.walk.at
	if d.fields = d.walk.mapping("", root); d.fields == nil {
		return d, false
	}
	for _, p := range r.Problems[before:] {
		d.unread[p.Field] = true
	}
	d.name, _ = d.fields["name"].(string)
	return d, true
}

// group converts the document to a group.
func (d document) group() store.Group {
	raw, err := json.Marshal(d.fields)
	if err != nil {
		d.walk.Wrong(d.root, "", "%s", err)
		return store.Group{}
	}
	g, err := store.ReadGroup(raw)
	if err != nil {
		d.walk.refused(d.root, err, d.unread)
	}
	return g
}

// refused reports the results of validation, each at its position in the file. If fields could not
// be read, only fields that are in the file are reported: what seems to be missing may be misspelt.
func (w *walk) refused(root *yaml.Node, err error, unread map[string]bool) {
	var found []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		found = joined.Unwrap()
	} else {
		found = []error{err}
	}
	for _, err := range found {
		var field *store.FieldError
		if !errors.As(err, &field) {
			w.Wrong(root, "", "%s", err)
			continue
		}
		if unread[field.Path] || len(unread) > 0 && (w.at[field.Path] == nil || anyBelow(unread, field.Path)) {
			continue
		}
		rule := ""
		if field.Rule != "" {
			rule = " (" + field.Rule + ")"
		}
		if near := suggest.Nearest(field.Name, field.Known); near != "" {
			rule += ": did you mean ${" + near + "}?"
		}
		if node := w.at[field.Path]; node != nil {
			node = w.Within(node, field.Line, field.Column)
			w.Wrong(node, field.Path, "%s: must be %s%s", field.Value, field.Allowed, rule)
			continue
		}
		what := "missing: must be " + field.Allowed
		if field.Value != `""` {
			what = fmt.Sprintf("%s, which is its default here: must be %s", field.Value, field.Allowed)
		}
		w.Wrong(w.nearest(field.Path), field.Path, "%s%s", what, rule)
	}
}

// anyBelow reports whether one of the fields is below another.
func anyBelow(fields map[string]bool, path string) bool {
	for f := range fields {
		if strings.HasPrefix(f, path+".") || strings.HasPrefix(f, path+"[") {
			return true
		}
	}
	return false
}

// nearest returns the position nearest to a field that is not in the file.
func (w *walk) nearest(path string) *yaml.Node {
	for {
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return w.at[""]
		}
		path = path[:i]
		if n := w.at[path]; n != nil {
			return n
		}
	}
}
