package store_test

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// proves SEC-6
func TestSecretsAreNoVars(t *testing.T) {
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Workload.Run = "web", "process", []string{"./web"}
	g.Vars, g.Secrets = map[string]string{"A": "x"}, map[string]string{"B": "x"}
	g.Complete()
	if err := g.Validate(); err != nil {
		t.Errorf("refused: %v", err)
	}
	plain := g
	plain.Secrets = nil
	if a, b := g.InstanceSpec(), plain.InstanceSpec(); a.TemplateHash() == b.TemplateHash() ||
		a.ConfigHash() == b.ConfigHash() {
		t.Error("a template with secrets has the hash of one without")
	}
	g.Secrets = map[string]string{"A": "x"}
	if wrong := fieldErrors(g.Validate()); len(wrong) != 1 || wrong[0].Path != "secrets" {
		t.Errorf("a variable that is in vars too: %v", wrong)
	}
}
