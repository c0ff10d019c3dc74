package e2e

import (
	"slices"
	"strings"
	"testing"
)

// A drill in a live group: a machine is ended on purpose, the group heals as it promises to,
// nothing is blamed, and the report calls it a drill. What the group could not bear is refused.
//
// proves DAY-6 DAY-5
func TestDrill(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	l.startDev("--listen", l.address())
	l.follow()
	l.await("the demo group", func() bool { return l.h.complete("demo", 3) })
	ids := l.h.wanted("demo")

	complains(t, l.cli("drill", "machine", "demo"), 2, "must be confirmed")
	complains(t, l.cli("drill", "zone", "demo", "local", "--confirm=demo"), 1, "it would leave none of 3 instances")
	l.same("demo", ids)

	out := l.must("drill", "machine", "demo", "-i", ids[1], "--confirm=demo")
	t.Log("\n" + out)
	for _, want := range []string{ids[1] + " detected", ids[1] + " served again", "blamed for it"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\tNO") {
		t.Errorf("a promise was not kept:\n%s", out)
	}
	l.await("the group being whole", func() bool {
		return l.h.complete("demo", 3) && !slices.Contains(l.h.wanted("demo"), ids[1])
	})
	for _, kind := range []string{"agent", "workload"} {
		out := l.must("drill", kind, "demo", "--confirm=demo")
		t.Log("\n" + out)
		if strings.Contains(out, "\tNO") || !strings.Contains(out, " served again") {
			t.Errorf("a promise was not kept:\n%s", out)
		}
		l.await("the group being whole", func() bool { return l.h.complete("demo", 3) })
	}
	if report := l.must("report", "-g", "demo"); !strings.Contains(report, "lost     drill: ") ||
		strings.Contains(report, "machine died") || !strings.Contains(report, "heal     never") {
		t.Error(report)
	}
	l.await("the removal of the machines that were replaced", func() bool {
		return slices.Equal(l.h.ids("demo"), l.h.wanted("demo"))
	})
	l.stop(l.h.wanted("demo"), closedTerminal())
}
