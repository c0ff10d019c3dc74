package tests

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/process"
	"github.com/leasehold/leasehold/store"
)

// TestNamesAreNoPaths keeps a name from leading out of where it belongs, wherever one becomes a key
// or a path.
//
// proves SEC-5
func TestNamesAreNoPaths(t *testing.T) {
	home := t.TempDir()
	machines, err := process.New(process.Config{
		Dir:          filepath.Join(home, "machines"),
		AgentCommand: []string{"/bin/true"}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "pki")
	if err := pki.Init(dir, map[pki.Kind]time.Duration{pki.Operators: time.Hour}); err != nil {
		t.Fatal(err)
	}
	group := func(set func(*store.Group, string)) func(string) bool {
		return func(name string) bool {
			g := store.DefaultGroup()
			g.Name, g.Provider = "web", "process"
			g.Complete()
			set(&g, name)
			return g.Validate() == nil
		}
	}
	bootstrap := func(shard, instance string) provider.Bootstrap {
		return provider.Bootstrap{
			Schema: provider.BootstrapSchema, Shard: shard, Instance: instance,
			Coordinators: []string{"127.0.0.1:1"}, ReportInterval: "5s", ReconnectMin: "1s", ReconnectMax: "30s",
			StopTimeout: "1s",
		}
	}
	create := func(b provider.Bootstrap) bool {
		_, err := machines.Create(t.Context(), provider.CreateRequest{Zone: "local", Bootstrap: b})
		if err == nil {
			_ = machines.Delete(t.Context(), b.Shard, b.Instance)
		}
		return err == nil
	}
	places := []struct {
		name  string
		taken func(name string) bool
		good  string
	}{
		{"a group", group(func(g *store.Group, n string) { g.Name = n }), "web"},
		{"a group's provider", group(func(g *store.Group, n string) { g.Provider = n }), "process"},
		{"a variable", group(func(g *store.Group, n string) { g.Vars = map[string]string{n: "x"} }), "NAME"},
		{"a secret", store.IsSecretName, "db-password"},
		{"an identity's instance", func(n string) bool {
			return identity.Identity{Shard: "s", Role: identity.Agent, Name: n}.Validate() == nil
		}, "web-0"},
		{"an identity's shard", func(n string) bool {
			return identity.Identity{Shard: n, Role: identity.Agent, Name: "web-0"}.Validate() == nil
		}, "51a4d"},
		{"an issued certificate", func(n string) bool {
			_, err := pki.IssueOperator(dir, pki.Order{Name: n, Lifetime: time.Hour})
			return err == nil
		}, "alice"},
		{"a machine to be made", func(n string) bool { return create(bootstrap("s", n)) }, "web-0"},
		{"a machine's shard", func(n string) bool { return create(bootstrap(n, "web-1")) }, "s"},
		{"a machine to be stopped", func(n string) bool {
			return machines.Stop(t.Context(), "s", n, time.Second) == nil
		}, "web-0"},
		{
			"a machine to be deleted", func(n string) bool { return machines.Delete(t.Context(), "s", n) == nil },
			"web-0",
		},
	}
	bad := []string{
		"", ".", "..", "../x", "a/../../x", "/etc/passwd", "a/b", `a\b`, "a\x00b", "a\nb", "ä", "%2e%2e", "a b", "${x}",
		strings.Repeat("a", 300),
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			if !p.taken(p.good) {
				t.Errorf("%q is refused: nothing is tested here", p.good)
			}
			for _, name := range bad {
				if p.taken(name) {
					t.Errorf("%q is taken", name)
				}
			}
		})
	}
	found, err := os.ReadDir(home)
	if err != nil || len(found) != 2 {
		t.Errorf("beside its two directories there is something: %v, %v", found, err)
	}
}
