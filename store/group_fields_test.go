package store_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// TestFieldsCoverTheGroup: whatever an operator may write is in the table that validates and
// documents it.
func TestFieldsCoverTheGroup(t *testing.T) {
	var want []string
	var walk func(prefix string, typ reflect.Type)
	walk = func(prefix string, typ reflect.Type) {
		for i := range typ.NumField() {
			field := typ.Field(i)
			if field.Type == reflect.TypeFor[store.OperatorState]() {
				continue // commands write it
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch kind := field.Type.Kind(); {
			case field.Type == reflect.TypeFor[store.LeaseLost](), // has a form of its own
				field.Type == reflect.TypeFor[store.FileChange]():
				want = append(want, prefix+name)
			case field.Anonymous:
				walk(prefix, field.Type)
			case kind == reflect.Struct:
				walk(prefix+name+".", field.Type)
			case kind == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct:
				walk(prefix+name+".", field.Type.Elem())
			case kind == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct:
				want = append(want, prefix+name)
				walk(prefix+name+"[].", field.Type.Elem())
			default:
				want = append(want, prefix+name)
			}
		}
	}
	walk("", reflect.TypeFor[store.Group]())
	want = slices.DeleteFunc(want, func(path string) bool { return path == "schema" }) // the program writes it
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

func TestFieldErrorShowsTheValue(t *testing.T) {
	for _, test := range []struct {
		path  string
		value any
		want  string
	}{
		{"size", -1, "size: -1: must be 0 to 100000"},
		{"heal.policy", "maybe", `heal.policy: "maybe": must be "recreate", "restart" or "none" (HEAL-1)`},
		{"budget.max_unavailable", 10001, "budget.max_unavailable: 10001: must be 0 to 10000, or 0% to 100% (HEAL-3)"},
		{"expiry.forced_age", "1s", "expiry.forced_age: 1s: must be 0s, or 1m0s to 87600h0m0s (EXP-1)"},
		{"report.interval", "999ms", "report.interval: 999ms: must be 1s to 5m0s (DET-1)"},
	} {
		if err := with(t, test.path, test.value).Validate(); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
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

// The source of notices needs a file, or can have an endpoint, and never says what is not looked
// at.
//
// proves SPOT-1
func TestNoticeSources(t *testing.T) {
	for _, c := range []struct {
		spec store.NoticeSpec
		bad  string // the field; "": it is right
	}{
		{store.NoticeSpec{Source: "file", File: "/run/notice"}, ""},
		{store.NoticeSpec{Source: "file"}, "spot.file"},
		{store.NoticeSpec{Source: "file", File: "run/notice"}, "spot.file"},
		{store.NoticeSpec{Source: "file", File: "/" + strings.Repeat("x", 4096)}, "spot.file"},
		{store.NoticeSpec{Source: "aws", File: "/run/notice"}, "spot.file"},
		{store.NoticeSpec{Source: "aws", Endpoint: "http://127.0.0.1:8080/below"}, ""},
		{store.NoticeSpec{Source: "gcp", Endpoint: "https://[fd20::1]"}, ""},
		{store.NoticeSpec{Source: "azure", Endpoint: "127.0.0.1:8080"}, "spot.endpoint"},
		{store.NoticeSpec{Source: "azure", Endpoint: "file:///etc/passwd"}, "spot.endpoint"},
		{store.NoticeSpec{Source: "azure", Endpoint: "http://host/?q=1"}, "spot.endpoint"},
		{store.NoticeSpec{Source: "none", Endpoint: "http://127.0.0.1"}, "spot.endpoint"},
		{store.NoticeSpec{Source: "file", File: "/run/notice", Endpoint: "http://127.0.0.1"}, "spot.endpoint"},
	} {
		g := web()
		g.Spot.NoticeSpec = c.spec
		var wrong *store.FieldError
		if err := g.Validate(); (err == nil) != (c.bad == "") || errors.As(err, &wrong) && wrong.Path != c.bad {
			t.Errorf("%+v: %v, want %q to be wrong", c.spec, err, c.bad)
		}
		if got := g.InstanceSpec().Notices; got.Watched() && got != c.spec {
			t.Errorf("%+v: an instance's record has %+v", c.spec, got)
		}
	}
	g := web()
	if got := g.InstanceSpec().Notices; got != (store.NoticeSpec{}) {
		t.Errorf("nothing is watched, and a record has %+v", got)
	}
	g.Spot.Enabled = true
	if w := g.Warnings(); len(w) != 1 || !strings.Contains(w[0], "SPOT-1") {
		t.Errorf("spot machines without a source of notices: %v", w)
	}
}

// A group that fences itself is warned of what that gives up, and of a workload that has less time
// than it says.
//
// proves SAFE-9
func TestFencingIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		lost store.LeaseLost
		stop time.Duration
		want []string
	}{
		{store.LeaseLost{Do: store.LeaseLostNone}, time.Minute, nil},
		{store.LeaseLost{Do: store.LeaseLostStop}, 5 * time.Second, []string{"SAFE-5"}},
		{store.LeaseLost{Do: store.LeaseLostPowerOff}, 30 * time.Second, []string{"SAFE-5", "killed after 5.6s"}},
		{store.LeaseLost{Do: store.LeaseLostRun, Run: []string{"./fence"}}, 30 * time.Second, []string{"SAFE-5"}},
	} {
		g := web()
		g.Report.OnLeaseLost, g.StopTimeout = c.lost, store.Duration(c.stop)
		w := g.Warnings()
		if len(w) != len(c.want) {
			t.Errorf("%s: warned of %q, want %q", c.lost, w, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(w[i], want) {
				t.Errorf("%s: warned of %q, want %q", c.lost, w[i], want)
			}
		}
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
	one, age := store.Amount(1), store.Duration(time.Hour)
	g.Budget.MaxUnavailable = &one
	if w := g.Warnings(); len(w) != 0 {
		t.Errorf("with one that may be taken down: %v", w)
	}
	g.Expiry.ForcedAge = &age
	if w := g.Warnings(); len(w) != 1 || !strings.Contains(w[0], "EXP-2") {
		t.Errorf("ages without an extra instance: %v", w)
	}
}
