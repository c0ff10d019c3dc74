package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Expand replaces ${name} in every argument by the value in vars, or else in facts. "$${" is a
// literal "${". what names the command in errors. A name that neither has is an error, because a
// command with a hole would fail later and say less.
func Expand(what string, run []string, vars, facts map[string]string) ([]string, error) {
	out := make([]string, len(run))
	for i, arg := range run {
		var err error
		if out[i], err = ExpandText(fmt.Sprintf("%s[%d]", what, i), arg, vars, facts); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ExpandText is Expand for one text, which errors name as what.
func ExpandText(what, text string, vars, facts map[string]string) (string, error) {
	var b strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if at > 0 && text[at-1] == '$' {
			b.WriteString(text[:at-1] + "${")
			text = text[at+2:]
			continue
		}
		name, rest, closed := strings.Cut(text[at+2:], "}")
		if !closed {
			return "", fmt.Errorf("expand %s: %q has no closing brace", what, text[at:])
		}
		value, ok := vars[name]
		if !ok {
			value, ok = facts[name]
		}
		if !ok {
			return "", fmt.Errorf("expand %s: ${%s}: there is no var or fact of that name (there are: %s); "+
				"to pass it on literally, write $${%s}", what, name, names(vars, facts), name)
		}
		b.WriteString(text[:at] + value)
		text = rest
	}
}

func names(vars, facts map[string]string) string {
	all := slices.Sorted(maps.Keys(vars))
	all = slices.AppendSeq(all, maps.Keys(facts))
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
