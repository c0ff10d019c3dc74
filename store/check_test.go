package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// withChecks reads the group web with these checks, each as JSON.
func withChecks(checks ...string) (store.Group, error) {
	return store.ReadGroup(fmt.Appendf(nil, `{"schema": 1, "name": "web", "provider": "process", "checks": [%s]}`,
		strings.Join(checks, ",")))
}

// kindsJSON are the least that can be said of a check of each kind.
var kindsJSON = map[string]string{
	"http": `"http": {"port": 8081}`, "tcp": `"tcp": {"port": "${port}"}`, "grpc": `"grpc": {"port": 50051}`,
	"exec": `"exec": {"run": ["/usr/bin/true", "x"]}`, "process": `"process": {"name": "nginx"}`,
}

// proves DET-9
func TestChecksGetTheirDefaults(t *testing.T) {
	g, err := withChecks("{"+kindsJSON["http"]+"}",
		"{"+kindsJSON["tcp"]+`, "unhealthy_threshold": 0, "healthy_threshold": 3}`, "{"+kindsJSON["grpc"]+"}",
		"{"+kindsJSON["exec"]+`, "interval": "10s"}`, "{"+kindsJSON["process"]+"}",
		`{"process": {"pid_file": "/run/a.pid"}}`, "{"+kindsJSON["http"]+"}")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range g.Checks {
		names = append(names, c.Name)
		if c.Timeout.D() != time.Second || c.UnhealthyThreshold != 2 {
			t.Errorf("%s has timeout %s and unhealthy_threshold %d", c.Name, c.Timeout, c.UnhealthyThreshold)
		}
	}
	if want := []string{
		"http:8081", "tcp:${port}", "grpc:50051", "exec:true", "process:nginx", "process:a.pid",
		"http:8081#2",
	}; !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
	if g.Checks[0].Interval.D() != 2*time.Second || g.Checks[3].Interval.D() != 10*time.Second ||
		g.Checks[1].HealthyThreshold != 3 || g.Checks[0].HealthyThreshold != 2 {
		t.Errorf("checks are %+v", g.Checks)
	}
	again, err := store.ReadGroup(store.Encode(g))
	if err != nil || !reflect.DeepEqual(g, again) {
		t.Errorf("what is stored complete comes back as %+v, %v", again, err)
	}
	if s := string(store.Encode(g)); !strings.Contains(s, `"port":8081`) || !strings.Contains(s, `"port":"${port}"`) {
		t.Errorf("ports are not written as a person would: %s", s)
	}
}

// TestBoundsOfChecks sets one field after the other to values at and beyond its bounds.
//
// proves DET-9
func TestBoundsOfChecks(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	headers := map[string]string{}
	for i := range 51 {
		headers[fmt.Sprint("X-", i)] = ""
	}
	file := struct{ good, bad []any }{[]any{"", "/a b", long(4096)}, []any{long(4097)}}
	name := struct{ good, bad []any }{[]any{"", "localhost", "${host}", long(255)}, []any{long(256)}}
	port := struct{ good, bad []any }{
		[]any{1, 65535, "8081", "${port}"},
		[]any{0, -1, 65536, 1.5, "", "http", "+80", "080", "${" + long(99)},
	}
	flag := struct{ good, bad []any }{good: []any{true, false}}
	tests := map[string]struct{ good, bad []any }{
		"name":        {[]any{"a", "http:8081/x#2", long(100)}, []any{"process", "a b", "ä", long(101)}},
		"http.scheme": {[]any{"", "http", "https"}, []any{"HTTP", "ftp", "${scheme}"}},
		"http.host":   name,
		"http.port":   port,
		"http.path": {
			[]any{"", "/", "/a?b=c", "${dir}", "/" + long(4095)},
			[]any{"a", "http://x", "/" + long(4096)},
		},
		"http.method": {[]any{"", "GET", "HEAD"}, []any{"get", "GET ", long(3)}},
		"http.headers": {
			[]any{map[string]string{"Host": "a b", "X-1": ""}},
			[]any{
				headers,
				map[string]string{"a b": ""},
				map[string]string{"": ""},
				map[string]string{"A": "b\r\nC: d"},
				map[string]string{"A": long(4097)},
			},
		},
		"http.status": {
			[]any{[]string{"200"}, []string{"100-599", "200-200"}, slices.Repeat([]string{"200"}, 20)},
			[]any{
				[]string{"2xx"},
				[]string{"20"},
				[]string{"600"},
				[]string{"099"},
				[]string{"300-200"},
				[]string{""},
				slices.Repeat([]string{"200"}, 21),
			},
		},
		"http.body":             file,
		"http.body_regexp":      {[]any{"", "^ok$", "a.*b"}, []any{"(", "a**", long(4097)}},
		"http.follow_redirects": flag, "http.skip_verify": flag, "grpc.tls": flag, "grpc.skip_verify": flag,
		"optional":     flag,
		"http.ca_file": file, "http.server_name": name,
		"tcp.host": name, "tcp.port": port,
		"grpc.host": name, "grpc.port": port, "grpc.service": name, "grpc.ca_file": file, "grpc.server_name": name,
		"exec.run": {
			[]any{[]string{"./check", ""}, make256("a")},
			[]any{nil, []string{}, []string{""}, append(make256("a"), "a"), []string{"a", long(4097)}},
		},
		"process.name":        {[]any{"nginx", long(255)}, []any{"", "a/b", long(256)}},
		"process.pid_file":    {[]any{"/run/a.pid", long(4096)}, []any{long(4097)}},
		"interval":            {[]any{"2s", "5m"}, []any{"999ms", "0s", "-1s", "5m0.001s"}},
		"timeout":             {[]any{"1s", "59s", "1m"}, []any{"999ms", "0s", "59.001s"}},
		"unhealthy_threshold": {[]any{2, 10}, []any{1, 11, -1}},
		"healthy_threshold":   {[]any{2, 10}, []any{1, 11, -1}},
	}
	for _, field := range store.Fields {
		path, inChecks := strings.CutPrefix(field.Path, "checks[].")
		if !inChecks {
			continue
		}
		test, ok := tests[path]
		if !ok {
			t.Errorf("no bounds of %s are tested", field.Path)
			continue
		}
		for _, value := range test.good {
			if g := withCheck(t, path, value); g.Validate() != nil {
				t.Errorf("%s: %v is refused: %v", path, value, g.Validate())
			}
		}
		for _, value := range test.bad {
			wrong := fieldErrors(withCheck(t, path, value).Validate())
			if wrong = slices.DeleteFunc(wrong,
				func(e *store.FieldError) bool {
					return path == "interval" &&
						e.Path == "checks[1].timeout"
				}); len(wrong) != 1 ||
				wrong[0].Path != "checks[1]."+path || wrong[0].Allowed != field.Allowed || wrong[0].Rule != "DET-9" {
				t.Errorf("%s: %v gives %v", path, value, wrong)
			}
		}
	}
}

// withCheck returns a group whose second check has one field set.
func withCheck(t *testing.T, path string, value any) store.Group {
	t.Helper()
	kind, below, nested := strings.Cut(path, ".")
	check := map[string]any{"name": "x"}
	if path == "timeout" {
		check["interval"] = "60s"
		if value == "1m" {
			check["interval"] = "61s"
		}
	}
	if !nested {
		check["tcp"] = map[string]any{"port": 80}
		check[path] = value
	} else {
		inner := map[string]any{}
		switch {
		case kind == "exec", path == "process.name", path == "process.pid_file":
			// what has to be there is the field itself
		default:
			inner["port"] = 80
		}
		if path == "process.pid_file" && value == "" {
			inner["name"] = "nginx"
		}
		inner[below] = value
		check[kind] = inner
	}
	g, err := withChecks("{"+kindsJSON["http"]+"}", "{"+kindsJSON["http"]+`,"name":"y"}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(store.Encode(check), &g.Checks[1]); err != nil {
		t.Fatalf("%s: %v: %v", path, value, err)
	}
	return g
}

// proves DET-9
func TestWhatIsWrongWithChecks(t *testing.T) {
	tcp := func(more string) string { return "{" + kindsJSON["tcp"] + more + "}" }
	many := slices.Repeat([]string{tcp("")}, store.MaxChecks+1)
	for name, test := range map[string]struct {
		checks []string
		want   string
	}{
		"no kind": {
			[]string{`{"name": "a"}`},
			"checks[0]: no kind: must be exactly one kind of check: http, tcp, grpc, exec, process (DET-9)",
		},
		"two kinds": {
			[]string{tcp(""), "{" + kindsJSON["http"] + "," + kindsJSON["tcp"] + "}"},
			"checks[1]: http and tcp: must be exactly one kind of check: http, tcp, grpc, exec, process (DET-9)",
		},
		"twice a name": {
			[]string{tcp(`, "name": "a"`), tcp(""), tcp(`, "name": "a"`)},
			`checks[2].name: "a": must be a name other than checks[0] has (DET-9)`,
		},
		"too many": {many, "checks: 33 checks: must be at most 32 checks (DET-9)"},
		"two processes": {
			[]string{`{"process": {"name": "a", "pid_file": "/b"}}`},
			`checks[0].process.name: "a": must be a program's name of at most 255 characters without a /, or nothing and a pid_file instead (DET-9)`,
		},
		"timeout": {
			[]string{tcp(`, "interval": "5s", "timeout": "4.5s"`)},
			"checks[0].timeout: 4.5s: must be 1s to 1m0s, and at least 1s less than the interval (DET-9)",
		},
		"no port": {
			[]string{`{"http": {}}`},
			`checks[0].http.port: "": must be 1 to 65535, or a text such as ${port} (DET-9)`,
		},
		"an odd port": {
			[]string{`{"http": {"port": 70000}}`},
			`checks[0].http.port: 70000: must be 1 to 65535, or a text such as ${port} (DET-9)`,
		},
		"unknown field":  {[]string{tcp(""), `{"tcp": {"prot": 1}}`}, `checks[1]: json: unknown field "prot"`},
		"unknown at all": {[]string{tcp(`, "every": "2s"`)}, `checks[0]: json: unknown field "every"`},
	} {
		if _, err := withChecks(test.checks...); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// A group without checks has the hashes that earlier versions gave it: else an upgrade would roll
// everything.
//
// proves ROLL-2
func TestHashesOfChecks(t *testing.T) {
	without, err := withChecks()
	if err != nil {
		t.Fatal(err)
	}
	if got := without.InstanceSpec().TemplateHash() + " " +
		without.InstanceSpec().ConfigHash(); got != "t033fa0ef cbed21c90" {
		t.Errorf("hashes without checks are %s", got)
	}
	with, err := withChecks("{" + kindsJSON["tcp"] + "}")
	if err != nil {
		t.Fatal(err)
	}
	other, err := withChecks("{" + kindsJSON["tcp"] + `, "healthy_threshold": 3}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range []func(store.InstanceSpec) string{
		store.InstanceSpec.TemplateHash,
		store.InstanceSpec.ConfigHash,
	} {
		a, b, c := hash(without.InstanceSpec()), hash(with.InstanceSpec()), hash(other.InstanceSpec())
		if a == b || b == c || a == c {
			t.Errorf("hashes are %s, %s and %s, want three", a, b, c)
		}
	}
}
