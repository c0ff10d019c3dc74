package store_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// web is a group in which only what the operator must say is said.
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

// TestFieldsCoverTheGroup: whatever an operator may write is in the table that validates and documents it.
func TestFieldsCoverTheGroup(t *testing.T) {
	var want []string
	var walk func(prefix string, typ reflect.Type)
	walk = func(prefix string, typ reflect.Type) {
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Type.Kind() == reflect.Struct {
				walk(prefix+name+".", field.Type)
			} else {
				want = append(want, prefix+name)
			}
		}
	}
	walk("", reflect.TypeFor[store.Group]())
	notWritten := []string{"schema", "paused", "deleting"} // by the program and by commands of their own
	want = slices.DeleteFunc(want, func(path string) bool { return slices.Contains(notWritten, path) })
	var got []string
	for _, f := range store.Fields {
		got = append(got, f.Path)
		if f.Type == "" || f.Allowed == "" || f.Doc == "" {
			t.Errorf("%s is not described: %+v", f.Path, f)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the table has %v, the group %v", got, want)
	}
	for _, path := range store.Planned {
		if slices.Contains(got, path) {
			t.Errorf("%s is planned and there at once", path)
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
		"name":                         {[]any{"a", "a1-b", "a" + long(39)}, []any{"", "1a", "-a", "a-", "A", "a_b", "a/b", "a" + long(40)}},
		"size":                         {[]any{0, store.MaxSize}, []any{-1, store.MaxSize + 1}},
		"lifecycle":                    {[]any{"service"}, []any{"", "task", "Service"}},
		"labels":                       {[]any{many(100), map[string]string{"a/b.c_D-1": long(4096)}}, []any{many(101), map[string]string{"": ""}, map[string]string{"a b": ""}, map[string]string{"a": long(4097)}, map[string]string{long(64): ""}}},
		"provider":                     {[]any{"process", "qemu"}, []any{"", "Process", "a/b"}},
		"template.instance_type":       {[]any{"", long(100)}, []any{long(101)}},
		"template.zones":               {[]any{[]string{"a", "b"}, list(50)}, []any{[]string{"a", "a"}, []string{""}, list(51), []string{long(101)}}},
		"template.settings":            {[]any{many(100), map[string]string{"_a1": ""}}, []any{many(101), map[string]string{"1a": ""}, map[string]string{"a-b": ""}}},
		"workload.run":                 {[]any{[]string{"./web", ""}, make256("a")}, []any{[]string{""}, append(make256("a"), "a"), []string{"a", long(4097)}}},
		"vars":                         {[]any{many(100), map[string]string{"a": long(4096)}}, []any{many(101), map[string]string{"a.b": ""}, map[string]string{"a": long(4097)}}},
		"report.interval":              {[]any{"1s", "5m"}, []any{"999ms", "5m0.001s", "0s", "-1s"}},
		"report.lease_ttl":             {[]any{"15s", "1h"}, []any{"14s", "15.5s", "1h0m1s", "-17s", "0s"}},
		"registration_timeout":         {[]any{"10s", "24h"}, []any{"9.999s", "24h0m1s", "0s"}},
		"max_checking_health_duration": {[]any{"0s", "24h"}, []any{"-1s", "24h0m1s"}},
		"heal.policy":                  {[]any{"recreate", "none"}, []any{"", "restart"}},
		"budget.max_expansion":         {[]any{0, 100}, []any{-1, 101}},
		"budget.max_unavailable":       {[]any{0, 100}, []any{-1, 101}},
		"budget.max_creating":          {[]any{0, 100}, []any{-1, 101}},
		"budget.max_deleting":          {[]any{0, 100}, []any{-1, 101}},
		"flap.failures":                {[]any{1, 100}, []any{0, -1, 101}},
		"flap.window":                  {[]any{"1s", "24h"}, []any{"999ms", "24h0m1s"}},
		"flap.min_delay":               {[]any{"1s", "1h"}, []any{"0s", "1h0m1s"}},
		"flap.max_delay":               {[]any{"1s", "24h"}, []any{"0s", "24h0m1s"}},
		"flap.reset":                   {[]any{"1s", "24h"}, []any{"0s", "24h0m1s"}},
		"stop_timeout":                 {[]any{"0s", "10m"}, []any{"-1s", "10m0.001s"}},
	}
	for _, field := range store.Fields {
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
			if len(wrong) != 1 || wrong[0].Path != field.Path || wrong[0].Allowed != field.Allowed || wrong[0].Rule != field.Rule {
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

func TestFieldErrorShowsTheValue(t *testing.T) {
	for _, test := range []struct {
		path  string
		value any
		want  string
	}{
		{"size", -1, "size: -1: must be 0 to 100000"},
		{"heal.policy", "restart", `heal.policy: "restart": must be "recreate" or "none" (this version does not restart) (HEAL-1)`},
		{"report.interval", "999ms", "report.interval: 999ms: must be 1s to 5m0s (DET-1)"},
	} {
		if err := with(t, test.path, test.value).Validate(); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

func make256(arg string) []string {
	return slices.Repeat([]string{arg}, 256)
}

// with is the group web with one field set, by its path in the group's JSON.
func with(t *testing.T, path string, value any) store.Group {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(store.Encode(web()), &doc); err != nil {
		t.Fatal(err)
	}
	at := doc
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		at = at[step].(map[string]any)
	}
	at[steps[len(steps)-1]] = value
	if path == "report.interval" {
		at["lease_ttl"] = "1h" // a longer interval would be wrong beside the default
	}
	var g store.Group
	if err := json.Unmarshal(store.Encode(doc), &g); err != nil {
		t.Fatalf("%s: %v: %v", path, value, err)
	}
	return g
}

// fieldErrors takes the joined error of Validate apart.
func fieldErrors(err error) []*store.FieldError {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var out []*store.FieldError
	for _, err := range joined.Unwrap() {
		var field *store.FieldError
		if errors.As(err, &field) {
			out = append(out, field)
		}
	}
	return out
}

func TestValidateNamesEveryWrongField(t *testing.T) {
	g := web()
	g.Size, g.Name, g.Flap.Failures = -1, "", 0
	var paths []string
	for _, err := range fieldErrors(g.Validate()) {
		paths = append(paths, err.Path)
	}
	if want := []string{"name", "size", "flap.failures"}; !slices.Equal(paths, want) {
		t.Errorf("wrong are %v, want %v", paths, want)
	}
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
	if _, err := store.ReadGroup([]byte(`{"schema": 2, "name": "web", "provider": "process"}`)); !errors.Is(err, store.ErrSchema) {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	g := web()
	if w := g.Warnings(); len(w) != 0 {
		t.Errorf("the defaults are warned of: %v", w)
	}
	g.Budget.MaxExpansion = 0
	if w := g.Warnings(); len(w) != 1 || !strings.Contains(w[0], "HEAL-3") {
		t.Errorf("a budget of nothing: %v", w)
	}
}

// proves ROLL-1
func TestTemplateHash(t *testing.T) {
	base := web()
	hash := base.InstanceSpec().TemplateHash()
	same := map[string]any{"size": 9, "report.interval": "2s", "stop_timeout": "1s", "labels": map[string]string{"a": "b"}, "heal.policy": "none"}
	for path, value := range same {
		if got := with(t, path, value).InstanceSpec().TemplateHash(); got != hash {
			t.Errorf("%s makes instances outdated", path)
		}
	}
	other := map[string]any{
		"provider": "qemu", "template.instance_type": "large", "template.zones": []string{"a"},
		"template.settings": map[string]string{"a": "b"}, "workload.run": []string{"./web"}, "vars": map[string]string{"a": "b"},
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
