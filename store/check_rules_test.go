package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A port is written as a number where it is one, and as a text otherwise, so that it is always
// JSON.
//
// proves DET-9
func TestPortsAsJSON(t *testing.T) {
	for port, want := range map[store.Port]string{
		"8081": "8081", "65535": "65535", "70000": `"70000"`, "080": `"080"`, "1f": `"1f"`, "+1": `"+1"`, "": `""`,
		"${a<b}": `"${a<b}"`,
	} {
		got, err := port.MarshalJSON()
		if err != nil || string(got) != want {
			t.Errorf("%q is written as %s, %v, want %s", port, got, err, want)
		}
		var again store.Port
		if err := json.Unmarshal(got, &again); err != nil || again != port {
			t.Errorf("%s is read as %q, %v", got, again, err)
		}
	}
	for _, bad := range []string{"", "{}", "true", "[1]", `"open`} {
		var p store.Port
		if err := p.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%q is read as %q", bad, p)
		}
	}
	var c store.Check
	if err := json.Unmarshal([]byte(`{"name": 5}`), &c); err == nil {
		t.Errorf("a check with a number for its name is read as %+v", c)
	}
}

// Checks without a name get one that no other check has; thresholds that are left out get their
// default, and others stay.
//
// proves DET-9
func TestNamesAndThresholdsOfChecks(t *testing.T) {
	g, err := withChecks(`{"tcp": {"port": 80}}`, `{"tcp": {"port": 80}, "name": "tcp:80#2"}`,
		`{"tcp": {"port": 80}, "unhealthy_threshold": 5, "healthy_threshold": 0}`,
		`{"exec": {"run": ["/bin/true"]}}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range g.Checks {
		got = append(got, fmt.Sprintf("%s %d %d", c.Name, c.UnhealthyThreshold, c.HealthyThreshold))
	}
	if want := []string{"tcp:80 2 2", "tcp:80#2 2 2", "tcp:80#3 5 2", "exec:true 2 2"}; !slices.Equal(got, want) {
		t.Errorf("checks are %q, want %q", got, want)
	}
}

// What is wrong is named, each once, and what is right at its bound is taken.
//
// proves DET-9
func TestBoundsOfListsOfChecks(t *testing.T) {
	tcp := func(i int) string { return fmt.Sprintf(`{"tcp": {"port": %d}}`, i+1) }
	var most []string
	for i := range store.MaxChecks {
		most = append(most, tcp(i))
	}
	headers := map[string]string{"X": strings.Repeat("x", 4096)}
	for i := range 49 {
		headers[fmt.Sprint("X-", i)] = ""
	}
	full := string(store.Encode(map[string]any{"name": "full", "http": map[string]any{
		"port": "${port}", "headers": headers, "body_regexp": strings.Repeat("x", 4096),
	}}))
	for _, test := range []struct {
		name   string
		checks []string
		want   []string // the paths that are wrong
	}{
		{"as many as there may be", most, nil},
		{"as long as they may be", []string{full}, nil},
		{
			"three of one name",
			[]string{
				`{"tcp": {"port": 1}, "name": "a"}`, `{"tcp": {"port": 2}, "name": "a"}`,
				`{"tcp": {"port": 3}, "name": "a"}`,
			},
			[]string{"checks[1].name other than checks[0] has", "checks[2].name other than checks[0] has"},
		},
		{"two of no kind and no name", []string{`{}`, `{}`}, []string{"checks[0]", "checks[1]"}},
		{"no kind and a wrong name", []string{`{"name": "a b"}`}, []string{"checks[0]", "checks[0].name"}},
		{"a command of nothing", []string{`{"exec": {"run": []}}`}, []string{"checks[0].exec.run"}},
		{
			"a timeout of more than a minute",
			[]string{`{"tcp": {"port": 1}, "interval": "2m", "timeout": "61s"}`},
			[]string{"checks[0].timeout"},
		},
		{
			"an interval that is too short",
			[]string{`{"tcp": {"port": 1}, "interval": "500ms"}`},
			[]string{"checks[0].interval"},
		},
	} {
		_, err := withChecks(test.checks...)
		var got []string
		for _, e := range fieldErrors(err) {
			path := e.Path
			if at := strings.Index(e.Allowed, "other than"); at >= 0 {
				path += " " + e.Allowed[at:]
			}
			got = append(got, path)
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) || (err != nil) != (test.want != nil) {
			t.Errorf("%s: wrong are %q, want %q (%v)", test.name, got, test.want, err)
		}
	}
	// A check that was not completed still needs its name.
	g, err := withChecks(tcp(0))
	if err != nil {
		t.Fatal(err)
	}
	g.Checks[0].Name = ""
	if errs := fieldErrors(g.Validate()); len(errs) != 1 || errs[0].Path != "checks[0].name" {
		t.Errorf("without a name wrong are %v", errs)
	}
}

// The reference tells the defaults that a check gets.
func TestDefaultsOfChecksAreShown(t *testing.T) {
	told := map[string]string{}
	for _, f := range store.Fields {
		told[f.Path] = f.Default
	}
	d := store.DefaultCheck()
	for path, want := range map[string]string{
		"interval": d.Interval.String(), "timeout": d.Timeout.String(),
		"unhealthy_threshold": fmt.Sprint(d.UnhealthyThreshold),
		"healthy_threshold":   fmt.Sprint(d.HealthyThreshold),
	} {
		if got := told["checks[]."+path]; got != want {
			t.Errorf("%s: the reference tells %q, it is %q", path, got, want)
		}
	}
}
