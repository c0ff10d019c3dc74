package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// The example in Python keeps the contract, as leasehold provider test finds it against a real LXD.
// What it does not claim is said to be not proved.
//
// proves PROV-1, PROV-2
func TestTheExampleInPython(t *testing.T) {
	t.Parallel()
	l, err := lxdtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	idle, err := lxdtest.BuildInit(t.TempDir())
	if err == nil {
		err = l.Import("tiny", map[string]string{"/sbin/init": idle})
	}
	if err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs("../../docs/providers/examples/lxd.py")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "machines")
	write := func(name, text string) string {
		path := filepath.Join(w.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user: root, "
	}
	providers := write("providers.yaml", fmt.Sprintf(
		"providers: {acme: {exec: {command: [%s], %sconfig: {socket: %s, pool: %s, profiles: []}}}}\n",
		example, user, l.Socket(), lxdtest.Pool))
	group := write("web.yaml", "name: web\nsize: 1\nprovider: acme\ntemplate: {settings: {image: tiny}}\nworkload: {run: [/bin/wait]}\n")
	curl := "curl -sf --unix-socket " + l.Socket() + " http://lxd/1.0/instances/$REF"
	out := w.must("provider", "test", "--providers", providers, "-f", group, "--poll", "100ms",
		"--kill", "kill -9 $("+curl+"/state | jq .metadata.pid)", "--remains", curl+" || true")
	if !strings.Contains(out, "20 proved, 0 failed, 1 not proved") {
		t.Errorf("provider test says:\n%s", out)
	}
}
