package autoscale

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/autoscaling.md")

// The table on the page is what the comparison gives.
//
// proves AUTO-2
func TestTheTable(t *testing.T) {
	rows, err := Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkTable(t, "comparison", Table(rows))
}

// checkTable compares a table with the one on the page between the marks of that name, or rewrites
// it there.
func checkTable(t *testing.T, name, table string) {
	t.Helper()
	const page = "../../../docs/autoscaling.md"
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	t.Log("\n" + table)
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(content), begin)
	shown, after, found := strings.Cut(rest, end)
	switch {
	case !found:
		t.Fatal("the page has no place for the table")
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case shown != table:
		t.Errorf("%s is not what is measured: run go test -tags nightly ./cmd/bench/autoscale -update", page)
	}
}
