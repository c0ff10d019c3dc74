package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A size that a schedule has ended comes into force again by the same command. One that still holds
// is not written again.
//
// proves AUTO-3
func TestTheSameSizeAfterASchedule(t *testing.T) {
	for name, c := range map[string]struct {
		scheduled time.Time
		writes    bool
	}{
		"the schedule came before the size": {noon.Add(-2 * time.Hour), false},
		"the schedule has ended the size":   {noon.Add(-time.Minute), true},
	} {
		w := newWorld(t)
		w.serve()
		g := webGroup(3)
		g.Scale = &store.ScaleSpec{Max: 20, Schedule: []store.ScaleChange{{Cron: "0 8 * * *", Max: new(4)}}}
		g.ScaleHold = &store.ScaleHold{Size: 12, By: "ada", At: noon.Add(-time.Hour)}
		rev := w.put(store.KindGroups, "web", g)
		st := statusOf(g, rev, 3)
		st.Scale = &store.Scale{Size: 3, Scheduled: &store.Scheduled{Since: c.scheduled, Cron: "0 8 * * *", Min: 1, Max: 4}}
		w.put(store.KindStatus, "web", st)
		out := w.must("group", "scale", "web", "12")
		if wrote := w.spec("web").ScaleHold.At.Equal(noon); wrote != c.writes || strings.Contains(out, "unchanged") == wrote {
			t.Errorf("%s: written %t: %s", name, wrote, out)
		}
	}
}
