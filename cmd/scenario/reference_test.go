package scenario

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/yamlfile"
)

var update = flag.Bool("update", false, "write the reference of scenarios into docs/simulate.md")

const (
	page  = "../../docs/simulate.md"
	begin = "<!-- scenario: written by go test ./cmd/scenario -update -->\n"
	end   = "<!-- /scenario -->\n"
)

// The page has every field of a scenario and every kind of event, as the code reads them.
func TestThePageHasEveryField(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(raw), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the reference", page)
	}
	want := before + begin + reference() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Errorf("%s is not as the code is; rewrite it with: go test ./cmd/scenario -update", page)
	}
}

func reference() string {
	var b strings.Builder
	b.WriteString("\n| Field | Default | Allowed | Meaning |\n|---|---|---|---|\n")
	for _, s := range Sections() {
		for _, f := range s.Fields {
			if f.Allowed != "fields" {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", yamlfile.Join(s.Path, f.Name), code(f.Default), f.Allowed,
					f.Doc)
			}
		}
	}
	b.WriteString("\nAn event has a time, `at`, and one of these. Where nothing else is said, " +
		"the group is every group or the only one, and a length of time without\na default is for good.\n")
	for _, part := range []struct {
		title string
		kinds []Kind
	}{
		{"Machines and agents", machineKinds()},
		{"Zones and providers", providerKinds()},
		{"Coordinators and etcd", coordinatorKinds()},
		{"Groups", groupKinds()},
		{"Load", loadKinds()},
		{"Orders", orderKinds()},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n| Event | What happens | Its fields |\n|---|---|---|\n", part.title)
		for _, k := range part.kinds {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Doc, fieldsOf(k))
		}
	}
	b.WriteString("\n`target` stands for `group`, `zone`, `slot` and `count` (1) or `percent`: so many instances, " +
		"or so many of all, chosen by chance.\n\n")
	return b.String()
}

// fieldsOf lists the fields of a kind; the fields that choose its targets are one word.
func fieldsOf(k Kind) string {
	var parts []string
	fields := k.Fields()
	target := []string{"group", "zone", "slot", "count", "percent"}
	if len(fields) >= len(target) && fields[2].Name == "slot" {
		parts, fields = append(parts, "target"), fields[len(target):]
	}
	for _, f := range fields {
		text := "`" + f.Name + "`"
		if f.Default != "" && f.Default != anyGroup {
			text += " (" + f.Default + ")"
		}
		if f.Doc != "Of this group." && f.Doc != "Which." {
			text += ": " + lowered(f.Doc)
		}
		if f.Choice {
			text += ": " + f.Allowed
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "; ")
	if k.Short != "" {
		text += fmt.Sprintf(". Short: `%s: %s`", k.Name, strings.ToUpper(k.Short))
	}
	return text
}

func lowered(s string) string {
	s = strings.TrimSuffix(s, ".")
	return strings.ToLower(s[:1]) + s[1:]
}

func code(s string) string {
	if s == "" || strings.Contains(s, " ") {
		return s
	}
	return "`" + s + "`"
}
