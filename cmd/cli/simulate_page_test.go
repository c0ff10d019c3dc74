package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const simulatePage = "../../docs/simulate.md"

// The examples of the page are true: what follows a command is what it prints on a terminal. Write it anew with: go test ./cmd/cli -update
func TestTheExamplesOfTheSimulationPageAreTrue(t *testing.T) {
	path, err := filepath.Abs(simulatePage)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	w := newWorld(t)
	w.terminal = true
	got, commands := "", 0
	blocks := strings.Split(string(page), "```")
	for i, block := range blocks {
		switch text, isFile := strings.CutPrefix(block, "yaml\n# file: "); {
		case i%2 == 0:
		case isFile:
			name, text, _ := strings.Cut(text, "\n")
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(block, "console\n"):
			block = "console\n"
			for _, line := range strings.Split(blocks[i], "\n") {
				if command, is := strings.CutPrefix(line, "$ leasehold "); is {
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
	if commands < 4 {
		t.Errorf("the page has %d commands", commands)
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(page) {
		t.Errorf("the page says otherwise; it would be\n%s", got)
	}
}
