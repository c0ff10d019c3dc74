package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/leasehold/leasehold/cmd/cli"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
)

// limit bounds what must not hang. Nothing here takes that long unless it is broken.
const limit = 4 * time.Minute

// guarded is an etcd that asks for certificates, and people who have some.
type guarded struct {
	t        *testing.T
	pki      string
	endpoint string
	stdin    string
	edit     func(path string) error
}

// newGuarded starts an etcd that believes certificates, with authentication still off.
func newGuarded(t *testing.T) *guarded {
	t.Helper()
	for _, name := range []string{"ENDPOINTS", "SHARD", "CACERT", "CERT", "KEY", "USER", "CONFIG"} {
		t.Setenv("LEASEHOLD_"+name, "") // the environment of the tests may have some
		if err := os.Unsetenv("LEASEHOLD_" + name); err != nil {
			t.Fatal(err)
		}
	}
	g := &guarded{t: t, pki: filepath.Join(t.TempDir(), "pki")}
	if err := pki.Init(g.pki,
		map[pki.Kind]time.Duration{pki.Agents: time.Hour, pki.Operators: time.Hour}); err != nil {
		t.Fatal(err)
	}
	server := g.issue("etcd", "127.0.0.1")
	for _, name := range []string{"root", "coordinator", "operator", "viewer", "eva"} {
		g.issue(name)
	}
	g.endpoint = g.start(&embedetcd.TLS{Cert: server.File, Key: server.Key, ClientCA: g.cacert()}).Endpoint()
	return g
}

func (g *guarded) cacert() string { return filepath.Join(g.pki, string(pki.Operators), "ca.crt") }

func (g *guarded) issue(name string, hosts ...string) pki.Issued {
	g.t.Helper()
	issued, err := pki.IssueOperator(g.pki, pki.Order{Name: name, Hosts: hosts, Lifetime: time.Hour})
	if err != nil {
		g.t.Fatal(err)
	}
	return issued
}

func (g *guarded) start(tls *embedetcd.TLS) *embedetcd.Server {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), limit)
	defer cancel()
	server, err := embedetcd.Start(ctx,
		embedetcd.Config{DataDir: g.t.TempDir(), Listen: "127.0.0.1:0", NoSync: true, TLS: tls})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		if err := server.Close(); err != nil {
			g.t.Error(err)
		}
	})
	return server
}

// as are the flags of a user with a certificate.
func (g *guarded) as(name string) []string {
	issued := filepath.Join(g.pki, "issued", name)
	return []string{
		"--endpoints", g.endpoint, "--cacert", g.cacert(), "--cert", issued + ".crt", "--key",
		issued + ".key", "--timeout", "2m",
	}
}

func (g *guarded) connection(name string) cli.Connection {
	issued := filepath.Join(g.pki, "issued", name)
	return cli.Connection{
		Endpoints: []string{g.endpoint}, CACert: g.cacert(), Cert: issued + ".crt",
		Key: issued + ".key",
	}
}

// run runs a command with more flags.
func (g *guarded) run(flags []string, args ...string) (code cli.Code, out, err string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), limit)
	defer cancel()
	return g.runCtx(ctx, flags, args...)
}

func (g *guarded) runCtx(ctx context.Context, flags []string, args ...string) (code cli.Code, stdout, stderr string) {
	var out, err bytes.Buffer
	env := environment()
	env.Stdin, env.Stdout, env.Stderr = strings.NewReader(g.stdin), &out, &err
	env.StdinTerminal, env.StdoutTerminal, env.StderrTerminal = false, false, false
	env.User, env.Settings, env.DevData = "eva@laptop", "", ""
	env.Edit = func(_ context.Context, path string) error { return g.edit(path) }
	code = cli.Run(ctx, env, append(slices.Clone(args), flags...))
	return code, out.String(), err.String()
}

// must is run for what has to work.
func (g *guarded) must(flags []string, args ...string) string {
	g.t.Helper()
	code, out, err := g.run(flags, args...)
	if code != cli.Done {
		g.t.Fatalf("leasehold %s: exit %d\n%s%s", strings.Join(args, " "), code, out, err)
	}
	return out
}

// open opens the store as a user.
func (g *guarded) open(name string) store.Store {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), limit)
	defer cancel()
	st, closeStore, err := program.OpenEtcd(ctx, g.connection(name))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		if err := closeStore(); err != nil {
			g.t.Error(err)
		}
	})
	return st
}

// fill has a coordinator write a shard with two groups, one of them static, and their instances.
func (g *guarded) fill() {
	st, keys := g.open("coordinator"), store.KeysOf("default")
	web := store.DefaultGroup()
	web.Name, web.Provider, web.Size = "web", "process", 2
	web.Workload.Run = []string{"./web"}
	web.Complete()
	now := time.Now().UTC()
	put := func(key string, value any) {
		g.t.Helper()
		if _, err := st.Commit(g.t.Context(),
			store.Txn{Writes: []store.Write{store.Put(key, store.Encode(value))}}); err != nil {
			g.t.Fatal(err)
		}
	}
	put(keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "x1", Name: "default",
		Settings: store.DefaultShardSettings(), Created: now,
	})
	put(keys.Group("web"), web)
	older := web
	older.Vars = map[string]string{"was": "better"}
	kv, err := st.Get(g.t.Context(), keys.Group("web"))
	if err != nil {
		g.t.Fatal(err)
	}
	put(keys.Status("web"), store.Status{
		Schema: store.Schema, Group: "web", Accepted: &web, AcceptedRevision: kv.Modified, State: store.GroupStarted,
		Since: now,
		Storm: &store.Storm{Since: now},
		LastGood: &store.GoodSpec{
			Template: older.InstanceSpec().TemplateHash(), Spec: older.InstanceSpec(),
			Revision: kv.Modified,
		},
	})
	for id, phase := range map[string]store.Phase{"web-0-a": store.Running, "web-1-b": store.Draining} {
		put(keys.Instance(id), store.Instance{
			Schema: store.Schema, ID: id, Group: "web", Phase: phase, Managed: true, Since: now, Created: now,
			Spec: web.InstanceSpec(), Zone: "local",
		})
	}
}

// reading are commands that change nothing, with arguments that they work with.
var reading = map[string][]string{
	"status":        {"-o", "wide"},
	"group list":    nil,
	"group show":    {"web"},
	"group diff":    {"-f", "web.yaml"},
	"group history": {"web"},
	"instance list": nil,
	"instance show": {"web-0-a"},
	"instance logs": {"web-0-a"},
	"events list":   {"--since", "24h"},
	"events export": nil,
	"report":        {"-g", "web"},
	"replay":        {"-f", "web.yaml", "--since", "1h"},
	"drill list":    {"web"},
	"explain":       {"web"},
	"config show":   nil,
	"secret list":   nil,
	"repair":        nil,
	"auth show":     nil,
	"provider list": nil,
	"webhook list":  nil,
	"upgrade check": nil,
}

// changing are commands that change something in etcd.
var changing = []struct {
	command string
	args    []string
}{
	{"apply", []string{"-f", "fleet.yaml", "--source", "fleet"}},
	{"group apply", []string{"-f", "web.yaml"}},
	{"group scale", []string{"web", "4"}},
	{"group edit", []string{"web"}},
	{"group pause", []string{"web"}},
	{"group resume", []string{"web"}},
	{"group stop", []string{"web", "--confirm=web"}},
	{"group start", []string{"web"}},
	{"group restart", []string{"web"}},
	{"group retry", []string{"web"}},
	{"group rollback", []string{"web"}},
	{"group override-storm", []string{"web"}},
	{"instance replace", []string{"web-0-a"}},
	{"instance restart", []string{"web-0-a"}},
	{"instance drain", []string{"web-0-a", "--confirm=web-0-a"}},
	{"instance drained", []string{"web-1-b"}},
	{"instance protect", []string{"web-0-a"}},
	{"instance create", []string{"-g", "web"}},
	{"instance adopt", []string{"web-9-z"}},
	{"instance delete", []string{"web-0-a", "--confirm=web-0-a"}},
	{"hold", []string{"looking"}},
	{"release", nil},
	{"freeze", []string{"sale", "--for=1h"}},
	{"evacuate", []string{"local", "--confirm=local"}},
	{"config apply", []string{"-f", "static.yaml"}},
	{"config set", []string{"provider_poll=6s"}},
	{"secret set", []string{"token", "--from-file", "value", "--secrets-key", "key"}},
	{"secret delete", []string{"token"}},
	{"group delete", []string{"web", "--confirm=web"}},
}

// elsewhere are commands that read and change no shard in etcd, or are not an operator's.
var elsewhere = []string{
	"simulate", "version", "dev", "coordinator", "agent", "demo-web", "completion", "man", "init", "recover", "bench",
	"backup",  // which a viewer may make, and an operator may record: below
	"restore", // which writes what recover does, and more
	"auth init", "auth add", "auth remove",
	"drill machine", "drill zone", "drill agent", "drill workload", // which write an order, and follow it
	"secret new-key", "secret rotate", // which writes what secret set does
	"instance bootstrap", // which writes what instance create does, and waits for a leader
	"pki init", "pki issue", "pki rotate", "pki show", "upgrade key", "upgrade sign",
	"top",                           // which reads what status reads, and has no end
	"provider show",                 // which reads what provider list does
	"provider test", "webhook test", // which do not ask etcd
	"group promote",                                                                              // as group retry
	"server run", "server list", "server add", "server remove", "server replace", "server token", // root's, or its host's
}

// proves SEC-4: an operator can do all that the commands do, a viewer can see all of it and change
// nothing, and gets an error that says so
func TestWhatRolesMayDo(t *testing.T) {
	g := newGuarded(t)
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	g.must(g.as("root"), "auth", "init")
	g.fill()
	for name, text := range map[string]string{
		"web.yaml":    "name: web\nprovider: process\nsize: 3\nworkload: {run: [./web]}\n",
		"value":       "of the secret",
		"fleet.yaml":  "name: fleet\nprovider: process\nsize: 1\nworkload: {run: [./web]}\n",
		"static.yaml": "name: fixed\nprovider: process\nsize: 1\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.must(nil, "secret", "new-key", "key")
	g.edit = func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, bytes.Replace(text, []byte("size: "), []byte("size: 1"), 1), 0o600)
	}
	st, keys := g.open("coordinator"), store.KeysOf("default")
	everything := func() string {
		t.Helper()
		l, err := st.List(t.Context(), keys.Prefix(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(l.KVs)
	}

	before := everything()
	for command, args := range reading {
		for _, who := range []string{"viewer", "operator"} {
			code, out, err := g.run(g.as(who), append(strings.Fields(command), args...)...)
			if code != cli.Done && !(command == "instance logs" && code == cli.NotFound) &&
				!(command == "upgrade check" && strings.Contains(err, "cannot begin")) ||
				strings.Contains(err, "role") {
				t.Errorf("%s: %s: exit %d\n%s%s", who, command, code, out, err)
			}
		}
	}
	if code, out, err := g.run(g.as("viewer"), "backup", "shard.backup"); code != cli.Done ||
		!strings.Contains(err, "not recorded") {
		t.Errorf("viewer: backup: exit %d\n%s%s", code, out, err)
	}
	for _, c := range changing {
		code, out, err := g.run(g.as("viewer"), append(strings.Fields(c.command), c.args...)...)
		want := fmt.Sprintf("error: %s: user \"viewer\" has the role viewer, which may not ", c.command)
		if slices.Contains([]string{"config set", "freeze", "hold"}, c.command) {
			want += "change, hold or freeze the shard"
		}
		// there is nothing to write yet
		if c.command == "group resume" || c.command == "release" || c.command == "group start" ||
			c.command == "secret delete" {
			continue
		}
		if code != cli.Failed || !strings.Contains(err, want) || !strings.Contains(err, "next: ") {
			t.Errorf("viewer: %s: exit %d, wanted %q\n%s%s", c.command, code, want, out, err)
		}
	}
	if after := everything(); after != before {
		t.Errorf("a viewer changed something: it was\n%s\nand is\n%s", before, after)
	}
	if code, out, err := g.run(g.as("operator"), "backup", "shard.backup"); code != cli.Done || err != "" ||
		everything() == before {
		t.Errorf("operator: backup: exit %d\n%s%s", code, out, err)
	}
	for _, c := range changing {
		at := everything()
		code, out, err := g.run(g.as("operator"), append(strings.Fields(c.command), c.args...)...)
		if code != cli.Done {
			t.Errorf("operator: %s: exit %d\n%s%s", c.command, code, out, err)
		} else if everything() == at {
			t.Errorf("operator: %s changed nothing", c.command)
		}
		// What a viewer could not be tried with before.
		if undo := map[string]string{
			"group pause": "group resume web", "hold": "release",
			"group stop": "group start web", "secret set": "secret delete token",
		}[c.command]; undo != "" {
			if code, _, err := g.run(g.as("viewer"), strings.Fields(undo)...); code != cli.Failed ||
				!strings.Contains(err, "has the role viewer") {
				t.Errorf("viewer: %s: exit %d\n%s", undo, code, err)
			}
		}
	}

	// Who did it is in what was written.
	list, err := st.List(t.Context(), keys.Of(store.KindRequests), 0)
	if err != nil || len(list.KVs) == 0 {
		t.Fatalf("%d orders, %v", len(list.KVs), err)
	}
	for _, kv := range list.KVs {
		r, err := store.Decode[store.Request](kv)
		if err != nil || r.Record.By != "operator (eva@laptop)" {
			t.Errorf("%s was ordered by %q, %v", r.Record.Kind, r.Record.By, err)
		}
	}
	everyCommandHasItsPlace(t)
}

// everyCommandHasItsPlace fails for a command that was not tried with each role.
func everyCommandHasItsPlace(t *testing.T) {
	parser, err := kong.New(&cli.Grammar{},
		kong.Vars{"request_timeout": "", "wait_timeout": "", "pki_dir": "x", "server_dir": "x", "secrets_key": "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(false) {
		var words []string
		for n := leaf; n.Type == kong.CommandNode; n = n.Parent {
			words = append([]string{n.Name}, words...)
		}
		command := strings.Join(words, " ")
		_, reads := reading[command]
		changes := slices.ContainsFunc(changing, func(c struct {
			command string
			args    []string
		},
		) bool {
			return c.command == command
		})
		if !reads && !changes && !slices.Contains(elsewhere, command) {
			t.Errorf("%s: who may do that? add it to reading, changing or elsewhere", command)
		}
	}
}
