package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/provider/suite"
)

// The example in Python keeps the contract, as leasehold provider test finds it against a real LXD.
// What it does not claim is said to be not proved.
//
// proves PROV-1, PROV-2
func TestTheExampleInPython(t *testing.T) {
	t.Parallel()
	l := useLXD(t)
	example, err := filepath.Abs("../../docs/providers/examples/lxd.py")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "machines")
	user := ""
	if os.Geteuid() == 0 {
		user = "user: root, "
	}
	providers := w.file("providers.yaml", fmt.Sprintf(
		"providers: {acme: {exec: {command: [%s], %sconfig: {socket: %s, pool: %s, profiles: []}}}}\n",
		example, user, l.Socket(), lxdtest.Pool))
	group := w.file("web.yaml", "name: web\nsize: 1\nprovider: acme\ntemplate: {settings: {image: "+
		"tiny}}\nworkload: {run: [/bin/wait]}\n")
	curl := "curl -sf --unix-socket " + l.Socket() + " http://lxd/1.0/instances/$REF"
	out := w.must("provider", "test", "--providers", providers, "-f", group, "--poll", "100ms", "-o", "json",
		"--kill", "kill -9 $("+curl+"/state | jq .metadata.pid)", "--remains", curl+" || true")
	var results []providertest.Recorded
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != len(suite.Promises()) {
		t.Fatalf("provider test says, %v:\n%s", err, out)
	}
	for _, r := range results {
		if err := providertest.Record("exec (lxd.py)", suite.Result{
			Promise: r.Promise, Outcome: r.Outcome, Why: r.Why,
		}); err != nil {
			t.Error(err)
		}
		if want := r.Promise != "ConsoleIsKept"; (r.Outcome == suite.Proved) != want || r.Outcome == suite.Failed {
			t.Errorf("%s: %s %q", r.Promise, r.Outcome, r.Why)
		}
	}
}
