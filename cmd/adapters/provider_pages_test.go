package adapters

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/provider"
)

// blocks are the code blocks of a page in one language.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return blocksIn(string(text), language)
}

// blocksIn are the code blocks of a text. One in a list is indented with it.
func blocksIn(text, language string) (out []string) {
	opening := regexp.MustCompile("(?m)^( *)```" + language + "\n")
	for _, at := range opening.FindAllStringSubmatchIndex(text, -1) {
		indent := text[at[2]:at[3]]
		block, _, _ := strings.Cut(text[at[1]:], "```")
		out = append(out, strings.ReplaceAll("\n"+block, "\n"+indent, "\n")[1:])
	}
	return out
}

// What the pages show can be used as it stands: the file of providers is opened, its provider
// accepts the group, and every setting of the schema is in the group and in a table.
//
// proves PROV-3
func TestThePagesOfProviders(t *testing.T) {
	for name, notShown := range map[string][]string{
		"ec2": {"launch_template"}, "libvirt": {"kernel", "initrd", "cmdline", "vcpus", "memory"}, "openstack": nil,
		"lxd": {"disk", "profiles"},
	} {
		t.Run(name, func(t *testing.T) {
			page := "../../docs/providers/" + name + ".md"
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			files := blocks(t, page, "yaml")
			if len(files) < 2 {
				t.Fatalf("%d files, want providers and groups", len(files))
			}
			var p provider.Provider
			var settings map[string]any // of the last group
			var providers string        // the last file of providers
			for _, file := range files {
				if strings.Contains("\n"+file, "\nproviders:\n") {
					providers = file
					continue
				}
				p, settings = shown(t, providers, file)
			}
			var schema struct{ Properties map[string]any }
			if err := json.Unmarshal(p.Capabilities().Settings, &schema); err != nil || len(schema.Properties) < 5 {
				t.Fatal(schema, err)
			}
			for setting := range schema.Properties {
				if _, set := settings[setting]; !set && !slices.Contains(notShown, setting) {
					t.Errorf("the group does not show %s", setting)
				}
				if !strings.Contains(string(text), "\n| `"+setting+"` |") {
					t.Errorf("no table has %s", setting)
				}
			}
		})
	}
}

// shown opens the provider of a file, which has to accept the group, and returns the group's
// settings.
func shown(t *testing.T, providers, group string) (provider.Provider, map[string]any) {
	t.Helper()
	entries, err := readText(t, providers)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	p, err := entries[0].Open(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := groupfile.Read("web.yaml", strings.NewReader(group))
	if err != nil || len(groups) != 1 || groups[0].Provider != entries[0].Name {
		t.Fatal(groups, err)
	}
	spec := groups[0].Template
	if err := p.Validate(provider.Template{
		InstanceTypes: spec.Types(), Zones: spec.Zones, Tags: spec.Tags, Settings: spec.Settings,
	}); err != nil {
		t.Error(err)
	}
	return p, spec.Settings
}

// The policy on EC2's page is JSON, and allows what the provider calls.
func TestThePolicyOfEC2(t *testing.T) {
	const page = "../../docs/providers/ec2.md"
	var policy struct {
		Statement []struct{ Action any }
	}
	rights := blocks(t, page, "json")
	if len(rights) != 1 {
		t.Fatalf("%d policies", len(rights))
	}
	if err := json.Unmarshal([]byte(rights[0]), &policy); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, s := range policy.Statement {
		switch a := s.Action.(type) {
		case string:
			actions = append(actions, a)
		case []any:
			for _, one := range a {
				actions = append(actions, fmt.Sprint(one))
			}
		}
	}
	for _, needed := range []string{
		"RunInstances", "DescribeInstances", "DescribeSubnets", "DescribeImages", "StopInstances", "StartInstances",
		"RebootInstances",
		"TerminateInstances", "GetConsoleOutput", "CreateTags",
	} {
		if !slices.Contains(actions, "ec2:"+needed) {
			t.Errorf("the policy does not allow %s", needed)
		}
	}
}
