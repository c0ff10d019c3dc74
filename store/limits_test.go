package store_test

import (
	"maps"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Limits are read in any order and with spaces, and kept in one form: equal limits have equal
// texts.
//
// proves CAP-1
func TestLimitsAreRead(t *testing.T) {
	for text, test := range map[string]struct {
		kept, shown string
		byName      map[string]int
	}{
		"":                    {"", "none", nil},
		"none":                {"", "none", nil},
		"ec2:100":             {"ec2:100", "ec2:100", map[string]int{"ec2": 100}},
		"lxd:20, ec2:1000000": {"ec2:1000000,lxd:20", "ec2:1000000,lxd:20", map[string]int{"ec2": 1_000_000, "lxd": 20}},
		"ec2:eu:0":            {"ec2:eu:0", "ec2:eu:0", map[string]int{"ec2:eu": 0}},
	} {
		var l store.Limits
		if err := l.UnmarshalText([]byte(text)); err != nil || string(l) != test.kept || l.String() != test.shown {
			t.Errorf("%q is kept as %q and shown as %q: %v", text, string(l), l.String(), err)
		}
		if got := l.ByName(); !maps.Equal(got, test.byName) {
			t.Errorf("%q: got %v, want %v", text, got, test.byName)
		}
	}
}

// What is no name and number is refused with the part that is wrong, and changes nothing.
//
// proves CAP-1
func TestLimitsThatAreRefused(t *testing.T) {
	const form, twice = " is not a name and a number like ec2:100", ", or is there twice"
	for text, want := range map[string]string{
		"ec2":          `"ec2"` + form,
		":5":           `":5"` + form,
		"ec2:1,":       `""` + form,
		" :5":          `" :5"` + form + twice,
		"ec2:":         `"ec2:"` + form + twice,
		"ec2:-1":       `"ec2:-1"` + form + twice,
		"ec2:1000001":  `"ec2:1000001"` + form + twice,
		"a:1,ec2:x":    `"ec2:x"` + form + twice,
		"ec2:1, ec2:2": `" ec2:2"` + form + twice,
	} {
		l := store.Limits("lxd:20")
		if err := l.UnmarshalText([]byte(text)); err == nil || err.Error() != want || l != "lxd:20" {
			t.Errorf("%q: %q, %v, want %s", text, string(l), err, want)
		}
		if got := store.Limits(text).ByName(); got != nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}
