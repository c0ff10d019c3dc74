package store_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A report is another one when something has changed in it that others act on. A clock in another
// time zone changes nothing.
func TestWhatMakesReportsDiffer(t *testing.T) {
	for kind, c := range map[string]struct{ differ, want []string }{
		"file": {
			differing(t, store.FileReport.Same),
			[]string{"Path", "State", "Why", "At", "Version", "Ends"},
		},
		"check": {
			differing(t, store.CheckReport.Same),
			[]string{"Name", "Healthy", "Optional", "Pending"},
		},
		"upgrade": {
			differing(t, func(a, b store.UpgradeReport) bool { return a.Same(&b) }),
			[]string{"Token", "Version", "Result", "Why"},
		},
	} {
		if !slices.Equal(c.differ, c.want) {
			t.Errorf("reports of a %s differ by %q, want %q", kind, c.differ, c.want)
		}
	}
	file := filled[store.FileReport]()
	elsewhere := file
	east := time.FixedZone("east", 3600)
	elsewhere.At, elsewhere.Ends = file.At.In(east), file.Ends.In(east)
	if !file.Same(elsewhere) {
		t.Error("the same times in another time zone are taken for others")
	}
}

// differing returns the fields of a report by which two of them differ.
func differing[T any](t *testing.T, same func(a, b T) bool) (fields []string) {
	t.Helper()
	report := filled[T]()
	if !same(report, report) {
		t.Errorf("%+v differs from itself", report)
	}
	for i := range reflect.TypeFor[T]().NumField() {
		other := report
		reflect.ValueOf(&other).Elem().Field(i).SetZero()
		if !same(report, other) {
			fields = append(fields, reflect.TypeFor[T]().Field(i).Name)
		}
	}
	return fields
}

// Where an agent was offered nothing, it reports nothing: that differs from each report.
func TestNoReportOfAnUpgrade(t *testing.T) {
	var none *store.UpgradeReport
	if !none.Same(nil) {
		t.Error("no report differs from none")
	}
	if one := (&store.UpgradeReport{}); none.Same(one) || one.Same(nil) {
		t.Error("no report equals one")
	}
}
