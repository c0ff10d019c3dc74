package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// Placeholders are looked for in every text that the agent expands, and the rule that a text
// belongs to is told with what is wrong in it.
func TestEveryTextThatTheAgentExpands(t *testing.T) {
	g := DefaultGroup()
	g.Workload.Run = []string{"w"}
	g.Report.OnLeaseLost = LeaseLost{Do: LeaseLostRun, Run: []string{"f"}}
	g.Drain.Hook = []string{"d"}
	g.Checks = []Check{
		{Name: "n", HTTP: &HTTPCheck{
			Scheme: "s", Host: "h", Port: "p", Path: "/", Method: "m", Headers: map[string]string{"B": "b", "A": "a"},
			Body: "y", BodyRegexp: "r", CAFile: "c", ServerName: "v",
		}},
		{Name: "n", TCP: &TCPCheck{Host: "h", Port: "p"}},
		{Name: "n", GRPC: &GRPCCheck{Host: "h", Port: "p", Service: "s", CAFile: "c", ServerName: "v"}},
		{Name: "n", Exec: &ExecCheck{Run: []string{"x", "y"}}},
		{Name: "n", Process: &ProcessCheck{Name: "n", PIDFile: "f"}},
	}
	var got []string
	g.expanded(func(path, text, rule string) { got = append(got, path+"="+text+" "+rule) })
	want := []string{
		"workload.run[0]=w ", "report.on_lease_lost.run[0]=f SAFE-9",
		"checks[0].name=n DET-9", "checks[0].http.scheme=s DET-9", "checks[0].http.host=h DET-9",
		"checks[0].http.port=p DET-9", "checks[0].http.path=/ DET-9", "checks[0].http.method=m DET-9",
		"checks[0].http.headers.A=a DET-9", "checks[0].http.headers.B=b DET-9", "checks[0].http.body=y DET-9",
		"checks[0].http.body_regexp=r DET-9", "checks[0].http.ca_file=c DET-9", "checks[0].http.server_name=v DET-9",
		"checks[1].name=n DET-9", "checks[1].tcp.host=h DET-9", "checks[1].tcp.port=p DET-9",
		"checks[2].name=n DET-9", "checks[2].grpc.host=h DET-9", "checks[2].grpc.port=p DET-9",
		"checks[2].grpc.service=s DET-9", "checks[2].grpc.ca_file=c DET-9", "checks[2].grpc.server_name=v DET-9",
		"checks[3].name=n DET-9", "checks[3].exec.run[0]=x DET-9", "checks[3].exec.run[1]=y DET-9",
		"checks[4].name=n DET-9", "checks[4].process.name=n DET-9", "checks[4].process.pid_file=f DET-9",
		"drain.hook[0]=d DRAIN-1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("expanded are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A placeholder that nothing fills is told with what would fill it, a nearer name first.
func TestWhatIsSaidOfAPlaceholder(t *testing.T) {
	g := DefaultGroup()
	g.Name, g.Provider = "web", "process"
	g.Vars = map[string]string{"port": "1", "zeta": "2"} // port is a fact as well
	g.Drain.Hook = []string{"./leave", "${prt}", "${open"}
	g.Complete()
	var wrong []*FieldError
	for _, e := range g.Validate().(interface{ Unwrap() []error }).Unwrap() {
		var field *FieldError
		if !errors.As(e, &field) {
			t.Fatal(e)
		}
		wrong = append(wrong, field)
	}
	facts, known := MachineFacts("process")
	if !known || len(facts) == 0 {
		t.Fatal("the facts of a process are not known")
	}
	names := slices.Sorted(slices.Values(append(facts, "zeta")))
	if len(wrong) != 2 || wrong[0].Value != "${prt}" || wrong[0].Name != "prt" || wrong[0].Rule != "DRAIN-1" ||
		!slices.Equal(wrong[0].Known, names) || !strings.Contains(wrong[0].Allowed, "("+strings.Join(names, ", ")+")") {
		t.Errorf("%+v", wrong[0])
	}
	if wrong[1].Value != `"${open"` || wrong[1].Rule != "DRAIN-1" || !strings.Contains(wrong[1].Allowed, "closed with }") {
		t.Errorf("%+v", wrong[1])
	}
	clear(facts) // a copy
	if again, _ := MachineFacts("process"); slices.Contains(again, "") {
		t.Errorf("a caller changed the facts: %q", again)
	}
	if facts, known := MachineFacts("moon"); known || facts != nil {
		t.Errorf("the facts of an unknown provider: %q, %t", facts, known)
	}
	for text, want := range map[string]string{
		"${a}${b}": "a b ", "$${a}${b}": "b ", "x$${": "", "${a": "${a", "${a}${": "a ${", "": "", "a${b}c${d": "b ${d",
	} {
		names, open := Placeholders(text)
		got := open
		for i := len(names) - 1; i >= 0; i-- {
			got = names[i] + " " + got
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
