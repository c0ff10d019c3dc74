package groupfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
	"go.yaml.in/yaml/v4"
)

// walk goes through one document along the table of fields.
type walk struct {
	*yamlfile.Reader
	at map[string]*yaml.Node // position of each field's value
}

// setByCommand are fields of the record that no file can set, and the command that does.
var setByCommand = map[string]string{
	"paused":    "not set in a file: use leasehold group pause or resume",
	"deleting":  "not set in a file: use leasehold group delete",
	"stopped":   "not set in a file: use leasehold group stop or start",
	"unstarted": "not set in a file: use leasehold group apply --no-start, then group start",
	"relaunch":  "not set in a file: use leasehold group restart",

	"scale_hold": "not set in a file: use leasehold group scale",
	"source":     "not set in a file: use leasehold apply --source",
}

// mapping reads a mapping of fields and returns them for JSON.
func (w *walk) mapping(path string, node *yaml.Node) map[string]any {
	if node.Kind != yaml.MappingNode {
		what := "must be fields like name: web"
		if path != "" {
			what = "must have fields: " + strings.Join(children(path), ", ")
		}
		w.mismatch(node, path, what)
		return nil
	}
	out := map[string]any{}
	w.Fields(path, node, func(key, value *yaml.Node) {
		full := yamlfile.Join(path, key.Value)
		w.at[full] = value
		if v, ok := w.field(full, key, value); ok {
			out[key.Value] = v
		}
	})
	return out
}

// field reads the value of one field, or reports why it cannot. For a value that is effectively
// absent (an empty mapping or list), ok is false without a problem.
func (w *walk) field(path string, key, value *yaml.Node) (any, bool) {
	if path == "schema" {
		return w.schema(value)
	}
	if what := setByCommand[path]; what != "" {
		w.Wrong(key, path, "%s", what)
		return nil, false
	}
	if slices.Contains(store.Planned, path) {
		w.Wrong(key, path, "is not supported by this version")
		return nil, false
	}
	if strings.ContainsAny(key.Value, ".[]") { // a path in the table, not a name
		w.Wrong(key, path, "unknown field")
		return nil, false
	}
	empty := value.Kind == yaml.ScalarNode && value.Tag == "!!null"
	if i := slices.IndexFunc(store.Fields, func(f store.Field) bool { return f.Path == inTable(path) }); i >= 0 {
		f := store.Fields[i]
		f.Path = path
		return w.leaf(f, value, empty)
	}
	if len(children(path)) > 0 {
		if empty {
			return nil, false
		}
		return w.mapping(path, value), true
	}
	if !w.Problems.Full() {
		w.Wrong(key, path, "unknown field%s", suggestion(path))
	}
	return nil, false
}

func (w *walk) schema(value *yaml.Node) (any, bool) {
	n, err := strconv.Atoi(value.Value)
	if err != nil || n < 1 || n > store.Schema {
		w.Wrong(value, "schema", "%s: must be %d: this program knows no other", yamlfile.Shown(value), store.Schema)
		return nil, false
	}
	return n, true
}

// leaf reads a value of the field's type.
func (w *walk) leaf(f store.Field, value *yaml.Node, empty bool) (any, bool) {
	switch f.Type {
	case "map of strings":
		if empty {
			return nil, false
		}
		return w.stringMap(f, value)
	case "nested values":
		if empty {
			return nil, false
		}
		if value.Kind != yaml.MappingNode {
			w.mismatch(value, f.Path, "must be names and values: "+f.Allowed)
			return nil, false
		}
		return w.Value(f.Path, value), true
	case "list of strings", "list of status codes":
		if empty {
			return nil, false
		}
		return w.stringList(f, value)
	case "word or command":
		if value.Kind == yaml.MappingNode {
			return w.command(f, value)
		}
		return w.text(f.Path, value)
	case "list of checks", "list of load balancers", "list of files", "list of windows", "list of targets",
		"list of changes", "list of analyses", "list of drills":
		if empty {
			return nil, false
		}
		return w.items(f, value)
	default:
		return w.scalar(f, value)
	}
}

// scalar reads the value of a field that has one value.
func (w *walk) scalar(f store.Field, value *yaml.Node) (any, bool) {
	switch f.Type {
	case "port":
		if value.Kind != yaml.ScalarNode || value.Tag != "!!int" && value.Tag != "!!str" {
			w.mismatch(value, f.Path, "must be "+f.Allowed)
			return nil, false
		}
		return value.Value, true // the table knows which numbers are ports
	case "integer":
		if value.Kind != yaml.ScalarNode || value.Tag != "!!int" {
			w.mismatch(value, f.Path, "must be a whole number, "+f.Allowed)
			return nil, false
		}
		if !yamlfile.InPlainDigits(value.Value) {
			w.mismatch(value, f.Path, "must be "+f.Allowed+", in plain digits")
			return nil, false
		}
		return json.Number(strings.TrimPrefix(value.Value, "+")), true
	case "number":
		if value.Kind != yaml.ScalarNode || value.Tag != "!!int" && value.Tag != "!!float" ||
			!plainNumber.MatchString(value.Value) {
			w.mismatch(value, f.Path, "must be a number, "+f.Allowed+", in plain digits")
			return nil, false
		}
		return json.Number(value.Value), true
	case "integer or percentage":
		var a store.Amount
		written := value.Tag == "!!int" && yamlfile.InPlainDigits(value.Value) || value.Tag == "!!str" &&
			strings.HasSuffix(value.Value, "%")
		if value.Kind != yaml.ScalarNode || !written || a.UnmarshalText([]byte(value.Value)) != nil {
			w.mismatch(value, f.Path, "must be a whole number or a percentage like 25%, "+f.Allowed)
			return nil, false
		}
		return a, true
	case "duration":
		var d store.Duration
		zero := value.Tag == "!!int" && value.Value == "0"
		if value.Kind != yaml.ScalarNode || value.Tag != "!!str" && !zero ||
			d.UnmarshalText([]byte(value.Value)) != nil {
			w.mismatch(value, f.Path, "must be a duration like 5s, 1m30s or 2h, "+f.Allowed)
			return nil, false
		}
		return d, true
	case "boolean":
		if value.Kind != yaml.ScalarNode || value.Tag != "!!bool" {
			w.mismatch(value, f.Path, "must be "+f.Allowed)
			return nil, false
		}
		return strings.EqualFold(value.Value, "true"), true
	default:
		return w.text(f.Path, value)
	}
}

// command reads {run: [...]}.
func (w *walk) command(f store.Field, value *yaml.Node) (any, bool) {
	if len(value.Content) != 2 || value.Content[0].Value != "run" {
		w.Wrong(value, f.Path, "must be %s", f.Allowed)
		return nil, false
	}
	run, ok := w.stringList(store.Field{Path: yamlfile.Join(f.Path, "run"), Allowed: "a program and its arguments"},
		value.Content[1])
	return map[string]any{"run": run}, ok
}

// text reads a string, and rejects what only looks like one: YAML reads an unquoted port as a
// number, and converts 010 and yes.
func (w *walk) text(path string, value *yaml.Node) (string, bool) {
	switch {
	case !w.NoAlias(path, value):
	case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
		w.mismatch(value, path, "must be text")
	case value.Tag != "!!str":
		w.mismatch(value, path, "must be text: write "+strconv.Quote(value.Value))
	default:
		return value.Value, true
	}
	return "", false
}

// plainNumber matches a number as JSON writes it, without an exponent.
var plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})(\.[0-9]{1,9})?$`)

func (w *walk) stringList(f store.Field, value *yaml.Node) (any, bool) {
	if value.Kind != yaml.SequenceNode {
		w.mismatch(value, f.Path, "must be a list: "+f.Allowed)
		return nil, false
	}
	list := []string{}
	for i, item := range value.Content {
		w.at[fmt.Sprintf("%s[%d]", f.Path, i)] = item
		if f.Type == "list of status codes" && item.Kind == yaml.ScalarNode && item.Tag == "!!int" {
			list = append(list, item.Value)
			continue
		}
		if s, ok := w.text(fmt.Sprintf("%s[%d]", f.Path, i), item); ok {
			list = append(list, s)
		}
	}
	return list, true
}

// items reads a list whose items have fields of their own.
func (w *walk) items(f store.Field, value *yaml.Node) (any, bool) {
	if value.Kind != yaml.SequenceNode {
		w.mismatch(value, f.Path, "must be a list: "+f.Allowed)
		return nil, false
	}
	list := []any{}
	for i, item := range value.Content {
		path := fmt.Sprintf("%s[%d]", f.Path, i)
		if !w.NoAlias(path, item) {
			continue
		}
		w.at[path] = item
		if fields := w.mapping(path, item); fields != nil {
			list = append(list, fields)
		} else {
			list = append(list, map[string]any{}) // the other items keep their numbers
		}
	}
	return list, true
}

func (w *walk) stringMap(f store.Field, value *yaml.Node) (any, bool) {
	if value.Kind != yaml.MappingNode {
		w.mismatch(value, f.Path, "must be names and values: "+f.Allowed)
		return nil, false
	}
	out := map[string]string{}
	w.Fields(f.Path, value, func(key, value *yaml.Node) {
		path := yamlfile.Join(f.Path, key.Value)
		w.at[path] = value
		if s, ok := w.text(path, value); ok {
			out[key.Value] = s
		}
	})
	return out, true
}

func (w *walk) mismatch(node *yaml.Node, path, want string) {
	w.Wrong(node, path, "%s: %s", yamlfile.Shown(node), want)
}

var itemNumber = regexp.MustCompile(`\[[0-9]+\]`)

// inTable returns the table's path of a field: without the indexes of items.
func inTable(path string) string { return itemNumber.ReplaceAllString(path, "[]") }

// children returns the names right below a path, in the table's order.
func children(path string) []string {
	var names []string
	for _, f := range store.Fields {
		rest := f.Path
		if path != "" {
			var below bool
			if rest, below = strings.CutPrefix(f.Path, inTable(path)+"."); !below {
				continue
			}
		}
		if name, _, _ := strings.Cut(rest, "."); !slices.Contains(names, name) && !strings.HasSuffix(name, "[]") {
			names = append(names, name)
		}
	}
	return names
}

// here returns the path of a table's field relative to a path: with the same item of a list if both
// are in it.
func here(path, inTable string) string {
	if at := itemNumber.FindStringIndex(path); at != nil && strings.HasPrefix(inTable, path[:at[0]]+"[]") {
		return path[:at[1]] + inTable[at[0]+len("[]"):]
	}
	return inTable
}

// suggestion returns the field that was probably meant: one with a similar name at the same place,
// or one whose last part is the same or similar elsewhere; "" if there is none.
func suggestion(path string) string {
	parent, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	var search suggest.Search
	for _, child := range children(parent) {
		search.Consider(name, child, yamlfile.Join(parent, child), 1)
	}
	for _, f := range store.Fields {
		last := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		weight := 0.95
		as := here(path, f.Path)
		if as != f.Path {
			weight = 0.97 // the same item is preferred
		}
		search.Consider(name, last, as, weight)
	}
	if best := search.Best(); best != "" {
		return ": did you mean " + best + "?"
	}
	return ""
}
