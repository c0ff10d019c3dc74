package cli

import (
	"bytes"
	"strings"
	"testing"
)

// withSettings runs a command with this text in the operator's file.
func withSettings(t *testing.T, text string, args ...string) (Code, string) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "config.yaml", text)
	w := newWorld(t)
	var out, errs bytes.Buffer
	env := w.env(&out, &errs)
	env.Settings = "config.yaml"
	code := Run(t.Context(), env, args)
	return code, out.String() + errs.String()
}

// Flags go before the environment, the environment before the file, the file before the default.
func TestPrecedenceOfSettings(t *testing.T) {
	const text = "shard: fromfile\nendpoints: [a:1, b:2]\ntimeout: 7s\nuser: root:secret\n"
	code, out := withSettings(t, text, "config", "show")
	for _, line := range []string{
		"shard\tfromfile\tfile config.yaml", "endpoints\ta:1,b:2\tfile config.yaml",
		"timeout\t7s\tfile config.yaml", "user\troot:…\tfile", "config\tconfig.yaml\tdefault", "output\ttable\tdefault",
		"shard fromfile, which no",
	} {
		if code != Done || !strings.Contains(out, line) {
			t.Errorf("exit %d: %q is missing in\n%s", code, line, out)
		}
	}
	t.Setenv("LEASEHOLD_SHARD", "fromenv")
	if _, out := withSettings(t, text, "config", "show"); !strings.Contains(out,
		"shard\tfromenv\tenvironment LEASEHOLD_SHARD") {
		t.Errorf("got\n%s", out)
	}
	if _, out := withSettings(t, text, "config", "show", "--shard", "fromflag"); !strings.Contains(out,
		"shard\tfromflag\tflag") {
		t.Errorf("got\n%s", out)
	}
}

func TestAnotherFileOfSettings(t *testing.T) {
	w := newWorld(t)
	t.Chdir(t.TempDir())
	write(t, "other.yaml", "shard: other\n")
	if _, out, _ := w.run("status", "--config", "other.yaml"); !strings.HasPrefix(out, "other  ") {
		t.Errorf("got %s", out)
	}
	t.Setenv("LEASEHOLD_CONFIG", "other.yaml")
	if _, out, _ := w.run("status"); !strings.HasPrefix(out, "other  ") {
		t.Errorf("got %s", out)
	}
	if code, _, stderr := w.run("status", "--config", "none.yaml"); code != Usage ||
		!strings.Contains(stderr, "--config none.yaml: no such file or directory") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestAFileOfSettingsThatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"shrad: a\n", "error: shrad: unknown setting: must be one of endpoints, shard,"},
		{"shard: a\nfile: x\n", "(config.yaml:2:1)"},
		{"shard: [a]\n", "error: shard: must be a value, as on the command line (config.yaml:1:8)"},
		{"- a\n", "must have settings like shard: default"},
		{"a: [\n", "not YAML"},
	} {
		if code, out := withSettings(t, c.text, "status"); code != Usage || !strings.Contains(out, c.says) ||
			!strings.Contains(out, "next: correct config.yaml") {
			t.Errorf("%q: exit %d: %s", c.text, code, out)
		}
	}
	if code, out := withSettings(t, "# nothing\n", "status"); code != Done {
		t.Errorf("an empty file: exit %d: %s", code, out)
	}
}

// A dev on this machine is found without flags, not by a command that names its etcd, and with two
// flags as another user.
func TestSettingsOfDev(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "config.yaml", "endpoints: [\"127.0.0.1:4\"]\ncacert: /ca\ncert: /crt\nkey: /key\nshard: laptop\n")
	write(t, "own.yaml", "endpoints: [a:1]\n")
	write(t, "colours.yaml", "no-color: true\nshard: mine\n")
	show := func(own string, args ...string) string {
		t.Helper()
		w := newWorld(t)
		var out, errs bytes.Buffer
		env := w.env(&out, &errs)
		env.Settings, env.DevData = own, "."
		if code := Run(t.Context(), env, append([]string{"config", "show"}, args...)); code != Done {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		return out.String()
	}
	for _, c := range []struct {
		name, own string
		args      []string
		dev       bool
		says      string
	}{
		{"nothing is said", "none.yaml", nil, true, "endpoints\t127.0.0.1:4\tfile config.yaml"},
		{"nothing about etcd is said", "colours.yaml", nil, true, "shard\tmine\tfile colours.yaml"},
		{"another shard", "none.yaml", []string{"--shard", "x"}, true, "shard\tx\tflag"},
		{"the file says which etcd", "own.yaml", nil, false, "endpoints\ta:1\tfile own.yaml"},
		{"a flag says which etcd", "none.yaml", []string{"--endpoints", "b:1"}, false, "endpoints\tb:1\tflag"},
		{"a flag names the user", "none.yaml", []string{"--user", "a:b"}, false, "endpoints\t127.0.0.1:2379\tdefault"},
	} {
		out := show(c.own, c.args...)
		if dev := strings.Contains(out, "cert\t/crt\tfile config.yaml"); dev != c.dev ||
			!strings.Contains(out, c.says) {
			t.Errorf("%s: dev's settings count: %v\n%s", c.name, dev, out)
		}
	}
	out := show("none.yaml", "--cert", "/other.crt", "--key", "/other.key")
	for _, want := range []string{
		"endpoints\t127.0.0.1:4\tfile config.yaml", "cacert\t/ca\tfile config.yaml",
		"cert\t/other.crt\tflag", "key\t/other.key\tflag",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("another user comes to dev's etcd: want %q\n%s", want, out)
		}
	}
	t.Setenv("LEASEHOLD_ENDPOINTS", "c:1")
	if out := show("none.yaml"); strings.Contains(out, "config.yaml") || !strings.Contains(out, "c:1\tenvironment") {
		t.Errorf("the environment says which etcd, and dev's settings count:\n%s", out)
	}
}
