package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/provider/fake"
	"go.yaml.in/yaml/v4"
)

// fields is one mapping of a file. The caller that reads a field says what is allowed; a field that
// no caller has read is an error.
type fields struct {
	*reading
	path  string
	node  *yaml.Node
	keys  map[string]*yaml.Node
	value map[string]*yaml.Node
	asked []Field
}

// Field is a field that a mapping may have.
type Field struct {
	Name, Default, Allowed, Doc string
	Choice                      bool // one of a few words
}

// longest is the maximum of any duration.
const longest = 30 * 24 * time.Hour

// mapping enters a mapping. A scalar sets the field short, if there is one; no value means no
// fields.
func (r *reading) mapping(path string, node *yaml.Node, short string) *fields {
	f := &fields{reading: r, path: path, node: node, keys: map[string]*yaml.Node{}, value: map[string]*yaml.Node{}}
	switch {
	case yamlfile.IsNothing(node):
	case node.Kind == yaml.ScalarNode && short != "":
		f.keys[short], f.value[short] = node, node
	case node.Kind != yaml.MappingNode:
		r.Wrong(node, path, "%s: must have fields, like name: value", yamlfile.Shown(node))
	default:
		f.read()
	}
	return f
}

func (f *fields) read() {
	f.Fields(f.path, f.node, func(key, value *yaml.Node) { f.keys[key.Value], f.value[key.Value] = key, value })
}

// done reports the fields that no caller has read.
func (f *fields) done() {
	f.sections = append(f.sections, Section{f.path, f.asked})
	if f.node == nil || f.node.Kind != yaml.MappingNode {
		return
	}
	var known []string
	for _, a := range f.asked {
		known = append(known, a.Name)
	}
	for i := 0; i+1 < len(f.node.Content); i += 2 {
		key := f.node.Content[i]
		if f.keys[key.Value] != key || slices.Contains(known, key.Value) {
			continue
		}
		what := "unknown field" + suggest.DidYouMean(key.Value, known)
		if len(known) == 0 {
			what = "unknown field: no fields are allowed here"
		} else if what == "unknown field" {
			what += ": known fields here are " + strings.Join(known, ", ")
		}
		f.Wrong(key, yamlfile.Join(f.path, key.Value), "%s", what)
	}
}

// ask registers that a field is allowed, and returns it; nil if it is absent.
func (f *fields) ask(name, def, allowed, doc string) *yaml.Node {
	f.asked = append(f.asked, Field{Name: name, Default: def, Allowed: allowed, Doc: doc})
	if n := f.value[name]; !yamlfile.IsNothing(n) {
		return n
	}
	return nil
}

// has reports whether a field is present.
func (f *fields) has(name string) bool { return !yamlfile.IsNothing(f.value[name]) }

func (f *fields) refuse(name string, n *yaml.Node, allowed string) {
	f.Wrong(n, yamlfile.Join(f.path, name), "%s: must be %s", yamlfile.Shown(n), allowed)
}

// missing reports a required field that is absent.
func (f *fields) missing(name, allowed string) {
	f.Wrong(f.node, yamlfile.Join(f.path, name), "missing: must be %s", allowed)
}

func (f *fields) text(name, allowed, doc string) string {
	n := f.ask(name, "", allowed, doc)
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "":
		f.refuse(name, n, allowed)
		return ""
	default:
		return n.Value
	}
}

func (f *fields) choice(name, def, doc string, choices ...string) string {
	allowed := strings.Join(choices[:len(choices)-1], ", ") + " or " + choices[len(choices)-1]
	n := f.ask(name, def, allowed, doc)
	f.asked[len(f.asked)-1].Choice = true
	if n == nil {
		return def
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(choices, n.Value) {
		f.Wrong(n, yamlfile.Join(f.path, name), "%s: must be %s%s", yamlfile.Shown(n), allowed,
			suggest.DidYouMean(n.Value, choices))
		return def
	}
	return n.Value
}

func (f *fields) flag(name, doc string) bool { return f.flagOr(name, false, doc) }

func (f *fields) flagOr(name string, def bool, doc string) bool {
	n := f.ask(name, fmt.Sprint(def), "true or false", doc)
	if n == nil {
		return def
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		f.refuse(name, n, "true or false")
		return def
	}
	return strings.EqualFold(n.Value, "true")
}

func (f *fields) number(name string, def, low, high int, doc string) int {
	allowed := fmt.Sprintf("a whole number, %d to %d", low, high)
	n := f.ask(name, fmt.Sprint(def), allowed, doc)
	if n == nil {
		return def
	}
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil || v < low || v > high {
		f.refuse(name, n, allowed)
		return def
	}
	return v
}

func (f *fields) percent(name, def, doc string) int {
	const allowed = "0% to 100%"
	n := f.ask(name, def, allowed, doc)
	if n == nil {
		return 0
	}
	v, err := strconv.Atoi(strings.TrimSuffix(n.Value, "%"))
	if n.Kind != yaml.ScalarNode || err != nil || v < 0 || v > 100 {
		f.refuse(name, n, allowed)
		return 0
	}
	return v
}

const lengths = "a length of time like 90s, 10m or 1h30m"

func (f *fields) length(name, def string, low, high time.Duration, doc string) time.Duration {
	allowed := fmt.Sprintf("%s, %s to %s", lengths, words(low), words(high))
	n := f.ask(name, def, allowed, doc)
	usual, _ := time.ParseDuration(def) // 0 if the default is described in words
	if n == nil {
		return usual
	}
	d, ok := lengthOf(n)
	if !ok || d < low || d > high {
		f.refuse(name, n, allowed)
		return usual
	}
	return d
}

func lengthOf(n *yaml.Node) (time.Duration, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Value != "0" {
		return 0, false
	}
	d, err := time.ParseDuration(n.Value)
	return d, err == nil
}

// span is a range of durations: 20s..40s, or 30s for a fixed one.
func (f *fields) span(name, def, doc string, high time.Duration) fake.Range {
	allowed := "a length of time, or two with .. between: 30s or 20s..40s, at most " + words(high)
	n := f.ask(name, def, allowed, doc)
	if n == nil {
		return fake.Range{}
	}
	from, to, two := strings.Cut(n.Value, "..")
	if !two {
		to = from
	}
	a, err1 := time.ParseDuration(strings.TrimSpace(from))
	b, err2 := time.ParseDuration(strings.TrimSpace(to))
	if n.Kind != yaml.ScalarNode || err1 != nil || err2 != nil || a <= 0 || b < a || b > high {
		f.refuse(name, n, allowed)
		return fake.Range{}
	}
	return fake.Range{From: a, To: b}
}

// words formats a duration without empty parts: 10m, not 10m0s.
func words(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
