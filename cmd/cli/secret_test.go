package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/keyfile"
	"github.com/leasehold/leasehold/store"
)

// secretWorld has a coordinator at work that reads the same key file.
func secretWorld(t *testing.T) (w *world, path string) {
	w = newWorld(t)
	w.serve()
	path = filepath.Join(t.TempDir(), "secrets.key")
	if code, _, stderr := w.run("secret", "new-key", path); code != Done {
		t.Fatal(stderr)
	}
	t.Setenv("LEASEHOLD_SECRETS_KEY_FILE", path)
	w.haveKeys(path, "coord-a", "coord-b")
	return w, path
}

// haveKeys has replicas say that they have the keys of the file.
func (w *world) haveKeys(path string, replicas ...string) {
	w.t.Helper()
	for _, id := range replicas {
		w.put(store.KindReplicas, id, store.Replica{
			Schema: store.Schema, ID: id, Address: "127.0.0.1:7400",
			SecretKeys: w.ring(path).Fingerprints(),
		})
	}
}

func (w *world) ring(path string) encryption.Ring {
	w.t.Helper()
	ring, err := keyfile.Read(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return ring
}

func (w *world) secret(name string) store.Secret {
	w.t.Helper()
	kv, err := w.st.Get(w.t.Context(), w.keys.Secret(name))
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := store.Decode[store.Secret](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Record
}

// set is secret set, with a value in a pipe.
func (w *world) set(name, value string) (code Code, stdout, stderr string) {
	w.t.Helper()
	w.stdin = strings.NewReader(value)
	return w.run("secret", "set", name)
}

// expect checks how a command ended and that its output has these parts, on standard error after a
// "2>".
func (w *world) expect(code Code, stdout, stderr string, want Code, parts ...string) {
	w.t.Helper()
	if code != want {
		w.t.Errorf("exit %d, want %d: %s%s", code, want, stdout, stderr)
	}
	for _, p := range parts {
		where := stdout
		if rest, aside := strings.CutPrefix(p, "2>"); aside {
			where, p = stderr, rest
		}
		if !strings.Contains(where, p) {
			w.t.Errorf("no %q in\n%s2> %s", p, stdout, stderr)
		}
	}
	if all := stdout + stderr; strings.Contains(all, "hunter") {
		w.t.Errorf("a value is shown: %s", all)
	}
}

// proves SEC-6
func TestSecretSetListDelete(t *testing.T) {
	w, path := secretWorld(t)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file,
		[]byte("name: jobs\nprovider: process\nworkload: {run: [./jobs]}\nsecrets: {PIN: pin}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, err := w.run("group", "apply", "-f", file)
	w.expect(code, out, err, Done, "jobs created", "2>jobs: there is no secret pin yet", "2>leasehold secret set pin")
	code, out, err = w.set("db-password", "hunter2\n")
	w.expect(code, out, err, Done, "db-password set version 1 rev ")
	rec := w.secret("db-password")
	if value, err := w.ring(path).Open("x1", rec); err != nil || string(value) != "hunter2" || rec.By != "eve@desk" ||
		!rec.At.Equal(noon) {
		t.Errorf("stored %+v, %v", rec, err)
	}
	code, out, err = w.set("db-password", "hunter2")
	w.expect(code, out, err, Done, "db-password unchanged")
	g := webGroup(3)
	g.Secrets = map[string]string{"DB_PASSWORD": "db-password", "API": "api-token"}
	w.put(store.KindStatus, "web", statusOf(g, w.put(store.KindGroups, "web", g), 3))
	code, out, err = w.set("db-password", "hunter3\r\n")
	w.expect(code, out, err, Done, "set version 2", "2>group web uses it", "2>leasehold group restart web")

	code, out, err = w.run("secret", "list")
	w.expect(code, out, err, Done, "db-password\t2\t"+rec.Key+"\tweb\teve@desk\t0s")
	code, out, err = w.run("secret", "list", "-o", "json")
	w.expect(code, out, err, Done, `"groups": [`)
	var shown []map[string]any
	if json.Unmarshal([]byte(out), &shown) != nil || len(shown) != 1 || shown[0]["ciphertext"] != nil ||
		shown[0]["nonce"] != nil || shown[0]["version"] != 2.0 {
		t.Errorf("as JSON: %s", out)
	}
	code, out, err = w.run("status")
	w.expect(code, out, err, Done, "SEC-6: secrets.API: there is no secret api-token",
		"next: leasehold secret set api-token")

	code, out, err = w.run("secret", "delete", "db-password")
	w.expect(code, out, err, Conflict, "2>used by web; nothing was changed", "2>--force")
	code, out, err = w.run("secret", "delete", "db-password", "--force")
	w.expect(code, out, err, Done, "db-password deleted", "2>none is started without it")
	code, out, err = w.run("secret", "delete", "db-password")
	w.expect(code, out, err, NotFound)
	code, out, err = w.run("secret", "list")
	w.expect(code, out, err, Done, "2>no secrets")
}

// proves SEC-6
func TestSecretSetRefuses(t *testing.T) {
	w, path := secretWorld(t)
	for what, c := range map[string]struct {
		value string
		args  []string
		code  Code
		want  string
	}{
		"a name that is none": {"hunter2", []string{"../x"}, Usage, "2>must be 1 to 63"},
		"nothing":             {"\n", []string{"db"}, Usage, "2>the value is empty"},
		"a zero byte":         {"hunter\x002", []string{"db"}, Usage, "2>zero byte"},
		"too long": {
			strings.Repeat("x", store.MaxSecret+2),
			[]string{"db"},
			Usage,
			"2>longer than 16384 bytes",
		},
		"a value as argument": {"", []string{"db", "hunted"}, Usage, "2>unexpected argument"},
		"no such key file": {
			"hunter2",
			[]string{"db", "--secrets-key=" + path + ".none"},
			Failed,
			"2>next: leasehold secret new-key " + path + ".none",
		},
	} {
		w.stdin = strings.NewReader(c.value)
		code, out, err := w.run(append([]string{"secret", "set"}, c.args...)...)
		t.Log(what)
		w.expect(code, out, err, c.code, c.want)
	}
	code, out, err := w.set("short", "12345")
	w.expect(code, out, err, Done, "2>warning: the value has fewer than 6 bytes")

	// From a file, and at a terminal, with two prompts.
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte("hunter of files\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, err = w.run("secret", "set", "filed", "--from-file", file)
	w.expect(code, out, err, Done, "filed set version 1")
	w.terminal, w.typed = true, []string{"hunter typed", "hunter typed", "hunter a", "hunter b"}
	code, out, err = w.run("secret", "set", "typed")
	w.expect(code, out, err, Done, "typed set version 1", "2>value of typed: ", "2>once more: ")
	code, out, err = w.run("secret", "set", "typed")
	w.expect(code, out, err, Failed, "2>the two values differ")
	w.terminal = false
	for name, want := range map[string]string{"filed": "hunter of files", "typed": "hunter typed"} {
		if value, err := w.ring(path).Open("x1", w.secret(name)); err != nil || string(value) != want {
			t.Errorf("%s is %q, %v", name, value, err)
		}
	}

	// A replica that could not read it is named, and so is a file that others may read.
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, err = w.set("db", "hunter2")
	w.expect(code, out, err, Failed, "2>others may read it", "2>next: chmod 600 "+path)
	w.put(store.KindReplicas, "coord-b", store.Replica{Schema: store.Schema, ID: "coord-b"})
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, err = w.set("db", "hunter2")
	w.expect(code, out, err, Failed, "2>coord-b does not have key "+w.ring(path).IDs()[0])
	code, out, err = w.run("status")
	w.expect(code, out, err, Done, "coord-b", "does not have key", "cannot deliver filed, short, typed")

	// Keys of the environment do as well; and without any it is said where they were looked for.
	t.Setenv("LEASEHOLD_SECRETS_KEY_FILE", "") // as good as not set
	w.keysText = w.ring(path).Text()
	w.haveKeys(path, "coord-b")
	code, out, err = w.set("db", "hunter2")
	w.expect(code, out, err, Done, "db set version 1")
	w.keysText = ""
	code, out, err = w.set("db", "hunter2")
	w.expect(code, out, err, Failed, "2>there is no key file: looked for /etc/leasehold/secrets.key")
}

// proves SEC-6
func TestSecretRotate(t *testing.T) {
	w, path := secretWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		code, out, err := w.set(name, "hunter of "+name)
		w.expect(code, out, err, Done)
	}
	old := w.ring(path).IDs()[0]

	// The key is added, and encrypts nothing before every replica has it. A repeated command
	// continues and adds no other.
	for range 2 {
		code, out, err := w.run("secret", "rotate", "--timeout=150ms")
		w.expect(code, out, err, Failed, "2>coord-a, coord-b do not have key ", "2>no secret was re-encrypted",
			"2>leasehold secret rotate")
		if ids := w.ring(path).IDs(); len(ids) != 2 || ids[1] != old || w.secret("a").Key != old {
			t.Fatalf("keys are %v, a has %s", ids, w.secret("a").Key)
		}
	}
	w.haveKeys(path, "coord-a", "coord-b")

	// It is interrupted in the middle: another operator has changed a secret.
	now := w.ring(path).IDs()[0]
	broken := w.secret("b")
	broken.Ciphertext[0] ^= 1
	good := w.secret("b")
	w.put(store.KindSecrets, "b", broken)
	code, out, err := w.run("secret", "rotate")
	w.expect(code, out, err, Failed, "2 secrets re-encrypted with key "+now,
		"2>cannot be decrypted, and are left unchanged: b (it does not fit")
	code, out, err = w.run("secret", "rotate", "--prune")
	w.expect(code, out, err, Done, "unchanged: every key in it is needed",
		"2>1 secret is still encrypted with an older key")
	w.put(store.KindSecrets, "b", good)
	code, out, err = w.run("secret", "rotate")
	w.expect(code, out, err, Done, "1 secret re-encrypted with key "+now, "2>leasehold secret rotate --prune")
	code, out, err = w.run("secret", "rotate")
	w.expect(code, out, err, Done, "all secrets have key "+now)
	for _, name := range []string{"a", "b", "c"} {
		rec := w.secret(name)
		if value, err := w.ring(path).Open("x1", rec); err != nil || string(value) != "hunter of "+name ||
			rec.Key != now || rec.Version != 1 {
			t.Errorf("%s is %q with key %s and version %d, %v", name, value, rec.Key, rec.Version, err)
		}
	}
	code, out, err = w.run("secret", "rotate", "--prune")
	w.expect(code, out, err, Done, "removed "+old)
	if ids := w.ring(path).IDs(); len(ids) != 1 || ids[0] != now {
		t.Errorf("keys are %v, want %s alone", ids, now)
	}
	code, out, err = w.run("secret", "new-key", path)
	w.expect(code, out, err, Conflict, "2>already exists, and was left unchanged")
	code, out, err = w.run("secret", "new-key")
	if _, bad := encryption.ParseRing(out); code != Done || bad != nil {
		t.Errorf("new key %q, %s", out, err)
	}
}

// The key of a leasehold dev is beside the settings that say how to reach it, wherever its data
// directory is.
func TestTheKeyOfADevInAnyDirectory(t *testing.T) {
	w := newWorld(t)
	w.serve()
	dir := t.TempDir()
	config, key := services.DevSettings(dir), services.DevKeyFile(dir)
	write(t, config, "endpoints: [\"127.0.0.1:1\"]\n")
	if code, _, stderr := w.run("secret", "new-key", key); code != Done {
		t.Fatal(stderr)
	}
	w.haveKeys(key, "coord-a", "coord-b")
	t.Run("by its settings", func(t *testing.T) {
		w.stdin = strings.NewReader("hunter2")
		code, out, err := w.run("secret", "set", "db-password", "--config", config)
		w.expect(code, out, err, Done, "db-password set version 1")
		code, out, err = w.run("secret", "rotate", "--config", config, "--timeout", "3s")
		w.expect(code, out, err, Failed, key+" has the new key")
	})
	t.Run("of another etcd", func(t *testing.T) {
		w.stdin = strings.NewReader("hunter2")
		code, out, err := w.run("secret", "set", "db-password", "--config", config, "--endpoints", "127.0.0.1:2")
		w.expect(code, out, err, Failed, "2>there is no key file: looked for "+keyfile.Usual)
	})
}

// While an operator types a value, the keys are rotated and the old one is pruned: the value is
// encrypted with a key that the coordinators have then.
//
// proves SEC-6
func TestKeysAreRotatedWhileAValueIsTyped(t *testing.T) {
	w, path := secretWorld(t)
	code, out, err := w.set("old", "hunter1")
	w.expect(code, out, err, Done, "old set version 1")
	w.terminal, w.typed = true, []string{"hunter22", "hunter22"}
	w.typing = func() {
		w.typing = nil
		old := w.ring(path)
		if err := keyfile.Replace(path, old, old.With(encryption.NewKey())); err != nil {
			t.Fatal(err)
		}
		w.haveKeys(path, "coord-a", "coord-b")
		for _, rotate := range [][]string{{"secret", "rotate"}, {"secret", "rotate", "--prune"}} {
			code, out, err := w.run(rotate...)
			w.expect(code, out, err, Done)
		}
	}
	code, out, err = w.run("secret", "set", "new")
	w.expect(code, out, err, Done, "new set version 1")
	if value, err := w.ring(path).Open("x1", w.secret("new")); err != nil || string(value) != "hunter22" {
		t.Errorf("with the keys that are left it reads %q, %v", value, err)
	}
}
