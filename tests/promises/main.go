// Promises prints docs/providers/promises.md from the results of the contract suite in a directory:
// which provider was seen to keep which promise. scripts/promises.sh runs the suites and then this.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/provider/suite"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: promises DIRECTORY")
		os.Exit(2)
	}
	text, err := page(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// page is the page for the results in a directory.
func page(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", err
	}
	found := map[string]map[string]providertest.Recorded{} // by provider and promise
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var r providertest.Recorded
		if err := json.Unmarshal(text, &r); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if found[r.Provider] == nil {
			found[r.Provider] = map[string]providertest.Recorded{}
		}
		found[r.Provider][r.Promise] = r
	}
	if len(found) == 0 {
		return "", fmt.Errorf("there are no results in %s", dir)
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)

	var b strings.Builder
	b.WriteString("# What each provider was seen to keep\n\n")
	b.WriteString("Made by `make promises`: do not edit. `leasehold provider test` plays the same " +
		"suite against any provider.\n\n")
	fmt.Fprintf(&b, "| Promise | %s |\n|---%s|\n", strings.Join(names, " | "), strings.Repeat("|---", len(names)))
	var notes []string
	for _, promise := range suite.Promises() {
		fmt.Fprintf(&b, "| %s ", promise)
		for _, name := range names {
			r, played := found[name][promise]
			switch {
			case !played:
				b.WriteString("| not played ")
			case r.Outcome == suite.Proved:
				b.WriteString("| proved ")
			default:
				fmt.Fprintf(&b, "| **%s** ", r.Outcome)
				notes = append(notes, fmt.Sprintf("- %s, %s: %s", name, promise, strings.Join(r.Why, "; ")))
			}
		}
		b.WriteString("|\n")
	}
	if len(notes) > 0 {
		b.WriteString("\n## What is not proved, and why\n\n" + strings.Join(notes, "\n") + "\n")
	}
	return b.String(), nil
}
