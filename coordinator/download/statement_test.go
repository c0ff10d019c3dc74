package download_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/coordinator/download"
)

// A program is offered with the signed statement beside it. One of another program is an error.
//
// proves PROV-7
func TestReadingStatements(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "leasehold-agent-linux-"+runtime.GOARCH)
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	if agents, err := download.Read(dir); err != nil || len(agents.Releases()) != 0 {
		t.Errorf("without a statement: %v, %v", agents.Releases(), err)
	}
	private, _, err := release.NewKey("test")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	st := release.Statement{
		Version: "v1.2.0", Platform: "linux/" + runtime.GOARCH, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
	}
	sign := func(st release.Statement) string {
		signed, err := release.Sign(st, private)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program+".sig", []byte(signed), 0o600); err != nil {
			t.Fatal(err)
		}
		return signed
	}
	signed := sign(st)
	agents, err := download.Read(dir)
	if err != nil || len(agents.Releases()) != 1 {
		t.Fatalf("%v, %v", agents.Releases(), err)
	}
	if r := agents.Releases()[0]; r.Version != "v1.2.0" || r.Platform != st.Platform || r.Statement != signed ||
		r.Path != download.Path(runtime.GOARCH) {
		t.Errorf("%+v", r)
	}
	st.Size++
	sign(st)
	if _, err := download.Read(dir); err == nil || !strings.Contains(err.Error(), "of another program") {
		t.Errorf("of another program: %v", err)
	}
	if err := os.WriteFile(program+".sig", []byte("signed by me"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := download.Read(dir); err == nil || !strings.Contains(err.Error(), "no signed statement") {
		t.Errorf("nonsense: %v", err)
	}
}
