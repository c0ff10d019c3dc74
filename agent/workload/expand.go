package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Expand replaces ${name} in every argument by what vars, else facts, have under that name. "$${" stands
// for a literal "${". The command is called what in errors. A name that neither has is an error: starting with a hole would fail later and say less.
func Expand(what string, run []string, vars, facts map[string]string) ([]string, error) {
	out := make([]string, len(run))
	for i, arg := range run {
		var b strings.Builder
		for {
			at := strings.Index(arg, "${")
			if at < 0 {
				b.WriteString(arg)
				break
			}
			if at > 0 && arg[at-1] == '$' {
				b.WriteString(arg[:at-1] + "${")
				arg = arg[at+2:]
				continue
			}
			name, rest, closed := strings.Cut(arg[at+2:], "}")
			if !closed {
				return nil, fmt.Errorf("expand %s[%d]: %q has no closing brace", what, i, arg[at:])
			}
			value, ok := vars[name]
			if !ok {
				value, ok = facts[name]
			}
			if !ok {
				return nil, fmt.Errorf("expand %s[%d]: ${%s}: there is no var or fact of that name (there are: %s); "+
					"to pass it on as it stands, write $${%s}", what, i, name, names(vars, facts), name)
			}
			b.WriteString(arg[:at] + value)
			arg = rest
		}
		out[i] = b.String()
	}
	return out, nil
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
