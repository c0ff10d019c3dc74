package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// web returns a group in which only what the operator must say is said.
func web() store.Group {
	g := store.DefaultGroup()
	g.Name, g.Provider = "web", "process"
	g.Complete()
	return g
}

func TestDefaultsAreValid(t *testing.T) {
	if err := web().Validate(); err != nil {
		t.Error(err)
	}
	g, err := store.ReadGroup([]byte(`{"schema": 1, "name": "web", "provider": "process"}`))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, web()) {
		t.Errorf("read %+v, want the defaults", g)
	}
	again, err := store.ReadGroup(store.Encode(g))
	if err != nil || !reflect.DeepEqual(g, again) {
		t.Errorf("what is stored complete comes back as %+v, %v", again, err)
	}
}

// proves DET-2
func TestLeaseTTLFollowsTheInterval(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		5 * time.Second: 17 * time.Second, time.Second: 5 * time.Second, 1500 * time.Millisecond: 7 * time.Second,
		1001 * time.Millisecond: 6 * time.Second, 5 * time.Minute: 15*time.Minute + 2*time.Second,
	} {
		g := web()
		g.Report = store.ReportSpec{Interval: store.Duration(interval)}
		g.Complete()
		if g.Report.LeaseTTL.D() != want {
			t.Errorf("interval %s: %s, want %s", interval, g.Report.LeaseTTL, want)
		}
		if err := g.Validate(); err != nil {
			t.Error(err)
		}
		g.Report.LeaseTTL = store.Duration(time.Hour)
		if g.Complete(); g.Report.LeaseTTL.D() != time.Hour {
			t.Errorf("what the operator said became %s", g.Report.LeaseTTL)
		}
	}
}

// TestBounds sets one field after the other to values at and beyond its bounds.
func TestBounds(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m["k"+strings.Repeat("x", i%60)+string(rune('a'+i%26))+string(rune('a'+i/26))] = ""
		}
		return m
	}
	list := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = "z" + string(rune('a'+i%26)) + string(rune('a'+i/26%26))
		}
		return out
	}
	tests := map[string]struct{ good, bad []any }{
		"name": {
			[]any{"a", "a1-b", "a" + long(39)},
			[]any{"", "1a", "-a", "a-", "A", "a_b", "a/b", "a" + long(40)},
		},
		"size":      {[]any{0, store.MaxSize}, []any{-1, store.MaxSize + 1}},
		"lifecycle": {[]any{"service", "task"}, []any{"", "Service", "job"}},
		"labels": {
			[]any{many(100), map[string]string{"a/b.c_D-1": long(4096)}},
			[]any{
				many(101),
				map[string]string{"": ""},
				map[string]string{"a b": ""},
				map[string]string{"a": long(4097)},
				map[string]string{long(64): ""},
			},
		},
		"provider":               {[]any{"process", "qemu"}, []any{"", "Process", "a/b"}},
		"template.instance_type": {[]any{"", long(100)}, []any{long(101)}},
		"template.instance_types": {
			[]any{[]string{}, []string{"large", "small"}, strings.Fields("a b c d e f g h i j")},
			[]any{[]string{"a", "a"}, []string{""}, []string{long(101)}, strings.Fields("a b c d e f g h i j k")},
		},
		"template.tags": {
			[]any{
				map[string]string{},
				map[string]string{"team": "shop", "a/b.c:d=e@f+g_h-i": ""},
				map[string]string{long(100): strings.Repeat("é", 255)},
			},
			[]any{
				map[string]string{"": "x"},
				map[string]string{"a b": "x"},
				map[string]string{"Leasehold:shard": "x"},
				map[string]string{long(101): ""},
				map[string]string{"a": strings.Repeat("é", 256)},
				map[string]string{"a": "b\n"},
				manyTags(31),
			},
		},
		"template.zones": {
			[]any{[]string{"a", "b"}, list(50)},
			[]any{[]string{"a", "a"}, []string{""}, list(51), []string{long(101)}},
		},
		"template.settings": {
			[]any{many(100), map[string]any{"disks": []any{map[string]any{"size-gb": 10, "kind": "ssd"}}, "gpu": true}},
			[]any{map[string]any{"script": strings.Repeat("x", 64<<10)}},
		},
		"workload.run": {
			[]any{[]string{"./web", ""}, make256("a")},
			[]any{[]string{""}, append(make256("a"), "a"), []string{"a", long(4097)}},
		},
		"vars": {
			[]any{many(100), map[string]string{"a": long(4096)}},
			[]any{many(101), map[string]string{"a.b": ""}, map[string]string{"a": long(4097)}},
		},
		"report.interval":  {[]any{"1s", "5m"}, []any{"999ms", "5m0.001s", "0s", "-1s"}},
		"report.lease_ttl": {[]any{"15s", "1h"}, []any{"14s", "15.5s", "1h0m1s", "-17s", "0s"}},
		"report.on_lease_lost": {
			[]any{
				"none", "stop", "poweroff",
				map[string]any{"run": []string{"./fence", ""}},
			},
			[]any{"Stop", "run", map[string]any{"run": []string{}}, map[string]any{"run": []string{""}}},
		},
		"registration_timeout":          {[]any{"10s", "24h"}, []any{"9.999s", "24h0m1s", "0s"}},
		"max_checking_health_duration":  {[]any{"0s", "24h"}, []any{"-1s", "24h0m1s"}},
		"max_opening_traffic_duration":  {[]any{"0s", "24h"}, []any{"-1s", "24h0m1s"}},
		"heal.on_load_balancer":         {[]any{true, false}, nil},
		"heal.max_unhealthy":            {[]any{nil, 0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"heal.policy":                   {[]any{"recreate", "restart", "none"}, []any{"", "Restart", "all"}},
		"budget.max_expansion":          {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"budget.max_unavailable":        {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"budget.heal.max_expansion":     {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"budget.heal.max_unavailable":   {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"budget.roll.max_expansion":     {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"budget.roll.max_unavailable":   {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"budget.expiry.max_expansion":   {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"budget.expiry.max_unavailable": {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"budget.max_creating":           {[]any{0, 100}, []any{-1, 101}},
		"budget.max_deleting":           {[]any{0, 100}, []any{-1, 101}},
		"spread":                        {[]any{"at_creation", "even"}, []any{"Even", "always"}},
		"flap.failures":                 {[]any{1, 100}, []any{0, -1, 101}},
		"secrets": {
			[]any{nil, map[string]string{"DB_PASSWORD": "db-password", "b": "a.b_c-9"}, secretsOf(40)},
			[]any{
				map[string]string{"A-B": "x"},
				map[string]string{"LEASEHOLD_X": "x"},
				map[string]string{"A": "Upper"},
				map[string]string{"A": ""},
				map[string]string{"A": "../x"},
				secretsOf(41),
			},
		},
		"flap.window":               {[]any{"1s", "24h"}, []any{"999ms", "24h0m1s"}},
		"flap.min_delay":            {[]any{"1s", "1h"}, []any{"0s", "1h0m1s"}},
		"flap.max_delay":            {[]any{"1s", "24h"}, []any{"0s", "24h0m1s"}},
		"flap.reset":                {[]any{"1s", "24h"}, []any{"0s", "24h0m1s"}},
		"flap.noise":                {[]any{"0s", "1m"}, []any{"-1s", "1m0.001s"}},
		"flap.give_up_after":        {[]any{0, 1_000_000}, []any{-1, 1_000_001}},
		"flap.give_up_time":         {[]any{"0s", "8760h"}, []any{"-1s", "8760h0m1s"}},
		"rollout.strategy":          {[]any{"proactive", "opportunistic"}, []any{"", "Proactive", "now"}},
		"rollout.minimal_action":    {[]any{"live_update", "restart", "recreate"}, []any{"", "none", "live"}},
		"rollout.startup_duration":  {[]any{"0s", "1h"}, []any{"-1s", "1h0m1s"}},
		"rollout.progress_deadline": {[]any{"10s", "24h"}, []any{"9.999s", "24h0m1s"}},
		"rollout.canary":            {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"rollout.canary_duration":   {[]any{nil, "0s", "168h"}, []any{"-1s", "168h1s"}},
		"rollout.bake":              {[]any{"0s", "168h"}, []any{"-1s", "168h1s"}},
		"rollout.order":             {[]any{"any", "zone"}, []any{"host"}},
		"rollout.auto_rollback":     {[]any{true, false}, nil},
		"storm.min":                 {[]any{2, store.MaxSize}, []any{1, store.MaxSize + 1}},
		"storm.percent":             {[]any{1, 100}, []any{0, 101}},
		"storm.window":              {[]any{"1s", "1h"}, []any{"999ms", "1h0m1s"}},
		"storm.cooldown":            {[]any{"1s", "1h"}, []any{"999ms", "1h0m1s"}},
		"storm.probe_after":         {[]any{"0s", "24h"}, []any{"-1s", "24h0m1s"}},
		"expiry.eligible_age":       {[]any{nil, "0s", "1m", "87600h"}, []any{"-1s", "59.999s", "87600h0m1s"}},
		"expiry.forced_age":         {[]any{nil, "0s", "1m", "87600h"}, []any{"-1s", "59.999s", "87600h0m1s"}},
		"windows": {
			[]any{nil, []any{map[string]any{"from": "22:00", "for": "4h"}}},
			[]any{slices.Repeat([]any{map[string]any{"from": "22:00", "for": "4h"}}, 51)},
		},
		"freeze.from": {[]any{""}, nil}, // more in TestBoundsOfWindows
		"freeze.to":   {[]any{"", "2026-12-24T00:00:00+01:00"}, []any{"2026-12-24"}},
		"freeze.why":  {[]any{""}, nil},
		"busy.file": {
			[]any{"", "/run/busy", "${dir}/busy"}, []any{"busy", "${host}/busy", "/" + long(4096)},
		},
		"busy.timeout":        {[]any{nil, "0s", "48h"}, []any{"-1s", "48h0m1s"}},
		"expiry.forced_grace": {[]any{nil, "0s", "24h", "720h"}, []any{"-1s", "720h0m1s"}},
		"drain.timeout":       {[]any{"0s", "24h"}, []any{"-1s", "24h0m1s"}},
		"drain.hook": {
			[]any{[]string{"./leave", ""}, make256("a")},
			[]any{[]string{""}, append(make256("a"), "a"), []string{"a", long(4097)}},
		},
		"spot.enabled":            {[]any{true, false}, nil},
		"spot.source":             {[]any{"none", "aws", "gcp", "azure"}, []any{"", "AWS", "oracle"}},
		"spot.file":               {[]any{""}, []any{"/run/notice"}}, // more in TestNoticeSources
		"spot.endpoint":           {[]any{""}, []any{"http://127.0.0.1"}},
		"spot.max_lifetime":       {[]any{"1m", "8760h"}, []any{"59s", "0s", "8760h0m1s"}},
		"capacity.on_demand_base": {[]any{0, 5}, []any{-1, 6}},
		"capacity.spot":           {[]any{0, 100}, []any{-1, 101}},
		"capacity.fallback":       {[]any{"on_demand", "wait"}, []any{"spot", "On_demand"}},
		"capacity.fallback_after": {[]any{nil, "0s", "1h"}, []any{"-1s", "1h0m1s"}},
		"capacity.return_after":   {[]any{nil, "0s", "5m", "24h"}, []any{"-1s", "4m59s", "24h0m1s"}},
		"slots.name": {
			[]any{"", "web-${slot}", "${group}-${slot}", "n${slot}", "just-one"},
			[]any{"Web-${slot}", "web_${slot}", "web-${zone}", "-${slot}", "a.b", long(64)},
		},
		"scale.min":             {[]any{nil, 1, 20}, []any{0, -1, 21}},
		"scale.max":             {[]any{1, store.MaxSize}, []any{0, store.MaxSize + 1}},
		"scale.targets":         {nil, nil}, // more in TestScaleTargets
		"scale.targets[].value": {nil, nil}, "scale.targets[].metric": {nil, nil},
		"scale.targets[].from": {nil, nil}, "scale.targets[].per": {nil, nil},
		"scale.warmup":      {[]any{nil, "0s", "1h"}, []any{"-1s", "1h0m1s"}},
		"scale.tolerance":   {[]any{1, 50}, []any{-1, 51}},
		"scale.up.window":   {[]any{"0s", "1h"}, []any{"-1s", "1h0m1s"}},
		"scale.up.step":     {[]any{1, 10000, "1%", "100%"}, []any{10001, "101%"}},
		"scale.up.every":    {[]any{"1s", "1h"}, []any{"999ms", "-1s", "1h0m1s"}},
		"scale.down.window": {[]any{nil, "0s", "24h"}, []any{"-1s", "24h0m1s"}},
		"scale.down.step":   {[]any{1, 10000, "1%", "100%"}, []any{10001, "101%"}},
		"scale.down.every":  {[]any{"1s", "1h"}, []any{"999ms", "-1s", "1h0m1s"}},
		"scale.mode":        {[]any{"act", "advise"}, []any{"on", "Act"}},
		"budget_group":      {[]any{"", "shop", "a-1"}, []any{"Shop", "1a", "a-", "a b", long(41)}},
		"on_demand_age":     {[]any{"0s", "8760h"}, []any{"-1s", "8760h0m1s"}},
		"agent.version": {
			[]any{"", "auto", "v1.2.0", "v0.9.1-rc1", "v1.0.0-4-gabc"}, []any{"1.2.0", "v1.2", "latest", "v1.2.0 ", "v1.2.0/x"},
		},
		"agent.at_once":   {[]any{0, 10000, "0%", "100%"}, []any{10001, "101%"}},
		"agent.within":    {[]any{nil, "10s", "1h"}, []any{"9s", "0s", "1h0m1s"}},
		"agent.downgrade": {[]any{true, false}, nil},
		"stop_timeout":    {[]any{"0s", "10m"}, []any{"-1s", "10m0.001s"}},
	}
	for _, field := range store.Fields {
		if strings.HasPrefix(field.Path, "checks") || strings.HasPrefix(field.Path, "files") {
			continue // TestBoundsOfChecks, TestBoundsOfFiles
		}
		if strings.HasPrefix(field.Path, "rollout.analysis") {
			continue // TestAnalyses
		}
		if strings.HasPrefix(field.Path, "scale.schedule") {
			continue // TestBoundsOfSchedules
		}
		if strings.HasPrefix(field.Path, "drills") {
			continue // TestBoundsOfDrills
		}
		if strings.HasPrefix(field.Path, "windows[]") {
			continue // TestBoundsOfWindows
		}
		if strings.HasPrefix(field.Path, "busy.http") || strings.HasPrefix(field.Path, "busy.exec") {
			continue // TestBoundsOfBusy
		}
		if strings.HasPrefix(field.Path, "load_balancers") {
			continue // TestBoundsOfLoadBalancers
		}
		test, ok := tests[field.Path]
		if !ok {
			t.Errorf("no bounds of %s are tested", field.Path)
			continue
		}
		for _, value := range test.good {
			if err := with(t, field.Path, value).Validate(); err != nil {
				t.Errorf("%s: %v is refused: %v", field.Path, value, err)
			}
		}
		for _, value := range test.bad {
			g := with(t, field.Path, value)
			wrong := fieldErrors(g.Validate())
			if len(wrong) != 1 || wrong[0].Path != field.Path || wrong[0].Allowed != field.Allowed ||
				wrong[0].Rule != field.Rule {
				t.Errorf("%s: %v gives %v", field.Path, value, wrong)
				continue
			}
			message := wrong[0].Error()
			for _, says := range []string{field.Path, field.Allowed, field.Rule, wrong[0].Value} {
				if !strings.Contains(message, says) {
					t.Errorf("%q does not say %q", message, says)
				}
			}
		}
	}
}

func make256(arg string) []string {
	return slices.Repeat([]string{arg}, 256)
}

// with returns the group web with one field set, by its path in the group's JSON.
func with(t *testing.T, path string, value any) store.Group {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(store.Encode(web()), &doc); err != nil {
		t.Fatal(err)
	}
	at := doc
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		if at[step] == nil { // it is left out where nothing in it is set
			at[step] = map[string]any{}
		}
		at = at[step].(map[string]any)
	}
	at[steps[len(steps)-1]] = value
	if scale, ok := doc["scale"].(map[string]any); ok { // what the operator must say
		doc["size"] = 0
		if scale["max"] == nil {
			scale["max"] = 20
		}
		if scale["targets"] == nil {
			scale["targets"] = []any{map[string]any{"metric": "cpu", "value": 60}}
		}
	}
	switch path { // where the value would be wrong beside the default of another field
	case "report.interval":
		at["lease_ttl"] = "1h"
	case "capacity.on_demand_base":
		doc["size"] = 5
	case "flap.min_delay":
		at["max_delay"] = "24h"
	case "flap.max_delay":
		at["min_delay"] = "1s"
	}
	var g store.Group
	if err := json.Unmarshal(store.Encode(doc), &g); err != nil {
		t.Fatalf("%s: %v: %v", path, value, err)
	}
	return g
}

// proves SAFE-10
func TestReadGroupRefuses(t *testing.T) {
	for name, test := range map[string]struct{ value, says string }{
		"nothing":         {"", "JSON"},
		"no object":       {"[]", "array"},
		"unknown field":   {`{"schema": 1, "name": "web", "provider": "process", "sise": 3}`, "sise"},
		"two objects":     {`{"schema": 1, "name": "web", "provider": "process"} {}`, ""},
		"wrong type":      {`{"schema": 1, "name": "web", "provider": "process", "size": "3"}`, "size"},
		"wrong duration":  {`{"schema": 1, "name": "web", "provider": "process", "stop_timeout": "soon"}`, "soon"},
		"value too large": {`{"schema": 1, "name": "web", "provider": "process", "size": 100001}`, "100000"},
		"no name":         {`{"schema": 1, "provider": "process"}`, "name"},
	} {
		_, err := store.ReadGroup([]byte(test.value))
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, test.says)
		}
	}
	if _, err := store.ReadGroup([]byte(`{"schema": 2, "name": "web", "provider": "process"}`)); !errors.Is(err,
		store.ErrSchema) {
		t.Errorf("a newer schema: %v", err)
	}
}

// What rules.md says of a group in which nothing is said.
//
// proves ROLL-1, SAFE-2, FLAP-2, FLAP-3, DRAIN-1, EXP-1
func TestDefaultsAreThoseOfTheRules(t *testing.T) {
	g := web()
	second, minute := store.Duration(time.Second), store.Duration(time.Minute)
	if !reflect.DeepEqual(g.Rollout, store.RolloutSpec{
		Strategy: "proactive", MinimalAction: "live_update",
		ProgressDeadline: 10 * minute,
	}) {
		t.Errorf("rollout %+v", g.Rollout)
	}
	if g.Storm != (store.StormSpec{Min: 3, Percent: 50, Window: minute, Cooldown: minute, ProbeAfter: 5 * minute}) {
		t.Errorf("storm %+v", g.Storm)
	}
	if g.Flap != (store.FlapSpec{
		Failures: 3, Window: 5 * minute, MinDelay: 30 * second, MaxDelay: 16 * minute,
		Noise: 5 * second, GiveUpTime: 72 * 60 * minute, Reset: 5 * minute,
	}) {
		t.Errorf("flap %+v", g.Flap)
	}
	if g.Drain.Timeout != 5*minute || g.Expiry.EligibleAge != nil || g.Expiry.ForcedAge != nil || g.OnDemandAge != 0 ||
		g.Spot.Enabled || g.Budget.MaxUnavailable != nil {
		t.Errorf("got %+v", g)
	}
}

// proves ROLL-1
func TestTemplateHash(t *testing.T) {
	base := web()
	hash := base.InstanceSpec().TemplateHash()
	same := map[string]any{
		"size": 9, "report.interval": "2s", "stop_timeout": "1s",
		"labels": map[string]string{"a": "b"}, "heal.policy": "none",
	}
	for path, value := range same {
		if got := with(t, path, value).InstanceSpec().TemplateHash(); got != hash {
			t.Errorf("%s makes instances outdated", path)
		}
	}
	other := map[string]any{
		"provider": "qemu", "template.instance_type": "large", "template.zones": []string{"a"},
		"template.settings": map[string]string{"a": "b"}, "workload.run": []string{"./web"},
		"vars": map[string]string{"a": "b"},
	}
	seen := map[string]string{hash: "nothing"}
	for path, value := range other {
		got := with(t, path, value).InstanceSpec().TemplateHash()
		if was, twice := seen[got]; twice {
			t.Errorf("changing %s gives the hash of changing %s", path, was)
		}
		seen[got] = path
	}
	if again := web().InstanceSpec().TemplateHash(); again != hash || len(hash) != 9 {
		t.Errorf("hashes %s and %s", hash, again)
	}
}

func secretsOf(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("S%d", i)] = fmt.Sprintf("s%d", i)
	}
	return m
}

func manyTags(n int) map[string]string {
	tags := map[string]string{}
	for i := range n {
		tags[fmt.Sprint("tag", i)] = ""
	}
	return tags
}

// proves PROV-5: a group names one type, or several in order of preference
func TestOneTypeOrSeveral(t *testing.T) {
	both := store.DefaultGroup()
	both.Name, both.Provider = "web", "process"
	both.Template.InstanceType, both.Template.InstanceTypes = "large", []string{"small"}
	both.Complete()
	if err := both.Validate(); err == nil || !strings.Contains(err.Error(), "template.instance_types") {
		t.Errorf("one type and several: %v", err)
	}
	one, several := store.Template{InstanceType: "large"}, store.Template{InstanceTypes: []string{"large", "small"}}
	if got := fmt.Sprint(one.Types(), several.Types(), store.Template{}.Types()); got != "[large] [large small] []" {
		t.Errorf("types %s", got)
	}
	// An override of the type of a static group stands for that type alone.
	kind := "huge"
	static := both
	static.Template = several
	over := store.Override{Name: "web", Template: store.OverrideTemplate{InstanceType: &kind}}.Over(static)
	if got := over.Template.Types(); len(got) != 1 || got[0] != kind {
		t.Errorf("overridden, the types are %v", got)
	}
}
