package providerfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/providerfile"
)

// What is wrong in the file is said before anything is opened. Package adapters tests the file with
// all kinds that there are.
//
// proves SEC-7
func TestWhatIsNoFile(t *testing.T) {
	kinds := providerfile.Kinds{
		Providers: map[string]providerfile.OpenProvider{"exec": nil, "lxd": nil},
		Balancers: map[string]providerfile.OpenBalancer{"haproxy": nil},
	}
	for text, says := range map[string]string{
		"- a":                                 "must have at least one of the fields",
		"provider: {a: {exec: {}}}":           "unknown field",
		"providers: {}":                       "names and the provider of each",
		"providers: {A: {exec: {}}}":          "must be a name",
		"providers: {a: exec}":                "one kind of provider",
		"providers: {a: {exec: {}, lxd: {}}}": "one kind of provider",
		"providers:\n  a:\n    exek: {}":      `"exek" is no kind of provider; the kinds are exec, lxd: did you mean exec?`,
		"providers: {a: {exec: {nice: 010}}}": "must be a whole number in plain digits",
		"balancers: {}":                       "names and the balancer of each",
		"balancers: {a: {haproxi: {}}}":       `"haproxi" is no kind of balancer; the kinds are haproxy: did you mean haproxy?`,
	} {
		path := filepath.Join(t.TempDir(), "providers.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := kinds.Read(path)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
