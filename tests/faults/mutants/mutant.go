package mutants

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/tests/stage"
)

// Mutant is the product with one mistake in it.
type Mutant struct {
	Name   string
	What   string   // the mistake, and what comes of it, for people
	Rules  []string // that it breaks, as in docs/rules.md
	Edits  []Edit
	Likely []string // kinds of troubles that should expose it; none: every run does
	// what makes up for it, as far as was seen: no run has caught it, and none is played unless it
	// is named
	Harmless string
	Scenario string // the test that exposes it, where troubles as a seed gives them do not
}

// Edit replaces a text that stands exactly once in a file.
type Edit struct {
	File string // from the project's root, with slashes
	Old  string
	New  string
}

// Build builds the programs of a stage with the mistake in them. They are to be removed.
func Build(m Mutant) (*stage.Programs, error) {
	root, err := projectRoot()
	if err != nil {
		return nil, err
	}
	source, err := m.source(root)
	if err != nil {
		return nil, err
	}
	programs, err := stage.Build(source...)
	if err != nil {
		return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	return programs, nil
}

// source is the text of each file that the mistake changes, in order of their names.
func (m Mutant) source(root string) ([]stage.Replacement, error) {
	texts := map[string]string{}
	var out []stage.Replacement
	for _, e := range m.Edits {
		text, begun := texts[e.File]
		if !begun {
			read, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			text = string(read)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("mutant %s: in %s the text that it changes stands %d times, not once: "+
				"see what has become of that place, and put the same mistake into what is there now\n%s", m.Name,
				e.File, n, e.Old)
		}
		texts[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	for file, text := range texts {
		out = append(out, stage.Replacement{File: filepath.Join(root, filepath.FromSlash(file)), Text: []byte(text)})
	}
	slices.SortFunc(out, func(a, b stage.Replacement) int { return strings.Compare(a.File, b.File) })
	return out, nil
}

// projectRoot is the directory with the project's go.mod.
func projectRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the project's source: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", errors.New("find the project's source: this is not run within the project")
	}
	return filepath.Dir(file), nil
}
