package secrets

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/keyfile"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/process"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/store/storetest"
	"github.com/leasehold/leasehold/tests/harness"
	"github.com/leasehold/leasehold/tests/machines"
	"github.com/leasehold/leasehold/tests/programs"
)

// longest bounds every wait. It is no measure of speed.
const longest = 90 * time.Second

// run is a shard with one replica, and an operator.
type run struct {
	t        *testing.T
	dir      string
	program  string
	endpoint string
	keyFile  string
	st       *etcdstore.Store
	keys     store.Keys
	printed  harness.Output // output of commands
	logged   harness.Output // the coordinator's log, at debug
}

// group leaks its secrets in every way that a workload can.
const group = `name: web
provider: process
size: 1
workload:
  run: ["sh", "-c", 'echo "I say $DB_PASSWORD"; printf %s "$DB_PASSWORD" | base64; printf %s "$DB_PASSWORD" | od -An -v -tx1 | tr -d " \n"; echo; echo "token $API_TOKEN"; cat "${dir}/files/key" "${dir}/files/tls.key"; sleep 2; exit 3']
secrets: {DB_PASSWORD: db-password, API_TOKEN: api-token}
files:
- {path: "${dir}/files/key", secret: file-key}
` + withKey + `checks:
- name: tells
  exec: {run: ["sh", "-c", 'echo "refused: $DB_PASSWORD"; exit 1']}
- name: tells-the-other
  exec: {run: ["sh", "-c", 'echo "refused: $API_TOKEN" >&2; exit 1']}
heal: {policy: none}
report: {interval: 1s}
drain: {timeout: 30s, hook: ["sh", "-c", 'echo "leaving with $DB_PASSWORD"; exit 4']}
`

// withKey is its file over a key that the instance makes.
const withKey = `- {path: "${dir}/files/tls.crt", certificate: {authority: web, names: ["{{.Facts.instance}}.web.internal"], key: "${dir}/files/tls.key"}}
`

// proves SEC-6, FILE-2
func TestNoSecretIsSeenInAWholeRun(t *testing.T) {
	values := map[string]string{
		"db-password": "hunter2/" + rand.Text(), "api-token": "tok+" + rand.Text(),
		"file-key": "key/" + rand.Text(),
	}
	r := start(t)
	file := filepath.Join(r.dir, "web.yaml")
	if err := os.WriteFile(file, []byte(group), 0o600); err != nil {
		t.Fatal(err)
	}

	// Applied before its secrets are there, the group waits for them, and says so.
	r.leasehold("", "group", "apply", "-f", file)
	r.await("an instance that waits for its secrets", func() bool {
		return strings.Contains(r.report().Why, "there is no such secret: leasehold secret set api-token")
	})
	if out := r.leasehold("", "status"); !strings.Contains(out, "secrets.DB_PASSWORD: there is no secret db-password") {
		t.Errorf("status says\n%s", out)
	}
	r.leasehold(values["db-password"]+"\n", "secret", "set", "db-password")
	r.leasehold(values["api-token"], "secret", "set", "api-token")
	r.leasehold(values["file-key"]+"\n", "secret", "set", "file-key")
	r.await("the end of the workload, and checks that fail", func() bool {
		rep := r.report()
		failing := 0
		for _, c := range rep.Checks {
			if strings.Contains(c.Why, "refused: [secret ") {
				failing++
			}
		}
		return rep.Workload != nil && failing == 2
	})
	instance := r.report().Instance
	if out := r.leasehold("", "instance", "logs", instance); !strings.Contains(out, "I say [secret db-password]") ||
		!strings.Contains(out, "token [secret api-token]") || !strings.Contains(out, "[secret ${dir}/files/key]") ||
		!strings.Contains(out, "[secret ${dir}/files/tls.key]") {
		t.Errorf("last words are\n%s", out)
	}
	for i, line := range r.tlsKey(instance) {
		values[fmt.Sprintf("line %d of tls.key", i)] = line
	}
	// Only now is it certain that there was something to hide.
	log, err := os.ReadFile(filepath.Join(r.dir, "machines", instance, "workload.log"))
	if err != nil {
		log, err = r.workloadLog(instance)
	}
	forms := func(of string) int { return len(found(t, log, map[string]string{of: values[of]})) }
	if err != nil || forms("db-password") < 2 || forms("api-token") == 0 || forms("line 0 of tls.key") == 0 {
		t.Fatalf("the workload has said %q, %v: it did not have its secrets", log, err)
	}

	r.everyCommand(file, instance)
	r.leasehold("", "secret", "rotate")
	r.leasehold("", "secret", "rotate", "--prune")
	r.leasehold(values["db-password"]+"x", "secret", "set", "db-password")
	r.leasehold("", "secret", "delete", "db-password", "--force")
	r.searchAll(values)
	r.leasehold("", "instance", "delete", instance, "--confirm="+instance)
	r.await("the end of the instance", func() bool {
		_, err := r.st.Get(context.Background(), r.keys.Instance(instance))
		return errors.Is(err, store.ErrNotFound)
	})
	r.searchAll(values)
}

// everyCommand runs every command that shows anything, in every format.
func (r *run) everyCommand(file, instance string) {
	r.t.Helper()
	for _, line := range []string{
		"status", "status --all-shards", "group list", "group show web", "group history web", "group diff -f " + file,
		"group apply -f " + file + " --dry-run",
		"instance list", "instance show " + instance, "instance logs " + instance, "events", "events -g web",
		"events -i " + instance, "explain web", "explain " + instance,
		"explain SEC-6", "config show", "secret list", "simulate -f " + file,
	} {
		for _, format := range []string{"table", "wide", "json", "yaml"} {
			r.command("", append(strings.Fields(line), "-o", format)...) // some have no format, and say so
		}
	}
	for _, wrong := range []string{
		"secret set db-password --from-file /nowhere", "secret set ../db",
		"secret delete nothing", "secret delete db-password", "group apply -f " + r.keyFile,
	} {
		r.command("hunter", strings.Fields(wrong)...)
	}
}

// searchAll searches everything that was printed, logged and stored so far.
func (r *run) searchAll(values map[string]string) {
	r.t.Helper()
	values = with(values, r.keyTexts())
	lookAt(r.t, "what commands printed", r.printed.Bytes(), values)
	lookAt(r.t, "the coordinator's log", r.logged.Bytes(), values)
	if n := search(r.t, filepath.Join(r.dir, "machines"), values, ownWords); n < 4 {
		r.t.Errorf("only %d files of machines were searched", n)
	}
	if n := search(r.t, filepath.Join(r.dir, "etcd"), values, func(string) bool { return false }); n < 2 {
		r.t.Errorf("only %d files of etcd were searched", n)
	}
	l, err := r.st.List(r.t.Context(), "", 0)
	if err != nil || len(l.KVs) < 10 {
		r.t.Fatalf("etcd has %d keys, %v", len(l.KVs), err)
	}
	for _, kv := range l.KVs {
		lookAt(r.t, kv.Key, append([]byte(kv.Key), kv.Value...), values)
	}
}

// ownWords returns the output of a workload or its hook on its own machine, and the files that have
// a secret or a key there.
func ownWords(path string) bool {
	if strings.HasSuffix(path, "/work/files/key") || strings.HasSuffix(path, "/work/files/tls.key") {
		return true
	}
	switch filepath.Base(path) {
	case "workload.log", "workload.log.1", "drain.log":
		return true
	}
	return false
}

// tlsKey returns the lines of the key that the instance has made for its certificate.
func (r *run) tlsKey(instance string) (lines []string) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "machines", instance, "work/files/tls.key"))
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			lines = append(lines, line)
		}
	}
	if len(lines) < 2 {
		r.t.Fatalf("the key is %q", text)
	}
	return lines
}

func with(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// keyTexts returns the keys themselves, as they are in the key file.
func (r *run) keyTexts() map[string]string {
	data, err := os.ReadFile(r.keyFile)
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if id, key, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(id, "#") {
			out["key "+id] = key
		}
	}
	if len(out) == 0 {
		r.t.Fatal("no keys are looked for")
	}
	return out
}

// build builds the program that agents and commands are, and dev.
func build(t *testing.T) *run {
	t.Helper()
	r := &run{t: t, dir: t.TempDir(), keys: store.KeysOf("default")}
	r.program = filepath.Join(r.dir, "leasehold")
	if err := programs.Build(r.dir, programs.Leasehold); err != nil {
		t.Fatal(err)
	}
	return r
}

// start starts etcd and a replica whose streams use TLS.
func start(t *testing.T) *run {
	t.Helper()
	r := build(t)
	log := slog.New(slog.NewJSONHandler(&r.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	etcd, err := harness.StartEtcd(t.Context(),
		embedetcd.Config{DataDir: filepath.Join(r.dir, "etcd"), Listen: "127.0.0.1:0", Logger: log, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := etcd.Close(); err != nil {
			t.Errorf("close etcd: %v", err)
		}
	})
	r.endpoint, r.st = etcd.Endpoint, etcd.Store
	r.keyFile = filepath.Join(r.dir, "secrets.key")
	if err := keyfile.Create(r.keyFile, encryption.Ring{}.With(encryption.NewKey())); err != nil {
		t.Fatal(err)
	}
	keys, err := keyfile.Open(keyfile.Config{Path: r.keyFile}, log)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(r.dir, "pki")
	if err := pki.Init(dir, map[pki.Kind]time.Duration{pki.Agents: time.Hour}); err != nil {
		t.Fatal(err)
	}
	issuing, err := pki.Open(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := pki.InitWorkloads(dir, "web", time.Hour); err != nil {
		t.Fatal(err)
	}
	web, err := authority.NewOwn(authority.OwnConfig{
		Dir: filepath.Join(dir,
			string(pki.WorkloadsKind("web"))), Limits: authority.Limits{Domains: []string{"web.internal"}},
	}, dir, log)
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(r.dir, "machines")
	made, err := process.New(process.Config{
		Dir: place, AgentCommand: []string{r.program, "agent", "--log-level=debug"},
		Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { machines.Kill(place, machines.Shards(place)) })
	storetest.CreateShard(t, r.st, "default")
	ready := make(chan string, 1)
	replica, err := coordinator.New(coordinator.Config{
		Shard: "default", ID: "one", Listen: "127.0.0.1:0",
		Version: "test",
	}, coordinator.Deps{
		Store: r.st, Providers: map[string]provider.Provider{"process": made}, Logger: log, Authority: issuing,
		Secrets: keys, Authorities: authority.NewSet(map[string]authority.Authority{"web": web}),
		Ready: func(a string) { ready <- a },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Errorf("the replica: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	r.await("a replica that says which keys it has", func() bool {
		kv, err := r.st.Get(context.Background(), r.keys.Replica("one"))
		return err == nil && bytes.Contains(kv.Value, []byte("secret_keys"))
	})
	return r
}

// command runs an operator's command with the given standard input.
func (r *run) command(in string, args ...string) (string, error) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), r.program, args...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(in)
	cmd.Env = r.environment()
	if r.endpoint != "" { // otherwise the command finds what runs
		cmd.Env = append(cmd.Env, "LEASEHOLD_ENDPOINTS="+r.endpoint, "LEASEHOLD_SECRETS_KEY_FILE="+r.keyFile)
	}
	out, err := cmd.CombinedOutput()
	_, _ = fmt.Fprintf(&r.printed, "$ %s\n%s\n", strings.Join(args, " "), out)
	return string(out), err
}

// environment is a user's whose home is the run's directory.
func (r *run) environment() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir} }

// leasehold is command, which must succeed.
func (r *run) leasehold(in string, args ...string) string {
	r.t.Helper()
	out, err := r.command(in, args...)
	if err != nil {
		r.t.Fatalf("leasehold %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// report returns the last report of the group's instance.
func (r *run) report() store.Report {
	l, err := r.st.List(r.t.Context(), r.keys.Of(store.KindReports), 0)
	if err != nil || len(l.KVs) == 0 {
		return store.Report{}
	}
	v, err := store.Decode[store.Report](l.KVs[0])
	if err != nil {
		r.t.Fatal(err)
	}
	return v.Record
}

// workloadLog is what the workload wrote itself, wherever below its machine's directory that is.
func (r *run) workloadLog(instance string) ([]byte, error) {
	found, err := filepath.Glob(filepath.Join(r.dir, "machines", instance, "*", "workload.log"))
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no output of the workload of %s: %w", instance, err)
	}
	return os.ReadFile(found[0])
}

func (r *run) await(what string, is func() bool) {
	r.t.Helper()
	harness.Await(r.t, what, longest, 50*time.Millisecond, is, func() string {
		return fmt.Sprintf("report: %+v\n%s", r.report(), tail(r.logged.Bytes()))
	})
}

func tail(text []byte) []byte { return text[max(0, len(text)-4000):] }
