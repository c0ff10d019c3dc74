package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write what the commands print into testdata")

// TestMain is also the program that a bench starts again for its parts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "part" {
		env := Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now, Open: program.OpenEtcd}
		os.Exit(int(Run(context.Background(), env, os.Args[1:])))
	}
	goleak.VerifyTestMain(m)
}

// desk is where commands are run: with a store in memory for the etcd that --endpoints names.
type desk struct {
	t    *testing.T
	st   store.Store
	open func(context.Context, program.Connection) (store.Store, func() error, error)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	d := &desk{t: t, st: db.Connect()}
	d.open = func(context.Context, program.Connection) (store.Store, func() error, error) {
		return d.st, func() error { return nil }, nil
	}
	return d
}

// noon is the time of everything here.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (d *desk) env(out, aside io.Writer) Env {
	return Env{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: aside, Version: "v0",
		Now: func() time.Time { return noon }, RandomID: func() string { return "random" }, Open: d.open,
	}
}

// run runs a command as a shell would.
func (d *desk) run(args ...string) (code program.Code, stdout, stderr string) {
	d.t.Helper()
	var out, aside bytes.Buffer
	code = Run(d.t.Context(), d.env(&out, &aside), args)
	return code, out.String(), aside.String()
}

func (d *desk) put(key, value string) {
	d.t.Helper()
	if _, err := d.st.Commit(d.t.Context(),
		store.Txn{Writes: []store.Write{store.Put(key, []byte(value))}}); err != nil {
		d.t.Fatal(err)
	}
}

// TestTranscript runs the commands in testdata/usage.txt, where an etcd is named that holds a
// shard, and compares what they print. Lines with "2>" are on standard error. Rewrite it with: go
// test ./cmd/bench -update
func TestTranscript(t *testing.T) {
	const path = "testdata/usage.txt"
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	d.put(store.KeysOf("default").Shard(), "{}")
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		command, found := strings.CutPrefix(line, "$ "+name)
		if !found {
			continue
		}
		code, stdout, stderr := d.run(strings.Fields(command)...)
		got.WriteString(line + stdout)
		for said := range strings.Lines(stderr) {
			got.WriteString("2> " + said)
		}
		if code != program.Done {
			fmt.Fprintf(&got, "exit %d\n", code)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got.String() != string(want) {
		t.Errorf("%s has something else; got\n%s", path, got.String())
	}
}

// Every command is on the reference page, and has a help text, as has every flag.
func TestEveryCommandIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&Grammar{}, kong.Name(name), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Leaves(true) {
		if !strings.Contains(string(page), "`"+name+" "+node.Name) {
			t.Errorf("docs/cli.md has no line for %s %s", name, node.Name)
		}
		if node.Help == "" {
			t.Errorf("%s has no help", node.Name)
		}
		for _, f := range node.Flags {
			if f.Help == "" {
				t.Errorf("%s --%s has no help", node.Name, f.Name)
			}
		}
	}
}

// An etcd that cannot be opened ends a bench with a code and what helps.
func TestAnEtcdThatCannotBeOpened(t *testing.T) {
	for _, c := range []struct {
		flags, says string
		err         error
		code        program.Code
	}{
		{"--endpoints db:2379", "next: start etcd there, and give --cacert", store.ErrUnavailable, program.Unreachable},
		{"--endpoints db:2379 --cacert /ca.crt", "see that --cacert", store.ErrUnavailable, program.Unreachable},
		{"--endpoints db:2379", "next: log in as root", store.ErrLogin, program.Failed},
		{"--endpoints db:2379", "next: leasehold-bench --help", os.ErrNotExist, program.Usage},
		{"--endpoints db", `--endpoints: "db": must be HOST:PORT`, nil, program.Usage},
	} {
		d := newDesk(t)
		d.open = func(context.Context, program.Connection) (store.Store, func() error, error) { return nil, nil, c.err }
		code, stdout, stderr := d.run(append([]string{"etcd"}, strings.Fields(c.flags)...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: %v: exit %d: %s%s", c.flags, c.err, code, stdout, stderr)
		}
	}
}

// A bench must not use the operator's everyday etcd: only its own flag or variable names one.
func TestOnlyTheBenchsOwnVariableNamesAnEtcd(t *testing.T) {
	used := func() []string {
		d := newDesk(t)
		var endpoints []string
		d.open = func(_ context.Context, c program.Connection) (store.Store, func() error, error) {
			endpoints = c.Endpoints
			return nil, nil, store.ErrUnavailable
		}
		d.run("etcd")
		return endpoints
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("LEASEHOLD_ENDPOINTS", "daily:2379")
	if got := used(); len(got) != 1 || !strings.HasPrefix(got[0], "127.0.0.1:") {
		t.Errorf("without a flag the bench used %v, not an etcd of its own", got)
	}
	t.Setenv("LEASEHOLD_BENCH_ENDPOINTS", "spare:2379")
	if got := used(); len(got) != 1 || got[0] != "spare:2379" {
		t.Errorf("with its own variable the bench used %v", got)
	}
}

// Parts find the endpoints and the user of etcd in their environment.
func TestPartsAreGivenTheEtcd(t *testing.T) {
	inv := &Invocation{flags: &Globals{}}
	if env := inv.partEnvironment(); env != nil {
		t.Errorf("without a named etcd: %q", env)
	}
	inv.flags = &Globals{Endpoints: []string{"a:1", "b:2"}, User: "root:secret", Cert: "/crt"}
	for _, v := range inv.partEnvironment() {
		variable, value, _ := strings.Cut(v, "=")
		t.Setenv(variable, value)
	}
	var g Grammar
	parser, err := kong.New(&g, kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"plan"}); err != nil {
		t.Fatal(err)
	}
	if got := (&Invocation{flags: &g.Globals}).connection(nil); strings.Join(got.Endpoints, " ") != "a:1 b:2" ||
		got.Username != "root" || got.Password != "secret" || got.Cert != "/crt" {
		t.Errorf("a part would open %+v", got)
	}
}

// A terminal shows one line that is rewritten; a file gets a line when something else begins, and
// now and then.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		terminal, quiet bool
		want            string
	}{
		{terminal: true, want: "\r\x1b[K[a 1]\r\x1b[K[a 3]\r\x1b[K[b]\r\x1b[K"},
		{terminal: true, quiet: true, want: "\r\x1b[K[a 1]\r\x1b[K[a 3]\r\x1b[K[b]\r\x1b[K"},
		{want: "a 1\nb\n"},
		{quiet: true},
	} {
		now := noon
		var aside bytes.Buffer
		inv := &Invocation{
			env:   Env{Stderr: &aside, StderrTerminal: c.terminal, Now: func() time.Time { return now }},
			flags: &Globals{},
		}
		p := &progress{inv: inv, quiet: c.quiet}
		p.tell("a", "1")
		p.tell("a", "2")
		now = now.Add(rewrittenEvery)
		p.tell("a", "3")
		p.tell("b", "")
		p.end()
		if aside.String() != c.want {
			t.Errorf("terminal %t, quiet %t: %q", c.terminal, c.quiet, aside.String())
		}
	}
}
