package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// acme is a provider without machines, which answers only with the right token.
const acme = `#!/bin/sh
case $(cat) in
*'"method":"describe"'*) echo '{"result": {"api": 1, "name": "acme", "zones": ["a"], "consistency": 0, "call_timeout": 10}}' ;;
*'"token":"sesame"'*) echo '{"error": {"code": "not_found", "message": "no such machine"}}' ;;
*) echo '{"error": {"code": "credentials", "message": "wrong token"}}' ;;
esac
`

// A provider gets the shard's secrets in its test as it does from a coordinator.
//
// proves PROV-2, SEC-7
func TestAProviderIsTestedWithTheShardsSecrets(t *testing.T) {
	w, _ := secretWorld(t)
	dir := t.TempDir()
	program, file := filepath.Join(dir, "acme"), filepath.Join(dir, "providers.yaml")
	user := ""
	if os.Geteuid() == 0 {
		user = "user: root, "
	}
	if err := os.WriteFile(program, []byte(acme), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil,
		"providers: {acme: {exec: {command: [%s], %ssecrets: {token: acme-token}}}}\n", program, user), 0o600); err != nil {
		t.Fatal(err)
	}
	test := []string{"provider", "test", "--providers", file, "--only", "RestartOfUnknown"}
	code, out, stderr := w.run(test...)
	w.expect(code, out, stderr, Failed, "RestartOfUnknown", "there is no secret acme-token")
	for value, want := range map[string]string{"open": "wrong token", "sesame": "no such machine"} {
		if code, _, stderr := w.set("acme-token", value); code != Done {
			t.Fatal(stderr)
		}
		code, out, stderr = w.run(test...)
		w.expect(code, out, stderr, Failed, want)
	}
}

// A provider that cannot create a machine is asked for one only once: the other promises would fail
// in the same way, each after a while.
//
// proves PROV-1, PROV-5
func TestAProviderThatMakesNothingIsTestedNoFurther(t *testing.T) {
	w, _ := secretWorld(t)
	dir := t.TempDir()
	program, file := filepath.Join(dir, "acme"), filepath.Join(dir, "providers.yaml")
	user := ""
	if os.Geteuid() == 0 {
		user = "user: root"
	}
	if err := os.WriteFile(program, []byte(acme), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil,
		"providers: {acme: {exec: {command: [%s], %s}}}\n", program, user), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := w.run("provider", "test", "--providers", file)
	w.expect(code, out, stderr, Failed, "CreateMakesATaggedMachine", "wrong token")
	if want := "no machine could be made, so 19 other promises are not tested"; !strings.Contains(stderr, want) {
		t.Errorf("no %q in %s", want, stderr)
	}
}
