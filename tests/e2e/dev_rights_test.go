package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/tests/harness"
)

// Data of a dev whose etcd had no authentication are taken over: from then on it has, and dev's own
// commands get in by themselves.
//
// proves SEC-4: dev's etcd serves clients with a certificate, each with the rights of a role
func TestDevProtectsItsEtcd(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	old, err := harness.StartEtcd(t.Context(),
		embedetcd.Config{DataDir: filepath.Join(l.data, "etcd"), Listen: l.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	was := store.KeysOf("other").Group("web")
	if _, err := old.Store.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put(was,
		[]byte("{}"))}}); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}

	listen := l.address()
	l.startDev("--listen", listen, "--group", l.groupFile("web", 1))
	l.follow()
	l.await("the group", func() bool { return l.h.complete("web", 1) })
	ids := l.h.wanted("web")
	if _, err := l.st.Get(t.Context(), was); err != nil {
		t.Errorf("what was there before: %v", err)
	}
	if said := l.dev.stderr.String(); !strings.Contains(said,
		"export LEASEHOLD_CONFIG="+filepath.Join(l.data, "config.yaml")) {
		t.Errorf("dev does not say how commands reach it: %s", said)
	}
	// A user of dev's settings file is an operator.
	if out := l.must("auth", "show"); !strings.Contains(out, "authentication is on; you are operator") {
		t.Errorf("auth show: %s", out)
	}
	l.must("group", "pause", "web")
	// Other clients are the user that their certificate names.
	pki := filepath.Join(l.data, "pki")
	as := func(name string) []string {
		file := filepath.Join(pki, "issued", name)
		return []string{
			"--endpoints", l.endpoint, "--cacert", filepath.Join(pki, "operators", "ca.crt"), "--cert",
			file + ".crt", "--key", file + ".key",
		}
	}
	l.must(append(as("viewer"), "status")...)
	complains(t, l.cli(append(as("viewer"), "group", "resume", "web")...), 1,
		`user "viewer" has the role viewer, which may not change groups`)
	l.must(append(as("root"), "auth", "init")...)
	// Without one, or in plain text, no client gets in.
	if p := l.cli("status", "--config", "/dev/null", "--endpoints", l.endpoint); p.ExitCode() == 0 {
		t.Errorf("etcd answers in plain text: %s", p.stdout.String())
	}
	complains(t, l.cli("status", "--config", "/dev/null", "--endpoints", l.endpoint, "--cacert",
		filepath.Join(pki, "operators", "ca.crt")), 1,
		"etcd requires authentication, and no credentials are configured")
	// An agent's authority opens nothing there.
	complains(t, l.cli("status", "--config", "/dev/null", "--endpoints", l.endpoint, "--cacert",
		filepath.Join(pki, "agents", "ca.crt")), 5, "unknown authority")

	for _, name := range []string{
		"config.yaml", "etcdctl.env", "pki/issued/root.key", "pki/operators/ca.key",
		"pki/agents/ca.key",
	} {
		if info, err := os.Stat(filepath.Join(l.data, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	l.must("group", "resume", "web")
	l.stop(ids, syscall.SIGINT)
	if _, err := os.Stat(filepath.Join(l.data, "config.yaml")); err == nil {
		t.Error("the settings of a dev that has stopped are left")
	}
}
