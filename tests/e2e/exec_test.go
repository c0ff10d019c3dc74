package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
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
	providers := l.file("providers.yaml", fmt.Sprintf(
		"providers: {acme: {exec: {command: [%s], %sconfig: {dir: %s, agent: [%s], zones: [a, b]}}}}\n",
		example, user, dir, bin("leasehold-agent")))
	group := func(size, nice int) string {
		return l.file("web.yaml", fmt.Sprintf(
			"name: web\nsize: %d\nprovider: acme\ntemplate: {settings: {nice: %d}}\nworkload: {run: [sleep, infinity]}\n",
			size, nice))
	}
	l.startDev("--listen", l.address(), "--providers", providers, "--group", group(3, 3))
	l.follow()
	l.await("the group", func() bool { return l.h.complete("web", 3) })
	l.showsSchema("acme", "maximum: 19")

	victim := l.h.wanted("web")[0]
	l.healsCrash("web", victim, l.pidIn(filepath.Join(dir, "machines", victim, "process")), 3)

	ids := l.h.wanted("web")
	p := l.cli("group", "apply", "-f", group(3, 50), "--wait")
	complains(t, p, 1, "template.settings.nice: maximum: got 50, want 19", "web.yaml:4:29")
	l.same("web", ids)
	l.recreates("web", group(2, 7), 2)
	made, err := os.ReadFile(filepath.Join(dir, "machines", l.h.wanted("web")[0], "nice"))
	if err != nil || string(made) != "7\n" {
		t.Errorf("the machine has the setting %q, %v", made, err)
	}
	l.must("group", "delete", "web", "--confirm", "web", "--wait")
	left, err := filepath.Glob(filepath.Join(dir, "machines", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("of the machines are left: %v, %v", left, err)
	}
	l.quit()
}
