package version_test

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/agent/version"
)

// proves PROV-7: a downgrade is known as one
func TestOrder(t *testing.T) {
	inOrder := []string{
		"another", "dev", "v0.9.0", "v0.9.1-rc1", "v0.9.1-rc1-3-gabc", "v0.9.1-rc2", "v0.9.1-rc10", "v0.9.1",
		"v0.9.1-4-gabc-dirty", "v0.9.1-10-gdef", "v0.10.0", "v1.0.0",
	}
	for i, a := range inOrder {
		for j, b := range inOrder {
			known := i > 1 && j > 1
			if got := version.Later(a, b); got != (known && i > j) {
				t.Errorf("%s later than %s: %v", a, b, got)
			}
		}
	}
	mixed := slices.Clone(inOrder)
	slices.Reverse(mixed)
	if slices.SortFunc(mixed, version.Compare); !slices.Equal(mixed, inOrder) {
		t.Errorf("%v", mixed)
	}
	for _, no := range []string{"", "v1", "v1.2", "v1.2.x", "v1.2.-3", "dev"} {
		if v, ok := version.Parse(no); ok {
			t.Errorf("%q: %+v", no, v)
		}
	}
}
