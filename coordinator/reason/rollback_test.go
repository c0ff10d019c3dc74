package reason

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// What a rollback cannot bring back is said, with the secrets that the workload gets.
//
// proves ROLL-4, ROLL-5
func TestWhatARollbackLeaves(t *testing.T) {
	var plain, secret store.InstanceSpec
	secret.Secrets = map[string]string{"DB": "db", "DB2": "db", "A": "api"}
	for _, c := range []struct {
		spec  store.InstanceSpec
		whole bool
		want  string
	}{
		{plain, true, "not brought back: what the workloads have written, and the values of secrets"},
		{secret, true, "not brought back: what the workloads have written, and the values of secrets (api, db)"},
		{secret, false, "not brought back: what the workloads have written, and the values of secrets (api, db); " +
			"size, budgets, rollout and windows stay as they are"},
	} {
		if got := LeftBy(&c.spec, c.whole).String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	e := store.Effect{Kind: store.EffectRollBack, Name: "t1", Names: []string{"api"}}
	left := Left{Secrets: e.Names, Beside: true}
	if got, want := Effect(e), "rolled back to template t1; "+left.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
