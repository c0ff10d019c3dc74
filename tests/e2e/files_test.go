package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/disk"
	"github.com/leasehold/leasehold/tests/tier"
)

// managed returns where a file of an instance is that the group has as ${dir}/files/NAME.
func (w *world) managed(id, name string) string {
	return filepath.Join(w.machines, id, "work", "files", name)
}

// content returns what is in it; "" if it is not there.
func (w *world) content(id, name string) string {
	data, err := os.ReadFile(w.managed(id, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// fileReport returns what the last report of an instance says of a file.
func (w *world) fileReport(id, name string) store.FileReport {
	for _, f := range currentOf[store.Report](w.h, store.KindReports)[id].Record.Files {
		if strings.HasSuffix(f.Path, "/"+name) {
			return f
		}
	}
	return store.FileReport{}
}

// replaceIn replaces a text in a file.
func replaceIn(t *testing.T, path, old, now string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(data), old) {
		err = fmt.Errorf("%q is not in %s", old, data)
	}
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(data), old, now, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Files reach all instances before their workloads start, a change of them reaches all while the
// workloads run on, a wrong one is refused with its place, what is changed on a machine is mended,
// and peers are followed.
//
// proves FILE-1, FILE-3, DET-13
func TestFiles(t *testing.T) {
	t.Parallel()
	size := tier.Pick(20, 100)
	c := newCluster(t, "a", "b")
	file := c.groupFile("web", size, "vars: {greeting: hello}", "budget: {max_expansion: 100}", `files:
- path: ${dir}/files/app.conf
  template: |
    {{.Vars.greeting}} from {{.Facts.instance}} in slot {{.Facts.slot}}
  mode: "0640"
  on_change: {run: [sh, -c, "echo $$$$ >> '${dir}/reloads'"]}
- path: ${dir}/files/peers
  template: "{{range .Peers}}{{.Instance}}\n{{end}}"
  settle: 1s
- path: ${dir}/files/plain
  text: as it is`)
	replaceIn(t, file, `[sleep, "100000"]`, "[sh, -c, \"cat '${dir}/files/app.conf' > '${dir}/seen'; exec sleep 100000\"]")
	c.must("group", "apply", "-f", file, "--wait")
	c.awaitComplete("web", size)
	ids := c.h.wanted("web")
	hello := func(greeting string) func() bool {
		return func() bool {
			for _, id := range ids {
				slot := c.h.instance(id).Record.Slot
				if c.content(id, "app.conf") != fmt.Sprintf("%s from %s in slot %d\n", greeting, id, slot) {
					return false
				}
			}
			return true
		}
	}
	if !hello("hello")() {
		t.Errorf("%s has %q", ids[0], c.content(ids[0], "app.conf"))
	}
	for _, id := range ids {
		c.await("what the workload found", func() bool { return c.content(id, "../seen") == c.content(id, "app.conf") })
	}
	if info, err := os.Stat(c.managed(ids[0], "app.conf")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	everybody := func() bool {
		all := strings.Join(c.h.wanted("web"), "\n") + "\n"
		for _, id := range c.h.wanted("web") {
			if c.content(id, "peers") != all {
				return false
			}
		}
		return true
	}
	c.await("every instance knows all", everybody)

	before := c.caughtUp()
	workload := c.workload(ids[7])
	c.rewrite("web", "greeting: hello", "greeting: hi")
	c.rolled("web", before, size)
	if !hello("hi")() {
		t.Errorf("%s has %q", ids[0], c.content(ids[0], "app.conf"))
	}
	if c.workload(ids[7]) != workload {
		t.Error("a workload did not run on")
	}
	if n := strings.Count(c.content(ids[7], "../reloads"), "\n"); n < 2 {
		t.Errorf("the command was run %d times for the file and a change of it", n)
	}
	c.unreplaced("web", ids)

	replaceIn(t, file, "{{.Facts.slot}}", "{{.Facts.solt}}")
	if p := c.cli("group", "apply", "-f", file); p.ExitCode() == 0 || !strings.Contains(p.stderr.String(),
		"there is no .Facts.solt") ||
		!strings.Contains(p.stderr.String(), "web.yaml:12:63") {
		t.Errorf("a wrong template: exit %d, %s", p.ExitCode(), p.stderr.String())
	}

	replaceIn(t, file, "{{.Facts.solt}}", "{{.Facts.slot}}")
	replaceIn(t, file, "${dir}/files/plain", "/opt/plain")
	if p := c.cli("group", "apply", "-f", file); p.ExitCode() == 0 || !strings.Contains(p.stderr.String(),
		"/opt/plain is in no directory in which the agent of web-0-") ||
		!strings.Contains(p.stderr.String(), "choose a path below ${dir}/files") ||
		!strings.Contains(p.stderr.String(), "web.yaml:") {
		t.Errorf("a path outside: exit %d, %s", p.ExitCode(), p.stderr.String())
	}

	if err := os.WriteFile(c.managed(ids[0], "plain"), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.managed(ids[1], "plain")); err != nil {
		t.Fatal(err)
	}
	for i, why := range []string{"had been changed", "had been removed"} {
		c.await("the file being mended, and told", func() bool {
			return c.content(ids[i], "plain") == "as it is" && strings.Contains(c.fileReport(ids[i], "plain").Why, why)
		})
	}
	if out := c.must("instance", "show", ids[0]); !strings.Contains(out, "it had been changed on the machine") {
		t.Errorf("instance show says\n%s", out)
	}

	c.signalAgent(ids[2], syscall.SIGKILL)
	c.await("another instance", func() bool { return !strings.Contains(c.content(ids[0], "peers"), ids[2]) })
	c.awaitComplete("web", size)
	c.await("every instance knows the new one", everybody)
}

// A full disk and one that is read-only are told, by the agent and by status, and leave the file as
// it was; the change that waits for them is not taken for done, and arrives once there is room.
//
// proves FILE-1, FILE-3, DET-13
func TestFilesOnABadDisk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	id := c.apply("web", 1, "vars: {greeting: hello}", "files:\n- {path: \"${dir}/files/app.conf\", "+
		"template: \"{{.Vars.greeting}}\"}")[0]
	bad, err := disk.Mount(filepath.Dir(c.managed(id, "app.conf")), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bad.Close(); err != nil {
			t.Error(err)
		}
	}()
	c.await("the file on the new disk", func() bool { return c.content(id, "app.conf") == "hello" })
	greeting := "hello"
	for _, trouble := range []struct {
		begin, end func() error
		why, next  string
	}{
		{bad.Fill, bad.Free, "the disk is full", "hi"},
		{bad.MakeReadOnly, bad.MakeWritable, "the file system is read-only", "bye"},
	} {
		if err := trouble.begin(); err != nil {
			t.Fatal(err)
		}
		before := c.caughtUp()
		c.rewrite("web", "greeting: "+greeting, "greeting: "+trouble.next)
		c.await("the report of "+trouble.why, func() bool {
			f := c.fileReport(id, "app.conf")
			return f.State == store.FileError && strings.Contains(f.Why, trouble.why)
		})
		if got := c.content(id, "app.conf"); got != greeting {
			t.Errorf("%s: the file is %q", trouble.why, got)
		}
		report, rec := currentOf[store.Report](c.h, store.KindReports)[id].Record, c.h.instance(id).Record
		if !report.Healthy || report.Config == rec.Config {
			t.Errorf("%s: healthy %t, configuration %s of %s", trouble.why, report.Healthy, report.Config, rec.Config)
		}
		if out := c.must("status"); !strings.Contains(out, trouble.why) {
			t.Errorf("status says\n%s", out)
		}
		if out := c.must("explain", id); !strings.Contains(out, "app.conf ERROR: "+trouble.why) {
			t.Errorf("explain says\n%s", out)
		}
		if err := trouble.end(); err != nil {
			t.Fatal(err)
		}
		c.rolled("web", before, 1)
		if got := c.content(id, "app.conf"); got != trouble.next {
			t.Errorf("after %s the file is %q", trouble.why, got)
		}
		greeting = trouble.next
	}
}
