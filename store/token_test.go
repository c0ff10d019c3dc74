package store_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Machines are tagged with the call that made them: a release with other names of calls would not
// know those that run.
func TestNamesOfCalls(t *testing.T) {
	for hash, want := range map[string]string{
		"0123456789abcdef0123456789abcdef": "0123456789abcdef", "0123456789abcdef": "0123456789abcdef", "ab": "ab", "": "",
	} {
		if got := store.CallOf(hash); got != want {
			t.Errorf("the call of %q is %q, want %q", hash, got, want)
		}
	}
}

// Only what can be the hash of a token is taken for one: a token itself, sent by mistake, is not
// stored.
func TestFormOfATokenHash(t *testing.T) {
	hash := store.TokenHash("x")
	for s, want := range map[string]bool{
		hash: true, store.NewToken(): false, "": false, "abcd": false, hash[:62]: false, hash + "ab": false,
		hash + "z": false, hash[:63] + "z": false, strings.ToUpper(hash): false, " " + hash[:63]: false,
	} {
		if store.IsTokenHash(s) != want {
			t.Errorf("%q is taken for a hash: %t", s, !want)
		}
	}
}
