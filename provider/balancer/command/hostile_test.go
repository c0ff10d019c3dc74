package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/balancer/command"
	"github.com/leasehold/leasehold/provider/program"
)

// scripted returns a balancer whose program describes itself, and answers every other call with a
// script. $dir is a directory of the test.
func scripted(t *testing.T, capabilities, script string) (b *command.Balancer, dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "program")
	text := "#!/bin/bash\ndir=" + dir + "\nrequest=$(cat)\n" +
		`case $request in *'"method":"describe"'*) echo '{"result": ` + capabilities + `}'; exit;; esac` + "\n" + script
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// bash reads the file: while tests run in parallel, executing a file that was just written can
	// fail.
	c := program.Config{
		Command: []string{"bash", path}, Config: map[string]any{"region": "north"},
		Secrets: map[string]string{"token": "acme-token"},
	}
	if os.Geteuid() == 0 {
		c.User = "root"
	}
	b, err = command.New(t.Context(), "web", c)
	if err == nil {
		b.UseSecrets(func(name string) (string, error) { return "value of " + name, nil })
	}
	return b, dir, err
}

const (
	named   = `{"api": 1, "call_timeout": 2, "capabilities": {"named": true, "health": true, "weights": true}}`
	unnamed = `{"api": 1, "call_timeout": 2}`
)

// listing returns a script that lists these targets.
func listing(targets string) string {
	return `echo '{"result": {"complete": true, "targets": [` + targets + `]}}'`
}

// A list is accepted only if it is complete and consistent; otherwise nothing is known.
//
// proves PROV-2, LB-3
func TestHostilePrograms(t *testing.T) {
	const one = `{"instance": "i", "address": "10.0.0.1", "port": 80, "state": "ready", "health": "up", "connections": 3}`
	for name, test := range map[string]struct{ capabilities, script, says string }{
		"hangs":          {named, "sleep 1000", "killed"},
		"exits":          {named, "echo 'no such region' >&2; exit 3", "exit status 3: it says: no such region"},
		"talks":          {named, "echo hello", "cannot be read"},
		"answers a part": {named, `echo '{"result": {"targets": [{"na'; exit 0`, "cannot be read"},
		"lists a part":   {named, `echo '{"result": {"targets": [{"name": "a"}]}}'`, "a part proves nothing"},
		"no target":      {named, listing(""), "names no target"},
		"no name":        {named, listing(`{"members": []}`), "a name of its own"},
		"a target twice": {named, listing(`{"name": "a"}, {"name": "a"}`), "a name of its own"},
		"a member twice": {named, listing(`{"name": "a", "members": [` + one + `,` + one + `]}`), "listed twice"},
		"a state": {
			named, listing(`{"name": "a", "members": [` + strings.Replace(one, "ready", "fine", 1) + `]}`),
			`unknown state "fine"`,
		},
		"a health": {named, listing(`{"name": "a", "members": [` + strings.Replace(one, `"up"`, `"good"`, 1) +
			`]}`), `unknown health "good"`},
		"no address": {named, listing(`{"name": "a", "members": [` + strings.Replace(one, "10.0.0.1", "web", 1) +
			`]}`), "must be an IP address"},
		"connections": {
			named, listing(`{"name": "a", "members": [` + strings.Replace(one, ": 3", ": -3", 1) + `]}`),
			"-3 connections",
		},
		"what it cannot see": {unnamed, listing(`{"name": "a", "members": [` + one + `]}`), "is not recorded"},
		"all targets silent": {named, listing(`{"name": "a", "error": "it burns"}`), "a: it burns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, err := scripted(t, test.capabilities, test.script)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			_, err = b.List(t.Context(), "s1", nil)
			if err == nil || !strings.Contains(err.Error(), test.says) || provider.KindOf(err) != provider.Temporary {
				t.Errorf("List: %v, want a temporary error that says %q", err, test.says)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// A list separates targets that do not answer from those that do.
//
// proves LB-3
func TestTargetsOfAProgram(t *testing.T) {
	b, _, err := scripted(t, unnamed, listing(`{"name": "a", "foreign": 2, "members": [
		{"instance": "i", "address": "10.0.0.1", "port": 80, "state": "draining"}]}, {"name": "b", "error": "it burns"}`))
	if err != nil {
		t.Fatal(err)
	}
	m := balancer.Member{Instance: "i", Address: "10.0.0.1", Port: 80}
	l, err := b.List(t.Context(), "s1", []balancer.Member{m})
	if err != nil {
		t.Fatal(err)
	}
	s := l.Of(m)
	if s.Silent != 1 || s.Answered != 1 || s.Draining != 1 || s.Connections != balancer.UnknownConnections ||
		l.Targets[0].Foreign != 2 {
		t.Errorf("%+v of %+v", s, l)
	}
}

// A program gets what it needs, and its errors have kinds.
//
// proves PROV-2, PROV-5, SEC-7
func TestCallsOfAProgram(t *testing.T) {
	b, dir, err := scripted(t, strings.Replace(named, `"api": 1`, `"api": 1, "settings": {"type": "object",
		"additionalProperties": false, "properties": {"tier": {"enum": ["gold"]}}}`, 1), `echo "$request" >$dir/request; echo '{"result": {}}'`)
	if err != nil {
		t.Fatal(err)
	}
	m := balancer.Member{
		Instance: "i1", Address: "10.0.0.1", Port: 80, Use: balancer.Use{Weight: 3, Settings: map[string]any{"tier": "gold"}},
	}
	if err := b.Add(t.Context(), "s1", m); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "request"))
	if err != nil {
		t.Fatal(err)
	}
	if err := valid(t, "", string(text)); err != nil {
		t.Errorf("the request %s: %v", text, err)
	}
	for _, part := range []string{
		`"api":1`, `"method":"add"`, `"shard":"s1"`, `"balancer":"web"`, `"instance":"i1"`, `"region":"north"`,
		`"token":"value of acme-token"`, `{"address":"10.0.0.1","port":80,"weight":3,"settings":{"tier":"gold"}}`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the request %s does not have %s", text, part)
		}
	}
	if err := b.Validate(balancer.Use{Settings: map[string]any{"tier": "tin"}}); provider.KindOf(err) != provider.Invalid {
		t.Errorf("Validate: %v", err)
	}
	for _, kind := range provider.Kinds {
		b, _, err := scripted(t, named, `echo '{"error": {"code": "`+string(kind)+
			`", "scope": "pool", "message": "so it is", "retry_after": 7}}'`)
		if err != nil {
			t.Fatal(err)
		}
		err = b.Drain(t.Context(), "s1", balancer.Member{Instance: "i1", Address: "10.0.0.1", Port: 80})
		if kind == provider.NotFound {
			if err != nil {
				t.Errorf("Drain of what is not there: %v", err)
			}
			continue
		}
		if provider.KindOf(err) != kind || !strings.Contains(err.Error(), "pool: so it is") ||
			strings.Contains(err.Error(), "template") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// What a program says of a target that does not answer, or of a member's health, goes to the
// status: it shows no secret.
//
// proves SEC-6
func TestAListShowsNoSecrets(t *testing.T) {
	b, _, err := scripted(t, named, listing(`{"name": "a", "error": "GET https://x:value of acme-token@lb: 502"},
		{"name": "b", "members": [{"instance": "i", "address": "10.0.0.1", "port": 80, "state": "ready",
		"health": "down", "why": "401: Bearer value of acme-token"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.List(t.Context(), "s1", nil)
	if err != nil || len(l.Targets) != 2 || len(l.Targets[1].Members) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	for where, text := range map[string]string{
		"the error": l.Targets[0].Err.Error(), "the reason": l.Targets[1].Members[0].Why,
	} {
		if strings.Contains(text, "value of acme-token") || !strings.Contains(text, "[secret token]") {
			t.Errorf("%s: %s", where, text)
		}
	}
}

// proves SEC-7
func TestDescriptionsThatAreRefused(t *testing.T) {
	for says, description := range map[string]string{
		"version 2 of the protocol":  `{"api": 2}`,
		"call_timeout: 0: must be 1": `{"api": 1}`,
		"consistency: -1":            `{"api": 1, "call_timeout": 1, "consistency": -1}`,
		"schema of the settings":     `{"api": 1, "call_timeout": 1, "settings": {"type": 1}}`,
	} {
		if _, _, err := scripted(t, description, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := program.Config{Command: []string{"true"}}
	if os.Geteuid() == 0 {
		c.User = "root"
	}
	if _, err := command.New(ctx, "web", c); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if _, err := command.New(t.Context(), "We b", c); err == nil {
		t.Error("a name that is none")
	}
}
