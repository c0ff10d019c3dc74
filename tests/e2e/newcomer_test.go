package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// complains fails unless a program ended with this code, and its last output is one line of error
// and one line with the next step; the error names its subject.
func complains(t *testing.T, p *program, code int, about ...string) {
	t.Helper()
	text := p.stderr.String()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	said := strings.Join(p.Args()[1:], " ")
	if p.ExitCode() != code {
		t.Errorf("%s: exit %d, want %d: %s", said, p.ExitCode(), code, text)
	}
	if n := len(lines); n < 2 || !strings.HasPrefix(lines[n-2], "error: ") ||
		!strings.HasPrefix(lines[n-1], "next: ") ||
		strings.Count(text, "error: ") != 1 || strings.Count(text, "next: ") != 1 {
		t.Errorf("%s: not one line of error and one of what to do next:\n%s", said, text)
		return
	}
	for _, want := range about {
		if !strings.Contains(text, want) {
			t.Errorf("%s: nothing is said of %q:\n%s", said, want, text)
		}
	}
	for _, trace := range []string{"goroutine ", "panic", ".go:"} {
		if strings.Contains(text, trace) {
			t.Errorf("%s: shows its insides:\n%s", said, text)
		}
	}
	if len(lines[len(lines)-1]) < len("next: ")+5 {
		t.Errorf("%s: the next step is empty:\n%s", said, text)
	}
	t.Logf("%s\n%s", said, text)
}

// taken returns an address at which another program listens, which accepts connections and sends
// nothing.
func taken(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// What goes wrong for a newcomer ends in one line that says what, and one that says what to do.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, filepath.Join("data", "machines"))
	data := filepath.Join(w.dir, "data")
	file := w.groupFile("web", 1)
	busy := taken(t)
	free := func() string { return addresses.FreeAddress(t) }
	for _, c := range []struct {
		name  string
		code  int
		about string
		args  []string
	}{
		{"no etcd", 5, w.endpoint, []string{"status"}},
		{"no etcd to apply to", 5, w.endpoint, []string{"group", "apply", "-f", file, "--wait"}},
		{
			"no etcd for a coordinator", 5, w.endpoint,
			[]string{"coordinator", "--http", "off", "--listen", free(), "--machines", w.machines},
		},
		{"endpoint that is no etcd", 5, busy, []string{"status", "--endpoints", busy, "--timeout", "2s"}},
		{
			"endpoint that is nowhere", 5, "nowhere.invalid",
			[]string{"status", "--endpoints", "nowhere.invalid:2379", "--timeout", "2s"},
		},
		{"endpoint without a port", 2, "127.0.0.1", []string{"status", "--endpoints", "127.0.0.1", "--timeout", "2s"}},
		{
			"port of a coordinator taken", 1, busy,
			[]string{"coordinator", "--http", "off", "--listen", busy, "--machines", w.machines},
		},
		{
			"port of dev taken", 1, busy,
			[]string{"dev", "--data-dir", data, "--etcd-listen", free(), "--listen", busy},
		},
		{
			"port of dev's http taken", 1, busy,
			[]string{"dev", "--data-dir", data, "--etcd-listen", free(), "--listen", free(), "--http", busy},
		},
		{
			"dev's http to everybody", 1, "--http",
			[]string{"dev", "--data-dir", data, "--etcd-listen", free(), "--listen", free(), "--http", "0.0.0.0:0"},
		},
		{
			"port of dev's etcd taken", 1, busy,
			[]string{"dev", "--data-dir", data, "--etcd-listen", busy, "--listen", free()},
		},
		{
			"address that is not ours", 1, "192.0.2.1",
			[]string{"coordinator", "--http", "off", "--listen", "192.0.2.1:7420", "--machines", w.machines},
		},
		{
			"address that is none", 1, "here",
			[]string{"dev", "--data-dir", data, "--etcd-listen", free(), "--listen", "here"},
		},
		{
			"no such agent", 1, "--agent",
			[]string{
				"coordinator", "--http", "off", "--listen", free(), "--machines", w.machines, "--agent",
				"no-such-agent",
			},
		},
		{
			"no certificate authorities", 1, "leasehold pki init",
			[]string{
				"coordinator", "--http", "off", "--listen", free(), "--machines", w.machines, "--pki",
				filepath.Join(w.dir, "none"),
			},
		},
		{"session too short", 1, "--session-ttl", []string{"coordinator", "--http", "off", "--session-ttl", "1s"}},
		{"no such file", 2, "none.yaml", []string{"group", "apply", "-f", "none.yaml"}},
		{"file of dev that is not there", 1, "none.yaml", []string{"dev", "--data-dir", data, "--group", "none.yaml"}},
		{"no such command", 2, "stats", []string{"stats"}},
		{"no such flag", 2, "--shart", []string{"status", "--shart", "x"}},
		{"agent without a bootstrap document", 1, "next: leasehold agent --help", []string{"agent"}},
		{"agent whose bootstrap document is not there", 1, "none.json", []string{"agent", "--bootstrap", "none.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			complains(t, w.cli(c.args...), c.code, c.about)
		})
	}
}

// Files and directories without permission. A test that runs as root gives up its rights first.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "machines")
	locked := filepath.Join(w.dir, "locked")
	if err := os.Mkdir(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	file := w.groupFile("web", 1)
	if err := os.Chmod(file, 0o000); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		code int
		args []string
	}{
		{"data directory", 1, []string{
			"dev", "--data-dir", locked, "--etcd-listen", addresses.FreeAddress(t),
			"--listen", addresses.FreeAddress(t),
		}},
		{
			"data directory to be made", 1,
			[]string{
				"dev", "--data-dir", filepath.Join(locked, "data"), "--etcd-listen", addresses.FreeAddress(t),
				"--listen", addresses.FreeAddress(t),
			},
		},
		{"directory of machines", 1, []string{
			"coordinator", "--http", "off", "--listen", addresses.FreeAddress(t),
			"--machines", filepath.Join(locked, "machines"),
		}},
		{"group file", 2, []string{"group", "apply", "-f", file}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := w.command(bin("leasehold"), c.args...)
			cmd.Dir = "/"
			if os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			p := w.start("cli", cmd)
			w.waitEnd(p)
			complains(t, p, c.code, "permission denied")
		})
	}
}
