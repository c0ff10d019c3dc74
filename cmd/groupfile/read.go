package groupfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/leasehold/leasehold/store"
	"go.yaml.in/yaml/v4"
)

// The bounds of a file.
const (
	MaxBytes  = 1 << 20
	MaxGroups = 50
)

// Read reads the groups in a file, one in each YAML document. The name is for messages only. If anything is wrong the
// error is Problems, unless reading itself failed.
func Read(name string, from io.Reader) ([]store.Group, error) {
	text, err := io.ReadAll(io.LimitReader(from, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	r := &reading{file: name}
	if len(text) > MaxBytes {
		r.wrong(nil, "", "the file is larger than %d KiB", MaxBytes>>10)
		return nil, r.problems
	}
	documents := r.documents(text)
	var groups []store.Group
	where := map[string]*yaml.Node{}
	for _, doc := range documents {
		g, ok := r.group(doc)
		if !ok {
			continue
		}
		if first := where[g.Name]; first != nil {
			r.wrong(doc, "name", "group %q is in this file twice (first at line %d)", g.Name, first.Line)
			continue
		}
		where[g.Name] = doc
		groups = append(groups, g)
	}
	if len(r.problems) == 0 && len(groups) == 0 {
		r.wrong(nil, "", "there is no group in the file")
	}
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return groups, nil
}

// documents parses the file into one node for each document that is not empty.
func (r *reading) documents(text []byte) []*yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		r.wrong(nil, "", "%s", err)
		return nil
	}
	var roots []*yaml.Node
	for {
		var doc yaml.Node
		err := loader.Load(&doc)
		if errors.Is(err, io.EOF) {
			return roots
		}
		if err != nil {
			r.syntax(err)
			return nil
		}
		root := &doc
		if doc.Kind == yaml.DocumentNode {
			if len(doc.Content) == 0 {
				continue
			}
			root = doc.Content[0]
		}
		if root.Kind == 0 || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
			continue
		}
		if roots = append(roots, root); len(roots) > MaxGroups {
			r.wrong(root, "", "more than %d groups in one file", MaxGroups)
			return nil
		}
	}
}

func (r *reading) syntax(err error) {
	var bad *yaml.LoadError
	if !errors.As(err, &bad) {
		r.wrong(nil, "", "not YAML: %s", err)
		return
	}
	r.wrong(&yaml.Node{Line: bad.Mark.Line, Column: bad.Mark.Column}, "", "not YAML: %s", bad.Message)
}

// group turns one document into a group.
func (r *reading) group(root *yaml.Node) (store.Group, bool) {
	before := len(r.problems)
	w := &walk{reading: r, at: map[string]*yaml.Node{"": root}}
	fields := w.mapping("", root)
	if fields == nil {
		return store.Group{}, false
	}
	unread := map[string]bool{} // what is wrong already: its default in the record says nothing
	for _, p := range r.problems[before:] {
		unread[p.Field] = true
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		r.wrong(root, "", "%s", err)
		return store.Group{}, false
	}
	g, err := store.ReadGroup(raw)
	if err != nil {
		w.refused(root, err, unread)
	}
	return g, len(r.problems) == before
}

// refused reports what validation found, each at the place in the file that it is about. Beside fields that could not be
// read, only what the file does say is judged: what seems to be missing may be what was misspelt.
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
			w.wrong(root, "", "%s", err)
			continue
		}
		if unread[field.Path] || len(unread) > 0 && w.at[field.Path] == nil {
			continue
		}
		rule := ""
		if field.Rule != "" {
			rule = " (" + field.Rule + ")"
		}
		if node := w.at[field.Path]; node != nil {
			w.wrong(node, field.Path, "%s: must be %s%s", field.Value, field.Allowed, rule)
			continue
		}
		what := "missing: must be " + field.Allowed
		if field.Value != `""` {
			what = fmt.Sprintf("%s, which is its default here: must be %s", field.Value, field.Allowed)
		}
		w.wrong(w.nearest(field.Path), field.Path, "%s%s", what, rule)
	}
}

// nearest is the closest place around a field that is not in the file.
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
