// Promises keeps the results of the contract suite, and makes docs/providers/promises.md of them:
// which provider was seen to keep which promise, and when. scripts/promises.sh runs the suites, and
// this for each:
//
//	promises has KEPT NAME SOURCE        succeeds if NAME was played whole with that source
//	promises keep KEPT NAME SOURCE DIR   replaces what is kept of NAME with the results in DIR
//	promises page KEPT                   prints the page
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/provider/suite"
)

// played is what one run of the suite has found.
type played struct {
	Name    string                  `json:"name"`
	Source  string                  `json:"source"` // a hash of the files that it was played with
	Day     string                  `json:"day"`
	Results []providertest.Recorded `json:"results"`
}

// whole reports whether all promises were played.
func (p played) whole() bool { return len(p.Results) == len(suite.Promises()) }

func main() {
	err := errors.New("usage: promises has|keep|page KEPT …")
	switch args := os.Args[1:]; {
	case len(args) == 4 && args[0] == "has":
		err = has(args[1], args[2], args[3])
	case len(args) == 5 && args[0] == "keep":
		err = keep(args[1], args[2], args[3], args[4])
	case len(args) == 2 && args[0] == "page":
		var all []played
		if all, err = read(args[1]); err == nil {
			fmt.Print(page(all))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// read returns what is kept, in the order of the names.
func read(file string) (all []played, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

func has(file, name, source string) error {
	all, err := read(file)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(p played) bool { return p.Name == name && p.Source == source && p.whole() }) {
		return fmt.Errorf("%s was not played with this source", name)
	}
	return nil
}

func keep(file, name, source, dir string) error {
	all, err := read(file)
	if err != nil {
		return err
	}
	results, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	now := played{Name: name, Source: source, Day: time.Now().UTC().Format(time.DateOnly)}
	for _, path := range results {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var r providertest.Recorded
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		now.Results = append(now.Results, r)
	}
	if len(now.Results) == 0 {
		return fmt.Errorf("%s has played nothing: what was kept of it stays", name)
	}
	order := suite.Promises()
	slices.SortFunc(now.Results, func(a, b providertest.Recorded) int {
		return slices.Index(order, a.Promise) - slices.Index(order, b.Promise)
	})
	all = slices.DeleteFunc(all, func(p played) bool { return p.Name == name })
	all = append(all, now)
	slices.SortFunc(all, func(a, b played) int { return strings.Compare(a.Name, b.Name) })
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// page is the page for what is kept.
func page(all []played) string {
	var b strings.Builder
	b.WriteString("# What each provider was seen to keep\n\n")
	b.WriteString("Made by `make promises`: do not edit. `leasehold provider test` plays the same " +
		"suite against any provider.\n\n")
	b.WriteString("| Promise |")
	for _, p := range all {
		fmt.Fprintf(&b, " %s |", p.Results[0].Provider)
	}
	fmt.Fprintf(&b, "\n|---%s|\n| played on |", strings.Repeat("|---", len(all)))
	for _, p := range all {
		fmt.Fprintf(&b, " %s |", p.Day)
	}
	b.WriteString("\n")
	var notes []string
	for _, promise := range suite.Promises() {
		fmt.Fprintf(&b, "| %s |", promise)
		for _, p := range all {
			at := slices.IndexFunc(p.Results, func(r providertest.Recorded) bool { return r.Promise == promise })
			switch {
			case at < 0:
				b.WriteString(" not played |")
			case p.Results[at].Outcome == suite.Proved:
				b.WriteString(" proved |")
			default:
				r := p.Results[at]
				fmt.Fprintf(&b, " **%s** |", r.Outcome)
				notes = append(notes, fmt.Sprintf("- %s, %s: %s", r.Provider, promise, strings.Join(r.Why, "; ")))
			}
		}
		b.WriteString("\n")
	}
	if len(notes) > 0 {
		b.WriteString("\n## What is not proved, and why\n\n" + strings.Join(notes, "\n") + "\n")
	}
	return b.String()
}
