package cli

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

func TestReplicasOfSeveralReleasesAreListed(t *testing.T) {
	for want, versions := range map[string][]string{
		"":                             {"0.2", "0.2"},
		" (1 of 0.1, 2 of 0.2)":        {"0.2", "0.1", "0.2"},
		" (1 of no version, 1 of 0.2)": {"", "0.2"},
	} {
		var replicas []store.Versioned[store.Replica]
		for _, v := range versions {
			replicas = append(replicas, store.Versioned[store.Replica]{Record: store.Replica{Version: v}})
		}
		if got := mixture(replicas); got != want {
			t.Errorf("%q: %q, want %q", versions, got, want)
		}
	}
}
