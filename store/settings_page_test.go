package store_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

var update = flag.Bool("update", false, "write the table of docs/settings.md again")

const settingsPage = "../docs/settings.md"

// The page of settings has each setting of a shard as the code has it: its default, what is allowed
// and what it is for.
//
// proves REC-20
func TestEverySettingIsDocumented(t *testing.T) {
	text, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| Setting | Default | Allowed | Meaning | Rule |\n|---|---|---|---|---|\n")
	defaults := store.DefaultShardSettings()
	for _, s := range store.Settings {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", s.Name, defaults.Value(s.Name), s.Allowed, s.Doc, s.Rule)
	}
	head, _, found := strings.Cut(string(text), "| Setting | Default |")
	if !found {
		t.Fatalf("%s has no table of the settings", settingsPage)
	}
	if *update {
		if err := os.WriteFile(settingsPage, []byte(head+table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != head+table.String() {
		t.Errorf("%s is not what the code says: go test ./store -run EverySettingIsDocumented -update\n%s", settingsPage,
			table.String())
	}
}
