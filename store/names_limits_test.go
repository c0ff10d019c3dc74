package store_test

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// An authority's limits forbid short names too, and limits that cannot be read forbid nothing: the
// authority itself decides.
func TestShortNamesAndUnreadableLimitsOfAnAuthority(t *testing.T) {
	domains := store.AuthorityLimits{Domains: []string{"web.internal"}, Networks: []string{"10.0.0.0/8"}}
	unreadable := store.AuthorityLimits{Networks: []string{"10.0.0/8"}}
	for _, c := range []struct {
		limits store.AuthorityLimits
		name   string
		want   bool
	}{
		{domains, "a", true},
		{domains, "a1", true},
		{domains, "7", false},
		{domains, "192.0.2.1", true},
		{unreadable, "192.0.2.1", false},
		{unreadable, "web.internal", true},
		{store.AuthorityLimits{}, "192.0.2.1", true},
	} {
		if got := c.limits.Forbids(c.name); got != c.want {
			t.Errorf("%+v forbids %s: %t", c.limits, c.name, got)
		}
	}
}

// An ID that has fewer than three parts names no group: nothing is counted there.
func TestIDsThatNameNoGroup(t *testing.T) {
	for _, id := range []string{"", "-", "web", "x-bcdfgh", "0-bcdfgh", "-0-bcdfgh", "web-"} {
		if group, _, _, known := store.PlaceOf(id); known || group != "" {
			t.Errorf("%q is of group %q, known %t", id, group, known)
		}
	}
}
