package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of simulations on these pages are real: the text after a command is its output on a
// terminal. Rewrite them with: go test ./cmd/cli -update
func TestTheExamplesOfSimulationsAreTrue(t *testing.T) {
	for page, least := range map[string]int{"../../docs/simulate.md": 4, "../../README.md": 1} {
		t.Run(filepath.Base(page), func(t *testing.T) { examplesAreTrue(t, page, least) })
	}
}

// examplesAreTrue runs the commands of a page, of which there are at least so many.
func examplesAreTrue(t *testing.T, page string, least int) {
	path, err := filepath.Abs(page)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	w := newWorld(t)
	w.terminal = true
	got, commands := "", 0
	blocks := strings.Split(string(text), "```")
	for i, block := range blocks {
		switch file, isFile := strings.CutPrefix(block, "yaml\n# file: "); {
		case i%2 == 0:
		case isFile:
			name, content, _ := strings.Cut(file, "\n")
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(block, "console\n"):
			block = "console\n"
			for _, line := range strings.Split(blocks[i], "\n") {
				if command, ok := strings.CutPrefix(line, "$ leasehold "); ok {
					commands++
					block += line + strings.ReplaceAll("\n"+shownRun(w, strings.Fields(command)), "\n2> ", "\n")
				}
			}
		}
		if i > 0 {
			got += "```"
		}
		got += block
	}
	if commands < least {
		t.Errorf("the page has %d commands", commands)
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(text) {
		t.Errorf("the page says otherwise; it would be\n%s", got)
	}
}
