package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A scheduled drill begins when its time comes, once, or is left out with the reason: its time has
// passed, no window allows it, the group could not bear it. A schedule that is new begins with its
// next time, and one whose last time a wrong clock has put into the future goes on.
//
// proves DAY-6, ROLL-6, SAFE-13
func TestScheduledDrills(t *testing.T) {
	at := epoch.Truncate(24 * time.Hour).Add(24 * time.Hour) // 00:00
	before := at.Add(-24 * time.Hour)
	window := func(from string, allow ...string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Groups[0].Spec.Group.Windows = []store.Window{{From: from, For: store.Duration(time.Hour), Allow: allow}}
		}
	}
	for name, c := range map[string]struct {
		now  time.Time
		done time.Time // the last that was dealt with
		set  func(*Snapshot)
		left string // out; "": not
		mark bool
		due  time.Time // as the status has it then
	}{
		"it comes":       {at.Add(time.Second), before, nil, "", true, before},
		"not yet":        {at.Add(-time.Second), before, nil, "", false, before},
		"it has begun":   {at.Add(time.Second), before, drilledBy("schedule-" + at.Format("20060102T1504")), "", false, at},
		"it was done":    {at.Add(time.Second), at, nil, "", false, at},
		"it is new":      {at.Add(time.Second), time.Time{}, nil, "", false, at},
		"it is late":     {at.Add(time.Minute), before, nil, "its time has passed", false, at},
		"a clock back":   {at.Add(time.Second), at.Add(5 * time.Minute), nil, "", false, at.Add(5 * time.Minute)},
		"a clock ahead":  {at.Add(time.Second), at.Add(24 * time.Hour), nil, "noted for 2", false, at},
		"and it goes on": {at.Add(24 * time.Hour), at, nil, "", true, at},
		"another drill":  {at.Add(time.Second), before, drilledBy("r"), "another drill goes on", false, at},
		"in a window":    {at.Add(time.Second), before, window("00:00"), "", true, before},
		"one for it":     {at.Add(time.Second), before, window("00:00", store.PlannedDrill), "", true, before},
		"outside":        {at.Add(time.Second), before, window("02:00"), "no window allows it", false, at},
		"one for others": {at.Add(time.Second), before, window("00:00", store.PlannedRoll), "no window allows it", false, at},
		"a freeze": {
			at.Add(time.Second), before, func(s *Snapshot) {
				s.Shard.Record.Freeze = &store.Freeze{To: at.Add(time.Hour), Why: "sale"}
			}, "a freeze", false, at,
		},
		"clocks differ": {
			at.Add(time.Second), before, func(s *Snapshot) { s.ClocksApart = ClocksApart }, "clocks", false, at,
		},
		"on hold": {
			at.Add(time.Second), before, func(s *Snapshot) { s.Shard.Record.Hold = &store.Hold{} }, "on hold", false, at,
		},
		"one is sick": {
			at.Add(time.Second), before, func(s *Snapshot) { s.Groups[0].Instances[2].Report.Record.Healthy = false },
			"not all of its instances are healthy", false, at,
		},
		"two at once": {at.Add(time.Second), before, twoDrills(), "", true, before},
		"two at once, and the first has begun": {
			at.Add(time.Second), before, twoDrills(drilledBy("schedule-" + at.Format("20060102T1504"))),
			"the agent drill comes at the same time", false, at,
		},
		"two at once, and both are late": {
			at.Add(time.Minute), before, twoDrills(), "the agent drill comes at the same time", false, at,
		},
		"another spec": {
			at.Add(time.Second), before, func(s *Snapshot) { s.Groups[0].Status.Record.AcceptedRevision-- }, "", false, at,
		},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) {
			g.Size, g.Drills = 3, []store.DrillSpec{{Cron: "0 0 * * *", Kind: "machine"}}
		})
		w.now = c.now
		for i, id := range []string{"a", "b", "c"} {
			w.place(id, i, store.Running)
		}
		s := w.snapshot()
		status := &s.Groups[0].Status
		status.Record.DrillDue, status.Record.AcceptedRevision = c.done, s.Groups[0].Spec.Modified
		if c.set != nil {
			c.set(&s)
		}
		marked, left, due := false, "", status.Record.DrillDue
		for _, a := range Compute(s, c.now).Actions {
			for _, e := range a.JournalEntries() {
				if e.Rule == "DAY-6" && e.Instance == "" {
					left = e.Why
				}
			}
			for _, write := range a.Writes {
				if write.Key == status.Key || write.Key == w.keys.Status(w.group) {
					v, err := store.Decode[store.Status](store.KV{Key: write.Key, Value: write.Value})
					if err != nil {
						t.Fatal(err)
					}
					due = v.Record.DrillDue
				}
				marked = marked || strings.Contains(string(write.Value), `"by":"schedule"`)
			}
		}
		if marked != c.mark || !due.Equal(c.due) || (left == "") != (c.left == "") || !strings.Contains(left, c.left) {
			t.Errorf("%s: marked %v, due %s, left out %q", name, marked, due, left)
		}
	}
}

// twoDrills adds a drill that comes at the same time as the other one.
func twoDrills(more ...func(*Snapshot)) func(*Snapshot) {
	return func(s *Snapshot) {
		g := &s.Groups[0].Spec.Group
		g.Drills = append(g.Drills, store.DrillSpec{Cron: "*/30 0 * * *", Kind: "agent"})
		for _, set := range more {
			set(s)
		}
	}
}

func drilledBy(order string) func(*Snapshot) {
	return func(s *Snapshot) {
		rec := &s.Groups[0].Instances[0].Record
		rec.Drill = &store.Drill{Request: order, At: rec.Since, Asked: true}
	}
}
