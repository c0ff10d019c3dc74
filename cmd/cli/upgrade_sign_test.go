package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/agent/release"
)

// A key pair is made once. It signs programs of the version that they report, and nothing else.
//
// proves PROV-7
func TestSigningAgents(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	key, program := filepath.Join(dir, "release.key"), filepath.Join(dir, "leasehold-agent-linux-amd64")
	// The head of an ELF file for amd64, without sections or segments, and a version.
	elf := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\x3e\x00\x01\x00\x00\x00" +
		strings.Repeat("\x00", 24) + "\x00\x00\x00\x00\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00" + "v1.2.0"
	if err := os.WriteFile(program, []byte(elf), 0o700); err != nil {
		t.Fatal(err)
	}
	do := func(want Code, args ...string) {
		t.Helper()
		if code, out, err := w.run(args...); code != want {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, err)
		}
	}
	do(Done, "upgrade", "key", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("private key: %v, %v", info.Mode(), err)
	}
	do(Conflict, "upgrade", "key", key)
	do(Failed, "upgrade", "sign", "--release", "v1.3.0", "--release-key", key, program)
	do(Usage, "upgrade", "sign", "--release", "dev", "--release-key", key, program)
	do(Failed, "upgrade", "sign", "--release", "v1.2.0", "--release-key", key+".pub", program)
	do(Failed, "upgrade", "sign", "--release", "v1.2.0", "--release-key", key, key)
	do(Done, "upgrade", "sign", "--release", "v1.2.0", "--release-key", key, "--allow-downgrade", program)
	signed, err := os.ReadFile(program + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := release.ReadKeys(string(public))
	if err != nil {
		t.Fatal(err)
	}
	st, err := keys.Open(string(signed))
	if err != nil || st.Version != "v1.2.0" || st.Platform != "linux/amd64" || !st.Downgrade ||
		st.Size != int64(len(elf)) {
		t.Errorf("signed %+v, %v", st, err)
	}
}

// A public key in the way makes no key pair: no private key is left over that would keep the next
// attempt from working.
//
// proves PROV-7
func TestNoHalfKeyPair(t *testing.T) {
	w := newWorld(t)
	key := filepath.Join(t.TempDir(), "100%d.key")
	if err := os.WriteFile(key+".pub", []byte("another key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, err := w.run("upgrade", "key", key); code != Conflict {
		t.Errorf("exit %d\n%s%s", code, out, err)
	}
	if _, err := os.Lstat(key); !os.IsNotExist(err) {
		t.Errorf("the private key stayed: %v", err)
	}
	if text, err := os.ReadFile(key + ".pub"); err != nil || string(text) != "another key\n" {
		t.Errorf("public key %q, %v", text, err)
	}
	if err := os.Remove(key + ".pub"); err != nil {
		t.Fatal(err)
	}
	if code, _, err := w.run("upgrade", "key", key); code != Done || !strings.Contains(err, "keep "+key+" off line") {
		t.Errorf("exit %d\n%s", code, err)
	}
}
