package adapters

import (
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
)

// The examples on the page of authorities work unchanged, and each setting in them is in the table.
//
// proves FILE-2, SEC-7
func TestThePageOfAuthorities(t *testing.T) {
	const page = "../../docs/authorities.md"
	shown := blocks(t, page, "yaml")
	if len(shown) != 1 {
		t.Fatalf("%d files", len(shown))
	}
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := pki.InitWorkloads(dir, "web", time.Hour); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/etc/leasehold/pki", dir, "/usr/lib/leasehold/corp-ca", "/bin/cat", "user: corp-ca",
		"user: "+self.Username).Replace(shown[0])
	all, err := All().Kinds.OpenAuthorities(write(t, text), dir, slog.New(slog.DiscardHandler))
	if err != nil || len(all) != 2 || all["corp"] == nil || all["web"] == nil {
		t.Fatal(all, err)
	}
	described, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"`domains`, `networks`", "`max_lifetime`", "`dir`",
		"`command`, `user`, `config`, `secrets`, `env`, `concurrency`",
	} {
		if !strings.Contains(string(described), "\n| "+field+" |") {
			t.Errorf("no table has %s", field)
		}
	}
	for want, text := range map[string]string{
		"authorities.web.own: there is no certificate authority in": "authorities: {web: {own: {dir: " +
			filepath.Join(dir, "nothing") + ", domains: [web]}}}",
		"authorities.web.own: domains: is missing": "authorities: {web: {own: {dir: " +
			dir + "}}}",
		"unknown field \"keys\"": "authorities: {web: {own: {dir: " +
			dir + ", keys: 1}}}",
		"authorities.web.exec: command: is missing":        "authorities: {web: {exec: {domains: [web]}}}",
		"is no kind of authority; the kinds are exec, own": "authorities: {web: {onw: {}}}",
		"authorities.web.own: domains[0]: \"*.web\": must be a host name in lower case w": "authorities: {web: {own: {dir: " +
			dir + ", domains: [\"*.web\"]}}}",
	} {
		if _, err := All().Kinds.OpenAuthorities(write(t, text), dir, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
