package download_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/coordinator/download"
)

// A program is offered with the signed statement beside it. One that is of
// no use is warned of, and new machines still get the program.
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
	var warned bytes.Buffer
	log := slog.New(slog.NewTextHandler(&warned, nil))
	dir := t.TempDir()
	program := filepath.Join(dir, "leasehold-agent-linux-"+runtime.GOARCH)
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	if agents, err := download.Read(dir, log); err != nil || len(agents.Releases()) != 0 {
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
	agents, err := download.Read(dir, log)
	if err != nil || len(agents.Releases()) != 1 {
		t.Fatalf("%v, %v", agents.Releases(), err)
	}
	if r := agents.Releases()[0]; r.Version != "v1.2.0" || r.Platform != st.Platform || r.Statement != signed ||
		r.Path != download.Path(runtime.GOARCH) {
		t.Errorf("%+v", r)
	}
	st.Size++
	sign(st)
	refused := func(why string) {
		t.Helper()
		warned.Reset()
		agents, err := download.Read(dir, log)
		if err != nil || len(agents) != 1 || len(agents.Releases()) != 0 || !strings.Contains(warned.String(), why) {
			t.Errorf("%s: %v, %v, warned: %s", why, agents.Releases(), err, warned.String())
		}
	}
	refused("of another program")
	for why, text := range map[string]string{
		"not a signed statement": "signed by me", "more than": strings.Repeat("x", release.MaxSigned+1),
	} {
		if err := os.WriteFile(program+".sig", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(why)
	}
}
