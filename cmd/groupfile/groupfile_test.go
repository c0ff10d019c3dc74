package groupfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
)

const web = `name: web
size: 6
provider: process
workload: {run: [./web, --port, "${port}"]}
report:
  interval: 2s
budget: {max_expansion: 2}
max_checking_health_duration: 0
`

func TestReadFillsInDefaults(t *testing.T) {
	groups, err := Read("web.yaml", strings.NewReader(web))
	if err != nil {
		t.Fatal(err)
	}
	want := store.DefaultGroup()
	want.Name, want.Size, want.Provider = "web", 6, "process"
	want.Workload.Run = []string{"./web", "--port", "${port}"}
	want.Report = store.ReportSpec{Interval: store.Duration(2 * time.Second), LeaseTTL: store.Duration(8 * time.Second)}
	want.Budget.MaxExpansion = 2
	want.MaxChecking = 0
	if len(groups) != 1 || !reflect.DeepEqual(groups[0], want) {
		t.Errorf("got %+v\nwant %+v", groups, want)
	}
}

func TestReadSeveralDocuments(t *testing.T) {
	groups, err := Read("all.yaml",
		strings.NewReader("---\nname: a\nprovider: process\n---\n# nothing here\n---\nname: b\nprovider: process\nsize: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) != 2 || groups[0].Name != "a" || groups[1].Name != "b" || groups[1].Size != 2 {
		t.Errorf("got %+v", groups)
	}
}

// Read reads what Write writes, for JSON too.
func TestWriteReadsBack(t *testing.T) {
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size, g.Paused = "web", "process", 3, true
	g.Labels = map[string]string{"team": "shop", "yes": "no"}
	g.Vars = map[string]string{"a": "010", "b": "true", "c": "x: y # z", "d": "line\nbreak", "e": ""}
	g.Template.Zones = []string{"a", "b"}
	g.Workload.Run = []string{"./web", "--port", "8080"}
	none, age, off := store.Amount(0), store.Duration(time.Hour), store.Duration(0)
	g.Budget.MaxUnavailable, g.Expiry.EligibleAge, g.Expiry.ForcedAge = &none, &age, &off
	g.Rollout.Strategy, g.Storm.Percent, g.Lifecycle = store.StrategyOpportunistic, 20, store.LifecycleTask
	g.Drain.Hook, g.Spot.Enabled, g.OnDemandAge = []string{"./leave", "5"}, true, age
	g.Spot.NoticeSpec = store.NoticeSpec{Source: store.NoticeAWS, Endpoint: "http://127.0.0.1:8080"}
	g.Report.OnLeaseLost = store.LeaseLost{Do: store.LeaseLostRun, Run: []string{"./fence", "--now"}}
	g.Checks = []store.Check{store.DefaultCheck(), store.DefaultCheck(), store.DefaultCheck()}
	g.Checks[0].HTTP = &store.HTTPCheck{
		Port: "8081", Path: "/healthz", Status: []string{"200", "300-399"},
		Headers: map[string]string{"Host": "shop"}, BodyRegexp: `^ok\b`,
	}
	g.Checks[1].TCP, g.Checks[1].Optional = &store.TCPCheck{Port: "${port}"}, true
	g.Checks[2].Exec, g.Checks[2].Interval = &store.ExecCheck{Run: []string{"./check", "8080", "-v"}}, age/60
	g.Stopped, g.Unstarted, g.Relaunch = true, true, store.Relaunch{Number: 2, Action: store.ActionRestart}
	g.Complete()
	text, err := Write(g)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Read("back.yaml", strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	g.OperatorState = store.OperatorState{}
	if !reflect.DeepEqual(back[0], g) {
		t.Errorf("got %+v\nwant %+v\nfrom\n%s", back[0], g, text)
	}
	back, err = Read("back.json", strings.NewReader(string(store.Encode(g))))
	if err != nil || !reflect.DeepEqual(back[0], g) {
		t.Errorf("json: got %+v, %v", back, err)
	}
}

func TestReadSaysWhatIsWrongAndWhere(t *testing.T) {
	const head = "name: web\nprovider: process\n"
	for _, c := range []struct{ name, text, want string }{
		{
			"typo", head + "budget:\n  max_expanson: 2\n",
			"budget.max_expanson: unknown field: did you mean budget.max_expansion? (web.yaml:4:3)",
		},
		{
			"typo at the top", "anme: web\nname: web\nprovider: process\n",
			"anme: unknown field: did you mean name? (web.yaml:1:1)",
		},
		{
			"right name at the wrong place", head + "lease_ttl: 20s\n",
			"lease_ttl: unknown field: did you mean report.lease_ttl? (web.yaml:3:1)",
		},
		{"nothing like it", head + "zzzzzzzz: 1\n", "zzzzzzzz: unknown field (web.yaml:3:1)"},
		{
			"planned", head + "template: {subnet_pool: a}\n",
			"template.subnet_pool: is not supported by this version (web.yaml:3:12)",
		},
		{
			"load balancers", head + "load_balancers:\n- name: a\n- {name: a, weight: 257, port: \"${x}\"}\n- {port: 0}\n",
			`load_balancers[1].name: "a": must be a name other than load_balancers[0] has (LB-1) (web.yaml:5:10)
load_balancers[1].weight: 257: must be 0 to 256; 0 is the balancer's own (LB-1) (web.yaml:5:21)
load_balancers[1].port: ${x}: must be a variable of vars or the port of the address (port) (LB-1) (web.yaml:5:32)
load_balancers[2].name: missing: must be the name of a load balancer of the coordinators (LB-1) (web.yaml:6:3)
load_balancers[2].port: 0: must be 1 to 65535, or a text such as ${port} (a variable of vars or the port of the address) (LB-1) (web.yaml:6:10)`,
		},
		{
			"a fence that is none", head + "report: {on_lease_lost: halt}\n",
			`report.on_lease_lost: "halt": must be "none", "stop", "poweroff" or {run: [a program, its arguments]} (SAFE-9) (web.yaml:3:25)`,
		},
		{
			"a fence without a command", head + "report: {on_lease_lost: {run: []}}\n",
			`report.on_lease_lost: {"run":[]}: must be "none", "stop", "poweroff" or {run: [a program, its arguments]} (SAFE-9) (web.yaml:3:25)`,
		},
		{
			"a fence that runs text", head + "report: {on_lease_lost: {run: ./fence}}\n",
			`report.on_lease_lost.run: "./fence": must be a list: a program and its arguments (web.yaml:3:31)`,
		},
		{
			"a fence that does more", head + "report: {on_lease_lost: {run: [a], stop: true}}\n",
			`report.on_lease_lost: must be "none", "stop", "poweroff" or {run: [a program, its arguments]} (web.yaml:3:25)`,
		},
		{
			"text for a truth", head + "spot: {enabled: \"true\"}\n",
			`spot.enabled: "true": must be true or false (web.yaml:3:17)`,
		},
		{
			"nothing for a truth", head + "spot: {enabled: }\n",
			`spot.enabled: nothing: must be true or false (web.yaml:3:17)`,
		},
		{
			"out of range below a pointer", head + "budget: {max_unavailable: 10001}\n",
			`budget.max_unavailable: 10001: must be 0 to 10000, or 0% to 100% (HEAL-3) (web.yaml:3:27)`,
		},
		{
			"an age too short", head + "expiry: {forced_age: 1s}\n",
			`expiry.forced_age: 1s: must be 0s, or 1m0s to 87600h0m0s (EXP-1) (web.yaml:3:22)`,
		},
		{
			"a source that is none", head + "spot: {source: oracle}\n",
			`spot.source: "oracle": must be "none", "aws", "gcp", "azure" or "file" (SPOT-1) (web.yaml:3:16)`,
		},
		{
			"a file that is missing", head + "spot: {source: file}\n",
			`spot.file: missing: must be an absolute path with source file, and nothing with any other (SPOT-1) (web.yaml:3:7)`,
		},
		{
			"a file for nothing", head + "spot: {source: aws, file: /x}\n",
			`spot.file: "/x": must be an absolute path with source file, and nothing with any other (SPOT-1) (web.yaml:3:27)`,
		},
		{
			"an endpoint that is none", head + "spot: {source: gcp, endpoint: \"metadata:80\"}\n",
			`spot.endpoint: "metadata:80": must be a URL like http://127.0.0.1:8080, with source aws, gcp or azure (SPOT-1) (web.yaml:3:31)`,
		},
		{
			"a policy that is none", head + "rollout: {strategy: now}\n",
			`rollout.strategy: "now": must be "proactive" or "opportunistic" (ROLL-1) (web.yaml:3:21)`,
		},
		{
			"stopped", head + "stopped: true\n",
			"stopped: not set in a file: use leasehold group stop or start (web.yaml:3:1)",
		},
		{
			"a flag", head + "paused: true\n",
			"paused: not set in a file: use leasehold group pause or resume (web.yaml:3:1)",
		},
		{"a newer schema", head + "schema: 99\n", "schema: 99: must be 1: this program knows no other (web.yaml:3:9)"},
		{"text for a number", head + "size: six\n", `size: "six": must be a whole number, 0 to 100000 (web.yaml:3:7)`},
		{"nothing for a number", head + "size:\n", "size: nothing: must be a whole number, 0 to 100000 (web.yaml:3:6)"},
		{
			"a number too long", head + "size: 99999999999999999999\n",
			"size: 99999999999999999999: must be a whole number, 0 to 100000 (web.yaml:3:7)",
		},
		{
			"an octal number, or not", head + "size: 010\n",
			"size: 010: must be 0 to 100000, in plain digits (web.yaml:3:7)",
		},
		{
			"the first wait longer than the last", head + "flap: {max_delay: 1m, min_delay: 2m}\n",
			"flap.min_delay: 2m0s: must be 1s to 1h0m0s, and at most flap.max_delay (1m0s) (FLAP-2) (web.yaml:3:34)",
		},
		{
			"the first wait longer than the last by default", head + "flap: {max_delay: 20s}\n",
			"flap.min_delay: 30s, which is its default here: must be 1s to 1h0m0s, and at most " +
				"flap.max_delay (20s) (FLAP-2) (web.yaml:3:7)",
		},
		{
			"eligible when it is forced already", head + "expiry: {eligible_age: 2h, forced_age: 1h}\n",
			"expiry.eligible_age: 2h0m0s: must be 0s, or 1m0s to 87600h0m0s, and at most expiry.forced_age " +
				"(1h0m0s) (EXP-1) (web.yaml:3:24)",
		},
		{
			"a placeholder that nothing fills",
			head + "workload:\n  run: [./web, --port, \"${prt}\"]\nvars: {greeting: hello}\n",
			"workload.run[2]: ${prt}: must be a variable of vars or a fact of the machine (address, dir, greeting, " +
				"group, host, instance, name, port, shard, slot, zone); a literal ${ is written $${: " +
				"did you mean ${port}? (web.yaml:4:24)",
		},
		{
			"a check's placeholder that nothing fills",
			head + "checks: [{http: {port: \"${port}\", headers: {Host: \"${hots}\"}}}]\n",
			"checks[0].http.headers.Host: ${hots}: must be a variable of vars or a fact of the machine (address, dir, " +
				"group, host, instance, name, port, shard, slot, zone); a literal ${ is written $${ (DET-9): " +
				"did you mean ${host}? (web.yaml:3:51)",
		},
		{
			"a placeholder without an end", head + "drain: {hook: [./leave, \"a${port\"]}\n",
			`drain.hook[1]: "${port": must be closed with }; a literal ${ is written $${ (DRAIN-1) (web.yaml:3:25)`,
		},
		{
			"not in plain digits", head + "size: 0x10\n",
			"size: 0x10: must be 0 to 100000, in plain digits (web.yaml:3:7)",
		},
		{
			"a percentage without its sign", head + "budget: {max_unavailable: \"25\"}\n",
			"budget.max_unavailable: \"25\": must be a whole number or a percentage like 25%, 0 to 10000, " +
				"or 0% to 100% (web.yaml:3:27)",
		},
		{
			"more than all", head + "budget: {roll: {max_unavailable: 101%}}\n",
			"budget.roll.max_unavailable: 101%: must be 0 to 10000, or 0% to 100% (REC-18) (web.yaml:3:34)",
		},
		{
			"number for text", head + "vars:\n  port: 8080\n",
			`vars.port: 8080: must be text: write "8080" (web.yaml:4:9)`,
		},
		{
			"number in a list", head + "workload:\n  run: [./web, 8080]\n",
			`workload.run[1]: 8080: must be text: write "8080" (web.yaml:4:16)`,
		},
		{
			"text for a list", head + "workload: {run: ./web}\n",
			`workload.run: "./web": must be a list: a program and its arguments, at most 256 of at most 4096 bytes (web.yaml:3:17)`,
		},
		{
			"text for fields", head + "budget: 1\n",
			"budget: 1: must have fields: max_expansion, max_unavailable, max_creating, max_deleting, " +
				"heal, roll, expiry (web.yaml:3:9)",
		},
		{
			"number for a duration", head + "stop_timeout: 30\n",
			"stop_timeout: 30: must be a duration like 5s, 1m30s or 2h, 0s to 10m0s (web.yaml:3:15)",
		},
		{
			"out of range", head + "report:\n  interval: 10ms\n",
			"report.interval: 10ms: must be 1s to 5m0s (DET-1) (web.yaml:4:13)",
		},
		{
			"ttl too short", head + "report: {interval: 10s, lease_ttl: 20s}\n",
			"report.lease_ttl: 20s: must be whole seconds, at least 3 × report.interval, at most 1h (DET-2) (web.yaml:3:36)",
		},
		{
			"a check's typo", head + "checks:\n- http: {prot: 80}\n",
			"checks[0].http.prot: unknown field: did you mean checks[0].http.port? (web.yaml:4:10)",
		},
		{
			"a check's kind misspelt", head + "checks:\n- tcpp: {port: 80}\n",
			"checks[0].tcpp: unknown field: did you mean checks[0].tcp? (web.yaml:4:3)",
		},
		{
			"a check's field elsewhere", head + "checks:\n- tcp: {port: 80, interval: 2s}\n",
			"checks[0].tcp.interval: unknown field: did you mean checks[0].interval? (web.yaml:4:19)",
		},
		{
			"a check's field at the top", head + "healthy_threshold: 2\n",
			"healthy_threshold: unknown field: did you mean checks[].healthy_threshold? (web.yaml:3:1)",
		},
		{
			"a check of no kind", head + "checks:\n- interval: 5s\n",
			"checks[0]: no kind: must be exactly one kind of check: http, tcp, grpc, exec, process (DET-9) (web.yaml:4:3)",
		},
		{
			"a check of two kinds", head + "checks:\n- {tcp: {port: 1}, http: {port: 2}}\n",
			"checks[0]: http and tcp: must be exactly one kind of check: http, tcp, grpc, exec, process (DET-9) (web.yaml:4:3)",
		},
		{
			"a check without its port", head + "checks:\n- tcp:\n    host: x\n",
			"checks[0].tcp.port: missing: must be 1 to 65535, or a text such as ${port} (DET-9) (web.yaml:5:5)",
		},
		{
			"a check's port", head + "checks: [{tcp: {port: 0}}]\n",
			"checks[0].tcp.port: 0: must be 1 to 65535, or a text such as ${port} (DET-9) (web.yaml:3:23)",
		},
		{
			"a port that is none", head + "checks: [{tcp: {port: true}}]\n",
			`checks[0].tcp.port: true: must be 1 to 65535, or a text such as ${port} (web.yaml:3:23)`,
		},
		{
			"a port in other digits", head + "checks: [{tcp: {port: 1e2}}]\n",
			`checks[0].tcp.port: 1e2: must be 1 to 65535, or a text such as ${port} (web.yaml:3:23)`,
		},
		{
			"a check's time", head + "checks:\n- tcp: {port: 1}\n  interval: 0s\n",
			"checks[0].interval: 0s: must be 1s to 5m0s, and at least 1s more than the timeout (DET-9) (web.yaml:5:13)",
		},
		{
			"checks that are no list", head + "checks: {http: {port: 80}}\n",
			"checks: fields: must be a list: at most 32 checks with different names, each of exactly one kind: http, " +
				"tcp, grpc, exec, process (web.yaml:3:9)",
		},
		{
			"a check that is none", head + "checks: [80]\n",
			"checks[0]: 80: must have fields: name, http, tcp, grpc, exec, process, interval, timeout, " +
				"unhealthy_threshold, healthy_threshold, optional (web.yaml:3:10)",
		},
		{
			"two checks of one name", head + "checks: [{name: a, tcp: {port: 1}}, {name: a, tcp: {port: 2}}]\n",
			`checks[1].name: "a": must be a name other than checks[0] has (DET-9) (web.yaml:3:44)`,
		},
		{
			"a status", head + "checks: [{http: {port: 1, status: [200, 2xx]}}]\n",
			"checks[0].http.status: [200 2xx]: must be at most 20 of 100 to 599, alone or like 200-299 (DET-9) (web.yaml:3:35)",
		},
		{"a path for a name", head + "report.interval: 5s\n", "report.interval: unknown field (web.yaml:3:1)"},
		{"a path of the table", head + "checks[]: {name: x}\n", "checks[]: unknown field (web.yaml:3:1)"},
		{
			"missing", "name: web\nsize: 1\n",
			"provider: missing: must be the name of a provider, for example process; none needs size 0 (web.yaml:1:1)",
		},
		{"twice", head + "size: 1\nsize: 2\n", "size: is a duplicate (first at line 3) (web.yaml:4:1)"},
		{"twice in a map", head + "vars: {a: x, a: y}\n", "vars.a: is a duplicate (first at line 3) (web.yaml:3:14)"},
		{
			"the same group twice", head + "---\n" + head,
			`name: group "web" is in this file twice (first at line 1) (web.yaml:4:1)`,
		},
		{
			"an alias", head + "labels: &l {a: b}\nvars: *l\n",
			"vars: aliases and merge keys are not supported (web.yaml:4:7)",
		},
		{"empty", "# only a comment\n", "there is no group in the file (web.yaml)"},
		{"a list", "- name: web\n", "a list: must be fields like name: web (web.yaml:1:1)"},
		{
			"a typo and a range at once", head + "sise: 1\nstop_timeout: 1h\n",
			"sise: unknown field: did you mean size? (web.yaml:3:1)\nstop_timeout: 1h0m0s: " +
				"must be 0s to 10m0s (HEAL-14) (web.yaml:4:15)",
		},
		{
			"two at once, in order", "nam: web\nsize: many\n",
			"nam: unknown field: did you mean name? (web.yaml:1:1)\n" +
				`size: "many": must be a whole number, 0 to 100000 (web.yaml:2:7)`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("web.yaml", strings.NewReader(c.text))
			if err == nil {
				t.Fatal("accepted")
			}
			if err.Error() != c.want {
				t.Errorf("\n got %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestReadPlacesSyntaxErrors(t *testing.T) {
	_, err := Read("web.yaml", strings.NewReader("name: web\nlabels: {a: b\nsize: 1\n"))
	var problems yamlfile.Problems
	if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Line == 0 ||
		!strings.Contains(err.Error(), "not YAML") {
		t.Errorf("got %v", err)
	}
}

// YAML's own error for ${name} without quotes does not help a reader who does not know that its
// brace begins a mapping.
func TestReadSaysHowToWriteAVariable(t *testing.T) {
	for file, want := range map[string]bool{
		"name: web\nchecks:\n- tcp: {port: ${port}}\n":           true,
		"name: web\nworkload: {run: [./web, ${port}]}\n":         true,
		"name: web\nworkload: {run: [./web, \"${port}\"}\n":      false,
		"name: web\nlabels: {a: b\nsize: 1\nvars: {p: \"${x}\"}": false,
	} {
		_, err := Read("web.yaml", strings.NewReader(file))
		if err == nil || strings.Contains(err.Error(), `"${name}"`) != want {
			t.Errorf("%s: told to quote: %t, in %v", file, want, err)
		}
	}
}

// A check as an operator writes it: ports and status codes are numbers, or text where a number
// cannot say it.
//
// proves DET-9
func TestReadChecks(t *testing.T) {
	_, err := Read("web.yaml", strings.NewReader(web+`checks:
- http: {port: 8081, path: /healthz, status: [200, 300-399]}
  timeout: 500ms
- tcp: {port: "${port}"}
  name: door
  optional: true
`))
	if err == nil ||
		err.Error() != "checks[0].timeout: 500ms: must be 1s to 1m0s, and at least 1s less than the interval (DET-9) "+
			"(web.yaml:11:12)" {
		t.Fatalf("got %v", err)
	}
	groups, err := Read("web.yaml", strings.NewReader(web+`checks:
- http: {port: 8081, path: /healthz, status: [200, 300-399]}
  interval: 5s
- tcp: {port: "${port}"}
  name: door
  optional: true
`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := store.DefaultCheck(), store.DefaultCheck()
	a.Name, a.Interval, a.HTTP = "http:8081", store.Duration(5*time.Second),
		&store.HTTPCheck{Port: "8081", Path: "/healthz", Status: []string{"200", "300-399"}}
	b.Name, b.Optional, b.TCP = "door", true, &store.TCPCheck{Port: "${port}"}
	if want := []store.Check{a, b}; !reflect.DeepEqual(groups[0].Checks, want) {
		t.Errorf("got %+v\nwant %+v", groups[0].Checks, want)
	}
}

// Hostile input ends in an error, soon.
func TestReadIsBounded(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 8) + "*" + string(c-1) +
			"]\n"
	}
	for name, text := range map[string]string{
		"large":     strings.Repeat("# nothing\n", yamlfile.MaxBytes/10+1),
		"deep":      "name: " + strings.Repeat("[", 100_000),
		"deep map":  strings.Repeat("{a: ", 50_000),
		"bomb":      bomb,
		"documents": strings.Repeat("---\nname: web\n", MaxGroups+1),
	} {
		if _, err := Read(name, strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Every field of the table can be written in a file, at its place.
func TestEveryFieldOfTheTableIsKnown(t *testing.T) {
	values := map[string]string{
		"string": `""`, "integer": "-1", "number": "-1", "duration": "-1s", "integer or percentage": "101%", "list of strings": "[]",
		"map of strings": "{}", "nested values": "{}", "boolean": "-", "word or command": "-", "port": "-1",
		"list of status codes": "[]",
		"list of checks":       "[]", "list of load balancers": "[]", "list of files": "[]", "list of windows": "[]",
		"list of targets": "[]", "list of changes": "[]", "list of analyses": "[]", "list of drills": "[]",
	}
	for _, f := range store.Fields {
		value, ok := values[f.Type]
		if !ok {
			t.Errorf("%s: this test knows no type %q", f.Path, f.Type)
			continue
		}
		text, depth := "", 0
		for _, part := range strings.Split(f.Path, ".") {
			if depth > 0 {
				text += "\n" + strings.Repeat("  ", depth)
			}
			list := strings.HasSuffix(part, "[]")
			text += strings.TrimSuffix(part, "[]") + ":"
			depth++
			if list {
				text += "\n" + strings.Repeat("  ", depth) + "- other: 1"
				depth++
			}
		}
		_, err := Read("f.yaml", strings.NewReader(text+" "+value+"\n"))
		if err == nil || strings.Contains(strings.ReplaceAll(err.Error(), "].other: unknown field", ""),
			"unknown field") || strings.Contains(err.Error(), "like") {
			t.Errorf("%s: %v", f.Path, err)
		}
	}
}
