package haproxy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// HAProxy accepts the configurations that the page shows.
func TestThePageOfHAProxy(t *testing.T) {
	text, err := os.ReadFile("../../../docs/balancers/haproxy.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy"
	}
	shown := strings.Split(strings.ReplaceAll(string(text), "\n   ", "\n"), "```haproxy\n")[1:]
	if len(shown) != 2 {
		t.Fatalf("the page shows %d configurations", len(shown))
	}
	for _, rest := range shown {
		config, _, _ := strings.Cut(rest, "```")
		path := filepath.Join(t.TempDir(), "haproxy.cfg")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.CommandContext(t.Context(), program, "-c", "-f", path).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
}
