package previous

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// hashes is a program of the release: for each group on its input, one a line, it prints the
// group's hashes and the group as the release stores it.
const hashes = `package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/leasehold/leasehold/store"
)

func main() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		g, err := store.ReadGroup(in.Bytes())
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", in.Bytes(), err)
			os.Exit(1)
		}
		s := g.InstanceSpec()
		fmt.Printf("%s %s %s\n", s.TemplateHash(), s.ConfigHash(), store.Encode(g))
	}
}
`

// groups are such as the release has them, with all that a machine is made from.
var groups = []string{
	`{"schema": 1, "name": "web", "provider": "process"}`,
	`{"schema": 1, "name": "web", "provider": "process", "workload": {"run": ["sleep", "${n}"]}, "vars": {"n": "1000"}}`,
	`{"schema": 1, "name": "web", "size": 3, "provider": "process", "report": {"interval": "1s"},
	  "rollout": {"strategy": "opportunistic"}, "drain": {"hook": ["true"], "timeout": "1m"}}`,
	`{"schema": 1, "name": "job", "size": 1, "provider": "process", "lifecycle": "task", "workload": {"run": ["true"]}}`,
	`{"schema": 1, "name": "web", "provider": "process", "secrets": {"TOKEN": "token"}, "workload": {"run": ["a"]}}`,
	`{"schema": 1, "name": "web", "provider": "process", "checks": [{"http": {"port": 8081}}, {"tcp": {"port": "${port}"},
	  "interval": "10s", "healthy_threshold": 3}, {"grpc": {"port": 50051}}, {"exec": {"run": ["/usr/bin/true", "x"]}},
	  {"process": {"name": "nginx"}}]}`,
	`{"schema": 1, "name": "web", "provider": "cloud", "template": {"instance_type": "large",
	  "zones": ["a", "b"], "settings": {"disk": "20"}}}`,
	`{"schema": 1, "name": "web", "provider": "cloud", "spot": {"enabled": true, "source": "file", "file": "/n"}}`,
}

// An upgrade of Leasehold changes no template: the hashes of every group of the release before are
// what they were, of its file and of what the release has stored. Else every instance would look
// outdated, and be replaced.
//
// proves ROLL-1, ROLL-2
func TestAnUpgradeChangesNoTemplate(t *testing.T) {
	dir := t.TempDir()
	version, err := unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "leasehold-"+version)
	main := filepath.Join(root, "cmd", "hashes", "main.go")
	if err := os.Mkdir(filepath.Dir(main), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(main, []byte(hashes), 0o600); err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	for _, g := range groups {
		in.WriteString(strings.ReplaceAll(g, "\n", " ") + "\n")
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-trimpath", "-buildvcs=false", "./cmd/hashes")
	cmd.Dir, cmd.Stdin = root, &in
	cmd.Env = append(os.Environ(), environment()...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problem.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(groups) {
		t.Fatalf("%d answers to %d groups", len(lines), len(groups))
	}
	seen := map[string]bool{}
	for i, line := range lines {
		words := strings.SplitN(line, " ", 3)
		seen[words[0]] = true
		for what, text := range map[string]string{"the file": groups[i], "what is stored": words[2]} {
			g, err := store.ReadGroup([]byte(text))
			if err != nil {
				t.Errorf("%s is refused: %v\n%s", what, err, text)
				continue
			}
			s := g.InstanceSpec()
			if s.TemplateHash() != words[0] || s.ConfigHash() != words[1] {
				t.Errorf("%s: hashes are %s %s, and were %s %s\n%s", what, s.TemplateHash(), s.ConfigHash(), words[0],
					words[1], text)
			}
		}
	}
	if len(seen) < len(groups)-2 { // timers and sources of notices are no part of a template
		t.Errorf("only %d templates differ", len(seen))
	}
}
