package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// validGroup returns a group of which nothing is wrong.
func validGroup() store.Group {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = "web", 1, "mem"
	g.Complete()
	return g
}

// Values at the very bounds are allowed, and those just beyond them are not.
//
// proves DET-2, DET-9
func TestValuesAtTheirBounds(t *testing.T) {
	check := func(interval, timeout time.Duration, port store.Port) func(*store.Group) {
		return func(g *store.Group) {
			g.Checks = []store.Check{{
				Name: "c", TCP: &store.TCPCheck{Port: port}, Interval: store.Duration(interval), Timeout: store.Duration(timeout),
				UnhealthyThreshold: 2, HealthyThreshold: 2,
			}}
		}
	}
	variable := func(n int) store.Port { return store.Port("${" + strings.Repeat("x", n-3) + "}") }
	lease := func(interval, ttl time.Duration) func(*store.Group) {
		return func(g *store.Group) {
			g.Report.Interval, g.Report.LeaseTTL = store.Duration(interval), store.Duration(ttl)
		}
	}
	for name, c := range map[string]struct {
		change func(*store.Group)
		wrong  string // the field; "": none
	}{
		"a port of 100 characters":         {check(5*time.Second, time.Second, variable(100)), ""},
		"a port of 101 characters":         {check(5*time.Second, time.Second, variable(101)), "checks[0].tcp.port"},
		"a timeout of a second":            {check(2*time.Second, time.Second, "80"), ""},
		"a timeout below a second":         {check(2*time.Second, time.Second-1, "80"), "checks[0].timeout"},
		"a timeout as long as its time":    {check(2*time.Second, 2*time.Second, "80"), "checks[0].timeout"},
		"no time for a timeout":            {check(time.Second, time.Second, "80"), "checks[0].timeout"},
		"a lease of three intervals":       {lease(time.Second, 3*time.Second), ""},
		"a lease of less":                  {lease(time.Second, 2*time.Second), "report.lease_ttl"},
		"a lease that is no whole seconds": {lease(time.Second, 3500*time.Millisecond), "report.lease_ttl"},
	} {
		g := validGroup()
		c.change(&g)
		err := g.Validate()
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: got %v, want an error of %s", name, err, c.wrong)
		case c.wrong == "checks[0].timeout" && strings.Contains(err.Error(), "checks[0].interval"):
			t.Errorf("%s: got %v, want no error of the interval", name, err)
		}
	}
}

// Fields that are promised for later are refused by name, none of them silently.
func TestPlannedFields(t *testing.T) {
	for _, path := range []string{"template.subnet_pool"} {
		if !slices.Contains(store.Planned, path) {
			t.Errorf("%s is not refused by name", path)
		}
	}
}

// A value with anything after its object is no group.
func TestGroupWithSomethingBehindIt(t *testing.T) {
	data := store.Encode(validGroup())
	if _, err := store.ReadGroup(data); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ReadGroup(append(data, "{}"...)); err == nil {
		t.Error("two objects are read as one group")
	}
}
