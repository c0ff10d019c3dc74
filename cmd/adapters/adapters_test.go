package adapters

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/providerfile"
)

func readText(t *testing.T, text string) ([]providerfile.Entry, error) {
	t.Helper()
	return All().Kinds.Read(write(t, text))
}

// write writes a file of providers and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "providers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is wrong in the file is said with its line, or with the provider and the setting.
//
// proves SEC-7
func TestWhatIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"providers:\n  a:\n    exek: {}": `"exek" is no kind of provider; the kinds are ec2, exec, libvirt, lxd, openstack, process: did you mean exec?`,
		"balancers: {a: {haproxi: {}}}":  `"haproxi" is no kind of balancer; the kinds are exec, haproxy, target_groups: did you mean haproxy?`,
	} {
		_, err := readText(t, text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	for text, says := range map[string]string{
		"providers:\n  a:\n    exec: {comand: [true]}": `:3: providers.a.exec: unknown field "comand"`,
		"providers:\n  a:\n    exec: {command: true}": ":3: providers.a.exec: command: " +
			"must be a list, but is a bool",
		"providers: {a: {exec: {command: [/no/such/program]}}}": "command: ",
		"providers: {a: {lxd: {url: \"http://x\"}}}":            "must be https",
		"providers: {a: {libvirt: {zones: {}}}}":                "zones: at least one is needed",
		"providers: {a: {libvirt: {zones: {b: {uri: x}}}}}":     `zones: b: uri "x": must be qemu:///system`,
		"providers: {a: {ec2: {zones: {}}}}":                    "region: is missing",
		"providers: {a: {process: {agent: [true]}}}":            "agent: must be text, but is a bool",
		`providers: {a: {process: {agent: ["true"]}}}`:          "directory for machines is not set",
	} {
		entries, err := readText(t, text)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: %v, %v", text, entries, err)
		}
		if _, err := entries[0].Open(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(),
			says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestProvidersAreOpened(t *testing.T) {
	dir := t.TempDir()
	entries, err := readText(t, `
providers:
  near: {process: {dir: `+dir+`, agent: ["true"], zones: [a, b]}}
  containers: {lxd: {socket: /no/such/socket, zones: {rack1: "@rack1"}}}
  hosts: {libvirt: {zones: {h1: {uri: "qemu:///system", memory: 8GiB}, h2: {uri: "qemu:///session"}}}}
  cloud: {ec2: {region: eu-west-1, zones: {eu-west-1a: {subnets: [subnet-0123456789abcdef0]}}}}
`)
	if err != nil || len(entries) != 4 {
		t.Fatal(entries, err)
	}
	for i, zones := range []string{"a b", "rack1", "h1 h2", "eu-west-1a"} {
		p, err := entries[i].Open(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Capabilities().Zones, " "); got != zones {
			t.Errorf("%s has the zones %s, want %s", entries[i].Name, got, zones)
		}
	}
}

// Balancers are named beside providers, and an error about one has its line.
//
// proves SEC-7
func TestBalancersAreOpened(t *testing.T) {
	entries, err := All().Kinds.ReadBalancers(write(t, `
providers: {near: {process: {agent: "true"}}}
balancers:
  web: {haproxy: {sockets: ["unix:/run/haproxy/admin.sock", "10.0.0.5:9999"], backend: web}}
  api: {target_groups: {region: eu-west-1, arns: ["arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/api/73e2d6bc24d8a067"]}}
`))
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	for i, named := range []bool{true, false} {
		b, err := entries[i].Open(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if b.Capabilities().Named != named {
			t.Errorf("%s: %+v", entries[i].Name, b.Capabilities())
		}
	}
	entries, err = All().Kinds.ReadBalancers(write(t, "providers: {near: {process: {}}}"))
	if err != nil || len(entries) != 0 {
		t.Errorf("a file without balancers: %v, %v", entries, err)
	}
	user := ""
	if os.Geteuid() == 0 {
		user = ", user: root" // must be named
	}
	for text, says := range map[string]string{
		"balancers:\n  a:\n    haproxy: {socket: x}":              `:3: balancers.a.haproxy: unknown field "socket"`,
		"balancers: {a: {haproxy: {backend: web}}}":               "sockets: is missing",
		"balancers: {a: {target_groups: {region: x}}}":            "arns: is missing",
		"balancers: {a: {exec: {command: [/no/such/program]}}}":   "command: ",
		`balancers: {a: {exec: {command: ["true"]` + user + `}}}`: "describe: the program's answer",
	} {
		entries, err := All().Kinds.ReadBalancers(write(t, text))
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: %v, %v", text, entries, err)
		}
		if _, err := entries[0].Open(t.Context(), slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
