package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The examples for pipelines are YAML, their scripts are a shell's, and each command in them is one
// of this program.
func TestExamplesForPipelines(t *testing.T) {
	t.Setenv("COMP_LINE", "")
	command := regexp.MustCompile(`(?m)^\s*(?:- )?leasehold ([^|>\n]+)`)
	for name, runs := range map[string]func(map[string]any) []any{
		"github-actions.yaml": func(doc map[string]any) (scripts []any) {
			for _, job := range doc["jobs"].(map[string]any) {
				for _, step := range job.(map[string]any)["steps"].([]any) {
					if run := step.(map[string]any)["run"]; run != nil {
						scripts = append(scripts, run)
					}
				}
			}
			return scripts
		},
		"gitlab-ci.yaml": func(doc map[string]any) (scripts []any) {
			for _, job := range []string{"leasehold diff", "leasehold apply"} {
				scripts = append(scripts, doc[job].(map[string]any)["script"].([]any)...)
			}
			return scripts
		},
	} {
		text, err := os.ReadFile(filepath.Join("../../docs/examples", name))
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		commands := 0
		for _, run := range runs(doc) {
			script := run.(string)
			check := exec.CommandContext(t.Context(), "bash", "-n")
			check.Stdin = strings.NewReader(script)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s\n%s", name, err, out, script)
			}
			for _, m := range command.FindAllStringSubmatch(script, -1) {
				commands++
				var out bytes.Buffer
				parser, err := newParser(&Grammar{}, newWorld(t).env(&out, &out), func(int) {})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := parser.Parse(strings.Fields(m[1])); err != nil {
					t.Errorf("%s: leasehold %s: %v", name, m[1], err)
				}
			}
		}
		if commands != 2 {
			t.Errorf("%s has %d commands, want 2", name, commands)
		}
	}
}
