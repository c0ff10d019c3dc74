package scenario_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/scenario"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
)

// aHostileSetting has one group, and no file is there.
func aHostileSetting() scenario.Setting {
	return scenario.Setting{
		Groups: []store.Group{{Name: "web", Size: 3, Provider: "process"}},
		File:   func(name string) ([]store.Group, error) { return nil, fmt.Errorf("no file %q", name) },
	}
}

// proves SEC-5
func TestHostileScenariosAreRefused(t *testing.T) {
	const n = 1<<20 - 100
	for name, text := range map[string]string{
		"a list in a list": "events: " + strings.Repeat("[", n),
		"nested":           "events: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"fields":           strings.Repeat("a: 1\n", n/5),
		"events":           "events:\n" + strings.Repeat("- {at: 1m, kill: {count: 1}}\n", n/30),
		"empty events":     "events: [" + strings.Repeat("{},", n/3) + "]",
		"zeros":            strings.Repeat("\x00", n),
		"an alias":         "events: &a [*a]\n",
		"aliases":          "provider: &p {zones: {a: 1}}\nshard: *p\n",
		"long key":         strings.Repeat("x", n) + ": 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Read("bad.yaml", strings.NewReader(text), aHostileSetting())
			var problems yamlfile.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("the error is %v", err)
			}
			if len(problems) > 101 || len(err.Error()) > 220_000 {
				t.Errorf("%d problems are told, in %d bytes", len(problems), len(err.Error()))
			}
		})
	}
}
