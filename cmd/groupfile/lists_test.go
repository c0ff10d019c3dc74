package groupfile

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Every list of the table can be written in a file.
func TestEveryListCanBeRead(t *testing.T) {
	for _, f := range store.Fields {
		if !strings.HasPrefix(f.Type, "list of ") || strings.Contains(f.Path, "[]") {
			continue
		}
		text := "name: web\n" + strings.ReplaceAll(f.Path, ".", ": {") + ": []" +
			strings.Repeat("}", strings.Count(f.Path, ".")) + "\n"
		if _, err := Read("web.yaml", strings.NewReader(text)); err != nil &&
			strings.Contains(err.Error(), f.Path+": a list: must be") {
			t.Errorf("%s: %v", f.Path, err)
		}
	}
}

// Analyses and drills are read as the pages show them, and written back.
//
// proves ROLL-5, DAY-6
func TestReadAnalysesAndDrills(t *testing.T) {
	groups, err := Read("web.yaml", strings.NewReader(web+`rollout:
  canary: 10%
  auto_rollback: true
  analysis:
  - {from: error-rate, max: 0.01}
  - {from: checkout-p95, max: 0.4, for: 1m}
drills:
  - {cron: "0 10 * * tue", time_zone: Europe/Berlin, kind: workload}
  - {cron: "0 10 1 * *", zone: b}
`))
	if err != nil {
		t.Fatal(err)
	}
	g := groups[0]
	if a := g.Rollout.Analysis; len(a) != 2 || *a[0].Max != 0.01 || a[1].From != "checkout-p95" ||
		a[1].For.D() != time.Minute {
		t.Errorf("analyses: %+v", a)
	}
	if d := g.Drills; len(d) != 2 || d[0].Kind != "workload" || d[0].TimeZone != "Europe/Berlin" || d[1].Zone != "b" {
		t.Errorf("drills: %+v", d)
	}
	text, err := Write(g)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Read("back.yaml", strings.NewReader(string(text)))
	if err != nil || !reflect.DeepEqual(back[0], g) {
		t.Errorf("read back: %+v, %v\nwant %+v\nfrom\n%s", back, err, g, text)
	}
}
