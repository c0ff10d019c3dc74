package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A directory of 50 groups is shown and applied on an etcd with TLS and roles. How long that takes
// is printed: 0.1 s, and 0.5 s for what is shown, where this was written.
//
// proves REC-14
func TestApplyFiftyGroups(t *testing.T) {
	g := newGuarded(t)
	t.Chdir(t.TempDir())
	g.must(g.as("root"), "auth", "init")
	g.fill()
	fleet := func(size int) {
		t.Helper()
		if err := os.MkdirAll("fleet", 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			name := fmt.Sprintf("group-%02d", i)
			text := fmt.Sprintf("name: %s\nprovider: process\nsize: %d\nworkload: {run: [./web]}\n"+
				"checks: [{http: {port: \"8080\", path: /healthz}}]\n", name, size)
			if err := os.WriteFile(filepath.Join("fleet", name+".yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply := func(what string, want int, flags ...string) {
		t.Helper()
		begun := time.Now()
		code, out, err := g.run(g.as("operator"), append([]string{"apply", "-f", "fleet", "--source", "shop"}, flags...)...)
		if int(code) != want {
			t.Fatalf("%s: exit %d\n%s%s", what, code, out, err)
		}
		t.Logf("50 groups %s in %s", what, time.Since(begun).Round(time.Millisecond))
	}
	fleet(2)
	apply("shown as new", 6, "--diff")
	apply("created", 0)
	fleet(3)
	apply("shown as changed", 6, "--diff")
	apply("changed", 0)
	apply("left as they are", 0)
}
