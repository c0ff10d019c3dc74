package groupdiff

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/store"
)

// Change is one field that differs. Old or New is "" if the field is absent there.
type Change struct {
	Path     string
	Old, New string
}

// Sign is + for a new field, - for a removed one, ~ for a changed one.
func (c Change) Sign() string {
	switch {
	case c.Old == "":
		return "+"
	case c.New == "":
		return "-"
	default:
		return "~"
	}
}

func (c Change) String() string {
	switch c.Sign() {
	case "+":
		return shortened(c.New)
	case "-":
		return shortened(c.Old)
	default:
		return shortened(c.Old) + " -> " + shortened(c.New)
	}
}

// shortened shortens what would not fit a few lines, such as the text of a file. The hash tells two
// of them apart.
func shortened(value string) string {
	const most = 200
	if len(value) <= most {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return fmt.Sprintf("%s (%d bytes, sha256 %x)", clip.Marked(value, most/2), len(value), sum[:4])
}

// Paths lists the fields that are set in a group.
func Paths(g store.Group) []string {
	var paths []string
	for _, c := range Between(nil, g) {
		paths = append(paths, c.Path)
	}
	return paths
}

// Between lists the fields in which b differs from a. If a is nil, everything that is set in b is
// new.
func Between(a *store.Group, b store.Group) []Change {
	before := map[string]string{}
	if a != nil {
		before = flat(*a)
	}
	after := flat(b)
	paths := map[string]bool{}
	for p := range before {
		paths[p] = true
	}
	for p := range after {
		paths[p] = true
	}
	var changes []Change
	for p := range paths {
		if before[p] != after[p] {
			changes = append(changes, Change{Path: p, Old: before[p], New: after[p]})
		}
	}
	slices.SortFunc(changes, func(x, y Change) int {
		if d := rank(x.Path) - rank(y.Path); d != 0 {
			return d
		}
		if d := len(x.Path) - len(y.Path); d != 0 {
			return d
		}
		return strings.Compare(x.Path, y.Path)
	})
	return changes
}

// rank is the position of a field in the table; unknown fields come last.
func rank(path string) int {
	for i, f := range store.Fields {
		if path == f.Path || strings.HasPrefix(path, f.Path+".") || strings.HasPrefix(path, f.Path+"[") {
			return i
		}
	}
	return len(store.Fields)
}

// flat returns the spec as paths and values, formatted for people.
func flat(g store.Group) map[string]string {
	dec := json.NewDecoder(bytes.NewReader(store.Encode(g)))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil {
		panic(fmt.Sprintf("read back group %s: %v", g.Name, err)) // Encode has just produced it
	}
	delete(tree, "schema")
	out := map[string]string{}
	flatten(out, "", tree)
	return out
}

func flatten(out map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			p := name
			if path != "" {
				p = path + "." + name
			}
			flatten(out, p, below)
		}
	case []any:
		for i, item := range v {
			flatten(out, fmt.Sprintf("%s[%d]", path, i), item)
		}
	case string:
		if new(store.Duration).UnmarshalText([]byte(v)) == nil {
			out[path] = v
			return
		}
		out[path] = fmt.Sprintf("%q", v)
	default:
		out[path] = fmt.Sprint(v)
	}
}
