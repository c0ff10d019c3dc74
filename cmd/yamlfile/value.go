package yamlfile

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxExact is the largest whole number that JSON represents exactly.
const maxExact = 1 << 53

var plainDigits = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]{0,17})$`)

// InPlainDigits reports whether text is a whole number that every YAML reader parses the same way:
// 010 is 10 to some and 8 to others.
func InPlainDigits(text string) bool { return plainDigits.MatchString(text) }

// Value reads a value of any shape, for callers that do not know its schema, in its JSON form. It
// converts nothing: only plain numbers are numbers.
func (r *Reader) Value(path string, value *yaml.Node) any {
	if !r.NoAlias(path, value) {
		return nil
	}
	if r.Places != nil {
		r.Places[path] = value
	}
	switch value.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		r.Fields(path, value, func(key, value *yaml.Node) { out[key.Value] = r.Value(Join(path, key.Value), value) })
		return out
	case yaml.SequenceNode:
		out := []any{}
		for i, item := range value.Content {
			out = append(out, r.Value(fmt.Sprintf("%s[%d]", path, i), item))
		}
		return out
	default:
	}
	switch value.Tag {
	case "!!str":
		return value.Value
	case "!!bool":
		return strings.EqualFold(value.Value, "true")
	case "!!int":
		if n, err := strconv.ParseInt(value.Value, 10, 64); err == nil && InPlainDigits(value.Value) &&
			-maxExact <= n && n <= maxExact {
			return n
		}
		r.Wrong(value, path, "%s: must be a whole number in plain digits; write anything else as text, in quotes",
			Shown(value))
	case "!!float":
		if f, err := strconv.ParseFloat(value.Value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
		r.Wrong(value, path, "%s: must be a number", Shown(value))
	default:
		r.Wrong(value, path, "%s: must be text, a number, true or false, a list, or names and values", Shown(value))
	}
	return nil
}
