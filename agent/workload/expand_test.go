package workload

import (
	"slices"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"greeting": "hello", "both": "var", "nested": "${port}"}
	facts := map[string]string{"port": "8080", "both": "fact"}
	for _, c := range []struct {
		name string
		run  []string
		want []string
		err  string // part of it
	}{
		{"nothing to do", []string{"./web", "--port", "$x $"}, []string{"./web", "--port", "$x $"}, ""},
		{"var and fact", []string{"${greeting}:${port}!"}, []string{"hello:8080!"}, ""},
		{"a var hides a fact", []string{"${both}"}, []string{"var"}, ""},
		{"what was put in is not expanded again", []string{"${nested}"}, []string{"${port}"}, ""},
		{
			"escaped",
			[]string{"sh", "-c", "echo $${HOME} ${port} $${port}"},
			[]string{"sh", "-c", "echo ${HOME} 8080 ${port}"},
			"",
		},
		{
			"unknown",
			[]string{"./web", "${prot}"},
			nil,
			`run[1]: ${prot}: there is no var or fact of that name (there are: both, greeting, nested, port)`,
		},
		{"empty name", []string{"${}"}, nil, "run[0]: ${}"},
		{"open", []string{"a${port"}, nil, `run[0]: "${port" has no closing brace`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Expand("run", c.run, vars, facts)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error is %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
