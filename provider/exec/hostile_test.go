package exec_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/exec"
	"github.com/leasehold/leasehold/provider/providertest"
)

const describes = `{"result": {"api": 1, "zones": ["a"], "consistency": 0, "call_timeout": 5,
	"capabilities": {"console": true}}}`

// scripted is a provider whose program describes itself well and answers every other call with a
// script; $dir is a directory of the test's own.
func scripted(t *testing.T, script string, change ...func(*exec.Config)) (_ provider.Provider, dir string) {
	t.Helper()
	return scriptedAs(t, describes, script, change...)
}

// scriptedAs is scripted of a program that describes itself so.
func scriptedAs(t *testing.T, describes, script string, change ...func(*exec.Config),
) (_ provider.Provider, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "program")
	text := "#!/bin/bash\ndir=" + dir + "\nrequest=$(cat)\n" +
		`case $request in *'"method":"describe"'*) echo '` + describes + `'; exit;; esac` + "\n" + script
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// bash reads the file: one that was just written cannot always be executed, where tests run at
	// once
	c := exec.Config{Command: []string{"bash", path}}
	for _, f := range change {
		f(&c)
	}
	return open(t, c), dir
}

// Whatever a program does, its caller gets an error in time that proves nothing, and nothing of the
// program is left.
//
// proves PROV-2
func TestHostilePrograms(t *testing.T) {
	for name, test := range map[string]struct{ script, says string }{
		"hangs":                   {"sleep 1000", "killed"},
		"hangs, ignoring SIGTERM": {"trap '' TERM; while :; do sleep 1; done", "killed"},
		"floods":                  {"yes", "longer than"},
		"floods its log":          {"yes >&2", "killed"},
		"exits":                   {"echo 'no such region' >&2; exit 3", "exit status 3: it says: no such region"},
		"exits after a result":    {`echo '{"result": {"machines": [], "complete": true}}'; exit 1`, "exit status 1"},
		"is killed":               {"kill -9 $$", "signal: killed"},
		"says nothing":            {":", "cannot be read"},
		"talks":                   {"echo hello", "cannot be read"},
		"answers twice":           {`echo '{"result": {}}{"result": {}}'`, "there is more after it"},
		"answers neither":         {`echo '{}'`, "neither a result nor an error"},
		"answers both":            {`echo '{"result": {}, "error": {"code": "quota"}}'`, "neither a result nor an error"},
		"answers a list":          {`echo '[]'`, "cannot be read"},
		"another result":          {`echo '{"result": [1]}'`, "result cannot be read"},
		"an unknown code":         {`echo '{"error": {"code": "sorry"}}'`, `unknown error code "sorry"`},
		"a part of a list":        {`echo '{"result": {"machines": []}}'`, "a part proves nothing"},
		"a list without end": {
			`echo '{"result": {"machines": [], "next": "x", "complete": true}}'`,
			"a part proves nothing",
		},
		"another shard's machine": {
			`echo '{"result": {"complete": true, "machines": [{"instance": "i", "shard": "other", "ref": "r", "state": "running"}]}}'`,
			`of shard "other"`,
		},
		"a state that is none": {
			`echo '{"result": {"complete": true, "machines": [{"instance": "i", "shard": "s1", "ref": "r", "state": "fine"}]}}'`,
			`unknown state "fine"`,
		},
		"a machine twice": {
			`m='{"instance": "i", "shard": "s1", "ref": "r", "state": "running"}'; echo '{"result": {"complete": true, "machines": ['$m,$m']}}'`,
			"listed twice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, dir := scripted(t, "echo $$ >$dir/pid\n"+test.script)
			patience := time.Minute // on a busy machine a program that answers takes long to answer
			if test.says == "killed" {
				patience = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := p.List(ctx, "s1")
			if err == nil || !strings.Contains(err.Error(), test.says) || provider.KindOf(err) != provider.Temporary {
				t.Errorf("List: %v, want a temporary error that says %q", err, test.says)
			}
			var pid int
			text, _ := os.ReadFile(filepath.Join(dir, "pid"))
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the process group is gone", func() bool { return !running(t, pid) })
		})
	}
}

// What a program leaves running neither delays the answer nor stays.
//
// proves PROV-2
func TestWhatAProgramLeavesBehindIsEnded(t *testing.T) {
	p, dir := scripted(t, `sleep 1000 & echo $! >$dir/child; echo '{"result": {"machines": [], "complete": true}}'`)
	if machines, err := p.List(t.Context(), "s1"); err != nil || len(machines) != 0 {
		t.Fatalf("List: %v, %v", machines, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscan(string(text), &child); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its child is gone", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline, again := time.After(2*time.Minute), time.NewTicker(5*time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("not seen: %s", what)
		}
	}
}

// running reports whether a process group has a process that has not ended.
func running(t *testing.T, group int) bool {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		text, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[0] != "Z" && f[2] == strconv.Itoa(group) {
			return true
		}
	}
	return false
}

// A machine that the answer names must be the one that was asked for.
//
// proves PROV-2, PROV-8
func TestAnAnswerAboutAnotherMachine(t *testing.T) {
	p, _ := scripted(t, `echo '{"result": {"instance": "i2", "shard": "s1", "ref": "r", "state": "running"}}'`)
	_, err := p.Create(t.Context(), providertest.Request("s1", "i1", "a", provider.Template{}))
	if err == nil || !strings.Contains(err.Error(), "asked for machine i1 and answers with i2") {
		t.Errorf("Create: %v", err)
	}
}

// Two machines of one instance are a part of the list of a program with copies: the leader removes
// the one whose call it was not. The same machine twice is an error there, too.
//
// proves PROV-4
func TestAListWithCopies(t *testing.T) {
	const of = `{"instance": "i", "shard": "s1", "ref": "%s", "call": "%s", "state": "running"}`
	list := func(second, call string) ([]provider.Machine, error) {
		p, _ := scriptedAs(t, `{"result": {"api": 1, "zones": ["a"], "call_timeout": 5, "capabilities": {"copies": true}}}`,
			fmt.Sprintf(`echo '{"result": {"complete": true, "machines": [`+of+", "+of+`]}}'`, "r1", "c1", second, call))
		return p.List(t.Context(), "s1")
	}
	all, err := list("r2", "c2")
	if err != nil || len(all) != 2 || all[0].Call != "c1" || all[1].Ref != "r2" {
		t.Errorf("two machines of one instance: %+v, %v", all, err)
	}
	if all, err := list("r1", "c1"); err == nil || !strings.Contains(err.Error(), "listed twice") {
		t.Errorf("one machine twice: %+v, %v", all, err)
	}
}

// Calls that hang keep no List from being made.
//
// proves PROV-2
func TestAListWaitsForNoOtherCall(t *testing.T) {
	p, dir := scripted(t, `case $request in
		*'"method":"list"'*) echo '{"result": {"machines": [], "complete": true}}';;
		*) touch $dir/hangs; sleep 1000;; esac`, func(c *exec.Config) { c.Concurrency = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Delete(ctx, "s1", "i1") }()
	eventually(t, "the call hangs", func() bool { _, err := os.Stat(filepath.Join(dir, "hangs")); return err == nil })
	if _, err := p.List(t.Context(), "s1"); err != nil {
		t.Errorf("List beside a call that hangs: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Delete: %v", err)
	}
}

// proves PROV-5
func TestErrorsOfAProgram(t *testing.T) {
	for _, kind := range provider.Kinds {
		p, _ := scripted(t, `echo '{"error": {"code": "`+string(kind)+
			`", "scope": "zone a", "message": "so it is", "retry_after": 7}}'`)
		_, err := p.List(t.Context(), "s1")
		var e *provider.Error
		if !errors.As(err, &e) || e.Kind != kind || e.Scope != "zone a" || e.Message != "so it is" {
			t.Errorf("%s: %v", kind, err)
		}
		if after, throttled := provider.RetryAfter(err); throttled != (kind == provider.Throttled) || throttled &&
			after != 7*time.Second {
			t.Errorf("%s: ask again in %s", kind, after)
		}
		// What is gone need not be deleted.
		if err := p.Delete(t.Context(), "s1", "i1"); (err == nil) != (kind == provider.NotFound) {
			t.Errorf("%s: Delete: %v", kind, err)
		}
	}
}

// A program gets its secrets by its standard input alone, and nothing of the coordinator's.
//
// proves PROV-2, SEC-7
func TestWhatAProgramGets(t *testing.T) {
	t.Setenv("LEASEHOLD_SECRETS_KEY", "the coordinator's own")
	p, dir := scripted(t, `env >$dir/env; ls -l /proc/$$/fd >$dir/fds; tr '\0' ' ' </proc/$$/cmdline >$dir/args
		echo "$request" >$dir/request; id -u >$dir/user; pwd >$dir/where
		echo '{"result": {"machines": [], "complete": true}}'`, func(c *exec.Config) {
		c.Secrets = map[string]string{"token": "acme-token"}
		c.Config = map[string]any{"region": "north"}
		c.Env = map[string]string{"HTTPS_PROXY": "http://proxy:3128"}
		if os.Geteuid() == 0 {
			c.User = "nobody"
		}
	})
	if _, err := p.List(t.Context(), "s1"); !errors.Is(err, provider.ErrCredentials) {
		t.Errorf("without the secret: %v", err)
	}
	p.(provider.SecretUser).UseSecrets(func(name string) (string, error) { return "value of " + name, nil })
	if _, err := p.List(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	got := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, part := range []string{`"token":"value of acme-token"`, `"region":"north"`, `"api":1`, `"shard":"s1"`} {
		if !strings.Contains(got("request"), part) {
			t.Errorf("the request %s does not have %s", got("request"), part)
		}
	}
	if !strings.Contains(got("env"), "HTTPS_PROXY=http://proxy:3128") {
		t.Errorf("the environment is %s", got("env"))
	}
	for _, where := range []string{"env", "args"} {
		if strings.Contains(got(where), "acme-token") || strings.Contains(got(where), "LEASEHOLD") {
			t.Errorf("%s: %s", where, got(where))
		}
	}
	if os.Geteuid() == 0 && strings.TrimSpace(got("user")) != "65534" {
		t.Errorf("it ran as user %s", got("user"))
	}
	if strings.Contains(got("fds"), "socket") || strings.Contains(got("fds"), "eventpoll") {
		t.Errorf("it has open files of the coordinator's:\n%s", got("fds"))
	}
	if got("where") != "/\n" {
		t.Errorf("it ran in %s", got("where"))
	}
}

// What does not work is refused where it is configured, with the field that is wrong.
func TestConfigurationsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	programs := 0
	program := func(text string) []string {
		programs++
		path := filepath.Join(dir, fmt.Sprintf("p%d", programs))
		if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		return []string{"sh", path}
	}
	says := func(result string) []string { return program("echo '{\"result\": " + result + "}'") }
	me := "root"
	if os.Geteuid() != 0 {
		me = ""
	}
	for says, c := range map[string]exec.Config{
		"command: is missing":        {},
		"command: exec: ":            {Command: []string{"/no/such/program"}, User: me},
		"concurrency: -1":            {Command: []string{"true"}, User: me, Concurrency: -1},
		"user: unknown user":         {Command: []string{"true"}, User: "nosuchuser"},
		"describe: the program's":    {Command: []string{"true"}, User: me},
		"version 2 of the protocol":  {Command: says(`{"api": 2}`), User: me},
		"zones: must name":           {Command: says(`{"api": 1}`), User: me},
		"call_timeout: 0: must be 1": {Command: says(`{"api": 1, "zones": ["a"]}`), User: me},
		"consistency: -1":            {Command: says(`{"api": 1, "zones": ["a"], "consistency": -1}`), User: me},
		"schema of the settings": {
			Command: says(`{"api": 1, "zones": ["a"], "call_timeout": 1, "settings": {"type": 1}}`), User: me,
		},
	} {
		if _, err := exec.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", c, err, says)
		}
	}
	if os.Geteuid() == 0 {
		if _, err := exec.New(t.Context(), exec.Config{Command: []string{"true"}}); err == nil ||
			!strings.Contains(err.Error(), "user: is missing") {
			t.Errorf("root without a user: %v", err)
		}
	}
}

// A leader validates specs while it decides, so that runs no program. Asking the program ends in
// time.
//
// proves PROV-2, SAFE-10
func TestValidateRunsNoProgram(t *testing.T) {
	t.Parallel()
	asks := strings.Replace(describes, `"console": true`, `"validate": true`, 1)
	p, dir := scriptedAs(t, asks, `echo >>$dir/asked
case $request in *small*) echo '{"error": {"code": "invalid", "message": "no such type"}}';; *) sleep 1000;; esac`)
	hanging := provider.Template{InstanceTypes: []string{"large"}}
	if err := p.Validate(hanging); err != nil {
		t.Errorf("Validate: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "asked")); err == nil || !p.Capabilities().Asks {
		t.Errorf("Validate ran the program; it asks: %t", p.Capabilities().Asks)
	}
	asker, ok := p.(provider.Asker)
	if !ok {
		t.Fatalf("%T cannot be asked", p)
	}
	refused := provider.Template{InstanceTypes: []string{"small"}}
	if err := asker.Ask(t.Context(), refused); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("Ask: %v, want the program's refusal", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := asker.Ask(ctx, hanging); provider.KindOf(err) != provider.Temporary {
		t.Errorf("Ask: %v, want a temporary error", err)
	}
}
