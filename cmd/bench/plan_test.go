package bench

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/program"
)

func TestPlan(t *testing.T) {
	d := newDesk(t)
	code, out, stderr := d.run("plan", "--instances", "60", "--groups", "3", "--changes", "1", "-o", "json")
	if code != program.Done || stderr != "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	for _, want := range []string{
		`"instances": 60`, `"changes_per_second"`,
		`"verdict": "one leader plans 60 instances in 3 groups`, `"replaced": 0`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if strings.Contains(out, `"problems"`) {
		t.Error(out)
	}
	_, shown, _ := d.run("plan", "--instances", "60", "--groups", "3", "--changes", "1", "--lost", "0")
	if !strings.Contains(shown, "a report of a failed check") || strings.Contains(shown, "storm:") {
		t.Error(shown)
	}
}
