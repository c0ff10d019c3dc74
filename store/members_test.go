package store_test

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A member of etcd that does not say its name is known by its address.
func TestTitlesOfMembers(t *testing.T) {
	for want, m := range map[string]store.Member{
		"etcd a":                {Name: "a", Address: "10.0.0.1:2379"},
		"etcd at 10.0.0.1:2379": {Address: "10.0.0.1:2379", Down: "connection refused"},
	} {
		if got := m.Title(); got != want {
			t.Errorf("%+v is %q, want %q", m, got, want)
		}
	}
}
