package providerfile

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/provider"
)

// What the page of OpenStack shows can be used as it stands: the file of providers is opened, its
// provider accepts the group, and every setting of the schema is in the group and in a table.
//
// proves PROV-3
func TestThePageOfOpenStack(t *testing.T) {
	text, err := os.ReadFile("../../docs/providers/openstack.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, rest := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		files = append(files, block)
	}
	if len(files) != 2 {
		t.Fatalf("%d files, want providers and a group", len(files))
	}
	entries, err := read(t, files[0])
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	p, err := entries[0].Open(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := groupfile.Read("web.yaml", strings.NewReader(files[1]))
	if err != nil || len(groups) != 1 || groups[0].Provider != entries[0].Name {
		t.Fatal(groups, err)
	}
	spec := groups[0].Template
	if err := p.Validate(provider.Template{
		InstanceTypes: spec.Types(), Zones: spec.Zones, Tags: spec.Tags, Settings: spec.Settings,
	}); err != nil {
		t.Error(err)
	}
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(p.Capabilities().Settings, &schema); err != nil || len(schema.Properties) < 5 {
		t.Fatal(schema, err)
	}
	for name := range schema.Properties {
		if _, set := spec.Settings[name]; !set {
			t.Errorf("the group does not show %s", name)
		}
		if !strings.Contains(string(text), "\n| `"+name+"` |") {
			t.Errorf("no table has %s", name)
		}
	}
}
