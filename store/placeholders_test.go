package store

import (
	"errors"
	"strings"
	"testing"
)

// placeholderPaths returns the paths at which a group's placeholders cannot be filled.
func placeholderPaths(t *testing.T, g Group) string {
	t.Helper()
	var paths []string
	err := g.Validate()
	if err == nil {
		return ""
	}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var field *FieldError
		if !errors.As(e, &field) {
			t.Fatalf("%v is no error of a field", e)
		}
		paths = append(paths, field.Path)
	}
	return strings.Join(paths, " ")
}

func TestPlaceholdersAreVariablesOrFacts(t *testing.T) {
	valid := func() Group {
		g := DefaultGroup()
		g.Name, g.Provider = "web", "process"
		g.Vars = map[string]string{"greeting": "${not} expanded"}
		return g
	}
	for _, tt := range []struct {
		name string
		edit func(*Group)
		want string
	}{
		{"facts and variables", func(g *Group) {
			g.Workload.Run = []string{"${dir}/web", "--on=${address}:${port}", "${greeting}"}
		}, ""},
		{"a misspelt fact", func(g *Group) { g.Workload.Run = []string{"./web", "a${port}${prt}"} }, "workload.run[1]"},
		{"literal", func(g *Group) { g.Workload.Run = []string{"sh", "-c", "echo $HOME $$ $${prt} $(date)"} }, ""},
		{"no name", func(g *Group) { g.Workload.Run = []string{"${}"} }, "workload.run[0]"},
		{"never closed", func(g *Group) { g.Workload.Run = []string{"./web", "${port"} }, "workload.run[1]"},
		{"another provider's facts are its own", func(g *Group) {
			g.Provider, g.Workload.Run = "moon", []string{"./web", "${crater}"}
		}, ""},
		{"fence and hook", func(g *Group) {
			g.Report.OnLeaseLost = LeaseLost{Do: LeaseLostRun, Run: []string{"./fence", "${a}"}}
			g.Drain.Hook = []string{"./leave", "${b}"}
		}, "report.on_lease_lost.run[1] drain.hook[1]"},
		{
			"every text of a check", func(g *Group) {
				g.Checks = []Check{DefaultCheck(), DefaultCheck(), DefaultCheck(), DefaultCheck(), DefaultCheck()}
				g.Checks[0].HTTP = &HTTPCheck{
					Port: "${a}", Path: "/${b}", Body: "${c}",
					Headers: map[string]string{"X": "${d}"},
				}
				g.Checks[1].TCP = &TCPCheck{Port: "${port}", Host: "${a}"}
				g.Checks[2].GRPC = &GRPCCheck{Port: "1", Service: "${a}"}
				g.Checks[3].Exec = &ExecCheck{Run: []string{"./check", "${a}"}}
				g.Checks[4].Process = &ProcessCheck{PIDFile: "/${a}"}
			},
			"checks[0].http.port checks[0].http.path checks[0].http.headers.X checks[0].http.body checks[1].tcp.host " +
				"checks[2].grpc.service checks[3].exec.run[1] checks[4].process.pid_file",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := valid()
			tt.edit(&g)
			g.Complete()
			if got := placeholderPaths(t, g); got != tt.want {
				t.Errorf("wrong are %q, want %q", got, tt.want)
			}
		})
	}
}

// What is set beside a static group may fill its placeholders. Without it they cannot be filled,
// and it is not in force: SAFE-10.
func TestPlaceholdersOfAStaticGroup(t *testing.T) {
	static := []byte(`{"schema":1,"name":"web","provider":"process","workload":{"run":["./web","${colour}"]}}`)
	if _, err := ReadStatic(static); err != nil {
		t.Errorf("by itself: %v", err)
	}
	if _, err := ReadInForce(static, []byte(`{"schema":1,"name":"web","vars":{"colour":"red"}}`)); err != nil {
		t.Errorf("with its variable: %v", err)
	}
	for _, beside := range []string{"", `{"schema":1,"name":"web","size":2}`} {
		var dynamic []byte
		if beside != "" {
			dynamic = []byte(beside)
		}
		if _, err := ReadInForce(static, dynamic); err == nil || !strings.Contains(err.Error(), "${colour}") {
			t.Errorf("with %q: %v", beside, err)
		}
	}
}
