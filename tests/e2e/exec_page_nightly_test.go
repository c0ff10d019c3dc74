//go:build nightly

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// section is a part of a page under one heading, with the files that it shows and its commands.
type section struct {
	files map[string]string // by the name in their first line
	steps []step
}

// sectionOf reads a section as its reader adapts it: each edit is a text of the page and what it is
// here. All of them must be on the page.
func sectionOf(t *testing.T, page, heading string, edits map[string]string) section {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, part, is := strings.Cut(string(text), "\n"+heading+"\n")
	if !is {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	part, _, _ = strings.Cut(part, "\n##")
	for was, now := range edits {
		if !strings.Contains(part, was) {
			t.Fatalf("%s does not say %q below %s", page, was, heading)
		}
		part = strings.ReplaceAll(part, was, now)
	}
	s := section{files: map[string]string{}, steps: stepsIn(t, page, part)}
	for _, m := range regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(part, -1) {
		s.files[m[1]] = m[2]
	}
	return s
}

// upTo takes the next commands, up to one with that beginning.
func (s *section) upTo(t *testing.T, command string) []step {
	t.Helper()
	at := slices.IndexFunc(s.steps, func(s step) bool { return strings.HasPrefix(s.command, command) })
	if at < 0 {
		t.Fatalf("the page has no further command %q", command)
	}
	out := s.steps[:at]
	s.steps = s.steps[at:]
	return out
}

// A newcomer has the page of a provider of their own, and the example in shell. They test it, keep
// a group with it, kill a machine and freeze another one, end dev, start it again and remove the
// group. The page says what each command prints.
//
// proves PROV-1, PROV-2, DET-4, DET-7
func TestFromTheShellExampleToAHealingGroup(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	example, err := filepath.Abs("../../docs/providers/examples/processes.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(l.dir, "acme")
	edits := map[string]string{
		"/opt/leasehold/docs/providers/examples/processes.sh": example, "/var/lib/acme": dir,
		"/opt/leasehold/bin/leasehold-agent": bin("leasehold-agent"),
	}
	if os.Geteuid() != 0 {
		edits["      user: root # leave it out if you are not root\n"] = ""
	}
	page := sectionOf(t, "providers/exec.md", "### Processes, in shell", edits)
	for name, text := range page.files {
		l.file(name, text)
	}
	r := l.reader("web")
	r.carryOut(page.upTo(t, "leasehold dev"))

	words := strings.Fields(page.steps[0].command)
	listen := l.address()
	start := func() {
		l.startDev(append([]string{"--listen", listen}, words[2:]...)...)
		l.await("the settings of dev", func() bool { return strings.Contains(l.dev.stdout.String(), "ready ") })
	}
	start()
	l.follow()
	page.steps = page.steps[1:]
	l.await("the group", func() bool { return l.h.complete("web", 2) })
	r.carryOut(page.upTo(t, "leasehold group delete"))
	l.await("the group being healed", func() bool { return l.h.complete("web", 2) })
	ids := l.h.wanted("web")
	agents := []int{}
	for _, id := range ids {
		agents = append(agents, l.pidIn(filepath.Join(dir, "machines", id, "process")))
	}
	l.quit()
	const goOn = "machines of provider acme go on, with their workloads: 2."
	if said := l.dev.stdout.String(); !strings.Contains(said, goOn) {
		t.Errorf("the end of dev says nothing of the machines that go on: %s", said)
	}
	for _, pid := range agents {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("agent %d: %v", pid, err)
		}
	}
	start()
	r.carryOut(page.steps)
	l.quit()
	if left, err := filepath.Glob(filepath.Join(dir, "machines", "*")); err != nil || len(left) > 0 {
		t.Errorf("machines are left: %v, %v", left, err)
	}
}
