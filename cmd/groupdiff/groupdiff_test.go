package groupdiff

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

func TestBetween(t *testing.T) {
	a := store.DefaultGroup()
	a.Name, a.Provider, a.Size = "web", "process", 6
	a.Workload.Run = []string{"./web", "--port", "8080"}
	a.Labels = map[string]string{"team": "shop", "old": "x"}
	a.Complete()
	b := a
	b.Size = 8
	b.Workload.Run = []string{"./web", "--port", "9090", "-v"}
	b.Labels = map[string]string{"team": "shop"}
	b.Paused = true
	b.StopTimeout *= 2
	none, day := store.Amount(0), store.Duration(24*time.Hour)
	b.Budget.MaxUnavailable, b.Expiry.ForcedAge = &none, &day // nil and 0 are not the same
	b.Spot.Enabled = true
	b.Relaunch = store.Relaunch{Number: 1, Action: store.ActionRestart}
	var got []string
	for _, c := range Between(&a, b) {
		got = append(got, c.Sign()+" "+c.Path+" "+c.String())
	}
	want := []string{
		"~ size 6 -> 8",
		`- labels.old "x"`,
		`~ workload.run[2] "8080" -> "9090"`,
		`+ workload.run[3] "-v"`,
		"+ budget.max_unavailable 0",
		"+ expiry.forced_age 24h0m0s",
		"~ spot.enabled false -> true",
		"~ stop_timeout 30s -> 1m0s",
		"+ paused true",
		`+ relaunch.action "restart"`,
		"+ relaunch.number 1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := Between(&a, a); len(d) != 0 {
		t.Errorf("a group differs from itself: %v", d)
	}
	if d := Between(nil, a); len(d) == 0 || d[0].Path != "name" || d[0].Sign() != "+" {
		t.Errorf("a new group: %v", d)
	}
}
