package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A generated password is added on a line of its own, also to a file whose last line an editor has
// left without an end, and changes no password that is there.
//
// proves AUTH
func TestAppendedPasswordsHaveTheirOwnLines(t *testing.T) {
	for _, before := range []string{"", "op:secret\n", "op:secret"} {
		file := filepath.Join(t.TempDir(), "passwords")
		if before != "" {
			if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := appendSecret(file, "viewer:abc\n"); err != nil {
			t.Fatal(err)
		}
		known, err := new(Invocation).readPasswords(file)
		if err != nil || known["viewer"] != "abc" || before != "" && known["op"] != "secret" {
			t.Errorf("%q: %v, %v", before, known, err)
		}
	}
}
