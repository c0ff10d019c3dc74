package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A group of machines that a program of the user's makes: it comes up, heals, is changed, refuses
// settings that the program's schema does not allow, and leaves nothing when it is deleted.
//
// proves PROV-2, PROV-3
func TestAGroupOfAProgramOfTheUsers(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	example, err := filepath.Abs("../../docs/providers/examples/processes.sh")
	if err != nil {
		t.Fatal(err)
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user: root, "
	}
	dir := filepath.Join(l.dir, "acme")
	write := func(name, text string) string {
		path := filepath.Join(l.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	providers := write("providers.yaml", fmt.Sprintf(
		"providers: {acme: {exec: {command: [%s], %sconfig: {dir: %s, agent: [%s], zones: [a, b]}}}}\n",
		example, user, dir, bin("leasehold-agent")))
	group := func(size, nice int) string {
		return write("web.yaml", fmt.Sprintf(
			"name: web\nsize: %d\nprovider: acme\ntemplate: {settings: {nice: %d}}\nworkload: {run: [sleep, infinity]}\n",
			size, nice))
	}
	l.startDev("--listen", l.address(), "--providers", providers, "--group", group(3, 3))
	l.follow()
	l.await("the group", func() bool { return l.h.complete("web", 3) })
	if text := l.must("provider", "show", "acme"); !strings.Contains(text, "maximum: 19") {
		t.Errorf("provider show does not print the schema:\n%s", text)
	}

	victim := l.h.wanted("web")[0]
	var pid int
	text, err := os.ReadFile(filepath.Join(dir, "machines", victim, "process"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	before := l.caughtUp()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dead := l.awaitEntry("the replacement being asked for", before,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	if dead.Rule != "DET-4" {
		t.Errorf("not replaced because it was dead: %s", dead)
	}
	l.await("the group being healed",
		func() bool { return l.h.complete("web", 3) && !slices.Contains(l.h.wanted("web"), victim) })

	ids := l.h.wanted("web")
	p := l.cli("group", "apply", "-f", group(3, 50), "--wait")
	complains(t, p, 1, "template.settings.nice: maximum: got 50, want 19", "web.yaml:4:29")
	l.same("web", ids)
	l.must("group", "apply", "-f", group(2, 7), "--confirm", "web", "--wait")
	l.await("the change", func() bool {
		return l.h.complete("web", 2) && !slices.ContainsFunc(ids, func(id string) bool {
			return slices.Contains(l.h.wanted("web"), id)
		})
	})
	made, err := os.ReadFile(filepath.Join(dir, "machines", l.h.wanted("web")[0], "nice"))
	if err != nil || string(made) != "7\n" {
		t.Errorf("the machine has the setting %q, %v", made, err)
	}
	l.must("group", "delete", "web", "--confirm", "web", "--wait")
	left, err := filepath.Glob(filepath.Join(dir, "machines", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("of the machines are left: %v, %v", left, err)
	}
	l.dev.signal(syscall.SIGINT)
	l.waitEnd(l.dev)
}
