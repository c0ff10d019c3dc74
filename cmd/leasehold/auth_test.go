package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/leasehold/leasehold/cmd/cli"
)

// says fails unless a command ended so, and an error says all this.
func (g *guarded) says(flags []string, command string, want cli.Code, texts ...string) {
	g.t.Helper()
	code, out, err := g.run(flags, strings.Fields(command)...)
	if code != want {
		g.t.Errorf("%s: exit %d, wanted %d\n%s%s", command, code, want, out, err)
	}
	for _, text := range texts {
		if !strings.Contains(out+err, text) {
			g.t.Errorf("%s: does not say %q\n%s%s", command, text, out, err)
		}
	}
}

// proves SEC-4: rights are set up so that no user is locked out, and a second run mends what is
// missing
func TestAuthInitWithCertificates(t *testing.T) {
	g := newGuarded(t)
	g.says(g.as("root"), "auth show", cli.Done, "authentication is off", "auth init")

	// A user who could not get in as root afterwards is warned before.
	g.says(g.as("eva"), "auth init", cli.Usage, "root would be locked out afterwards", `names "eva"`,
		"leasehold pki issue root")
	g.says(g.as("eva"), "auth show", cli.Done, "authentication is off")

	g.says(g.as("root"), "auth init --dry-run", cli.Done, "+ role leasehold-default-viewer",
		"+ user operator has role leasehold-default-operator", "+ authentication is on", "Nothing changed.")
	g.says(g.as("root"), "auth show", cli.Done, "authentication is off")
	if _, out, _ := g.run(g.as("root"), "auth", "show"); strings.Contains(out, "viewer") {
		t.Errorf("a dry run made something:\n%s", out)
	}

	g.says(g.as("root"), "auth init", cli.Done, "+ authentication is on", "rights of shard default are set up")
	g.says(g.as("root"), "auth show", cli.Done, "authentication is on; you are root", "coordinator")
	g.says(g.as("root"), "auth init", cli.Done, "rights of shard default are set up unchanged")

	// Rights that are missing, and rights that are too many.
	r, leave, err := openRights(t.Context(), g.connection("root"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leave() }()
	roles, err := r.Roles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	operator := roles["leasehold-default-operator"]
	if err := r.Forbid(t.Context(), "leasehold-default-operator", operator[len(operator)-1]); err != nil {
		t.Fatal(err)
	}
	more := operator[0]
	more.Key, more.Prefix, more.Write = "/other/", true, true
	if err := r.Allow(t.Context(), "leasehold-default-viewer", more); err != nil {
		t.Fatal(err)
	}
	if err := r.Take(t.Context(), "viewer", "leasehold-default-viewer"); err != nil {
		t.Fatal(err)
	}
	g.says(g.as("root"), "auth show", cli.Done, "2 things to repair")
	g.says(g.as("root"), "auth init", cli.Done, "- role leasehold-default-viewer may read and write /other/…",
		"+ role leasehold-default-operator", "+ user viewer has role leasehold-default-viewer")
	g.says(g.as("root"), "auth init", cli.Done, "unchanged")

	// People.
	g.says(g.as("eva"), "status", cli.Failed, `status: etcd knows no user "eva" (the name in `,
		"leasehold auth add eva --role operator")
	g.says(g.as("root"), "auth add eva --role viewer", cli.Done, "user eva has the role viewer in shard default")
	g.says(g.as("eva"), "status", cli.Done)
	g.says(g.as("eva"), "auth show", cli.Done, "you are eva", "viewer")
	g.says(g.as("root"), "auth add eva --role operator", cli.Done, "- user eva has role leasehold-default-viewer")
	g.says(g.as("root"), "auth add eva --role operator", cli.Done, "unchanged")
	g.says(g.as("eva"), "auth add max --role operator", cli.Failed,
		`user "eva" may not change users and roles: only root may`)
	g.says(g.as("eva"), "auth init", cli.Failed, "only root may")
	g.says(g.as("root"), "auth remove root", cli.Usage)
	g.says(g.as("root"), "auth remove ghost", cli.NotFound, `no user "ghost"`)

	// Another shard on the same etcd has separate rights.
	g.says(g.as("root"), "auth init --shard two", cli.Done, "user operator has roles only in default",
		"auth add operator --role operator --shard two")
	g.says(g.as("eva"), "group list --shard two", cli.Failed,
		`group list: user "eva" has no role in shard two, only in default`)
	for _, command := range []string{"status", "group list", "instance list"} {
		g.says(g.as("eva"), command+" --all-shards", cli.Failed, `user "eva" may not read every shard: only root may`,
			"name one shard with --shard")
	}
	g.says(g.as("root"), "auth add eva --role viewer --shard two", cli.Done)
	g.says(g.as("eva"), "group list --shard two", cli.Done)
	g.says(g.as("root"), "auth remove eva", cli.Done, "- user eva has role leasehold-default-operator")
	g.says(g.as("eva"), "group list", cli.Failed, `user "eva" has no role in shard default, only in two`)
	g.says(g.as("root"), "auth remove eva --shard two", cli.Done, "- user eva")
	g.says(g.as("eva"), "group list", cli.Failed, `etcd knows no user "eva"`)

	// A client without a user.
	g.says([]string{"--endpoints", g.endpoint, "--cacert", g.cacert()}, "status", cli.Failed,
		"etcd requires authentication, and no credentials are configured", "--cacert, --cert and --key")

	// Services.
	g.says(append(g.as("operator"), "--pki", g.pki, "--machines", t.TempDir(), "--listen", "127.0.0.1:0", "--http",
		"off", "--agent", "/bin/true"), "coordinator", cli.Failed,
		`coordinator: user "operator" has the role operator, and a coordinator needs the role coordinator`,
		"auth add NAME --role coordinator")
}

// An etcd may ask for certificates and yet not go by the name in them, which cannot be seen before
// authentication is on.
//
// proves SEC-4: no user is locked out by turning authentication on
func TestAuthInitDoesNotLockOut(t *testing.T) {
	g := newGuarded(t)
	plain := []string{"--endpoints", g.start(nil).Endpoint()}
	g.says(plain, "auth init", cli.Usage, "root would be locked out afterwards", "--passwords FILE")
	g.says(plain, "auth show", cli.Done, "authentication is off")

	g.endpoint = g.forgetful()
	g.says(g.as("root"), "auth init", cli.Failed, "root could not get in, so authentication was turned off again",
		"--client-cert-auth")
	g.says(g.as("root"), "auth show", cli.Done, "authentication is off")
	if out := g.must(g.as("root"), "auth", "show"); strings.Contains(out, "leasehold-auth-init") {
		t.Errorf("the spare root is left:\n%s", out)
	}
	// With passwords it works there too.
	g.must(g.as("root"), "auth", "init", "--passwords", filepath.Join(t.TempDir(), "passwords"))
	g.says(g.as("root"), "status", cli.Failed,
		`etcd requires authentication, and does not accept the certificate of "root"`, "--client-cert-auth")
}

// forgetful starts an etcd that asks for certificates and does not go by them.
func (g *guarded) forgetful() (endpoint string) {
	g.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	endpoint = l.Addr().String()
	if err := l.Close(); err != nil {
		g.t.Fatal(err)
	}
	server := filepath.Join(g.pki, "issued", "etcd")
	e := embed.NewConfig()
	e.Dir, e.LogLevel, e.UnsafeNoFsync = g.t.TempDir(), "fatal", true
	e.ListenClientUrls = []url.URL{{Scheme: "https", Host: endpoint}}
	e.AdvertiseClientUrls, e.ListenPeerUrls = e.ListenClientUrls, nil
	e.ClientTLSInfo.CertFile, e.ClientTLSInfo.KeyFile, e.ClientTLSInfo.TrustedCAFile = server+".crt", server+".key",
		g.cacert()
	etcd, err := embed.StartEtcd(e)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(etcd.Close)
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(limit):
		g.t.Fatal("etcd is not ready")
	}
	return endpoint
}

// proves SEC-4: with passwords as well; they are in a file that no other user can read, and shown
// nowhere
func TestAuthInitWithPasswords(t *testing.T) {
	g := newGuarded(t)
	etcd := g.start(nil)
	flags := []string{"--endpoints", etcd.Endpoint(), "--timeout", "2m"}
	file := filepath.Join(t.TempDir(), "passwords")
	g.must(flags, "auth", "init", "--passwords", file, "--dry-run")
	if _, err := os.Stat(file); err == nil {
		t.Error("a dry run wrote passwords")
	}
	if err := os.WriteFile(file, []byte("root:given\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g.says(flags, "auth init --passwords "+file, cli.Usage, "the file is readable by others", "chmod 600")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, out, stderr := g.run(flags, "auth", "init", "--passwords", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	passwords := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+):(\w+)$`).FindAllStringSubmatch(string(text), -1) {
		passwords[m[1]] = m[2]
		if m[1] != "root" && strings.Contains(out+stderr, m[2]) {
			t.Errorf("the password of %s was shown", m[1])
		}
	}
	if len(passwords) != 4 || passwords["root"] != "given" || len(passwords["viewer"]) < 20 {
		t.Fatalf("passwords of %d users; %s%s", len(passwords), out, stderr)
	}
	as := func(name string) []string { return append(flags, "--user", name+":"+passwords[name]) }
	g.says(as("root"), "auth init --passwords "+file, cli.Done, "unchanged")
	g.says(as("viewer"), "status", cli.Done)
	g.says(as("viewer"), "hold why", cli.NotFound) // there is no shard yet
	g.says(append(flags, "--user", "viewer:wrong"), "status", cli.Failed,
		`status: etcd knows no user "viewer" with that password`)
	g.says(append(flags, "--user", "ghost:x"), "status", cli.Failed, `etcd knows no user "ghost" with that password`)
	g.says(flags, "status", cli.Failed, "etcd requires authentication, and no credentials are configured")

	g.stdin = "eva:secret-of-eva\n"
	g.says(as("root"), "auth add eva --role operator --passwords -", cli.Done, "with a password")
	passwords["eva"] = "secret-of-eva"
	g.says(as("eva"), "group list", cli.Done)
	g.stdin = "eva:another\n"
	g.says(as("root"), "auth add eva --role operator --passwords -", cli.Done, "with another password")
	g.says(as("eva"), "group list", cli.Failed, "with that password")
	g.stdin = ""
	g.says(as("root"), "auth add max --role viewer --passwords -", cli.Usage, "no password of max")
}
