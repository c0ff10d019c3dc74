package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A change of the schedule comes into force when its time has come, and is told. One that shrinks
// the group waits while the clocks of the replicas differ or something else holds the size; one
// that makes it grow waits for nothing.
//
// proves AUTO-3, AUTO-5, SAFE-13
func TestTheScheduleIsFollowed(t *testing.T) {
	n := func(n int) *int { return &n }
	day, night := epoch.Truncate(24*time.Hour).Add(9*time.Hour), epoch.Truncate(24*time.Hour).Add(21*time.Hour)
	spec := &store.ScaleSpec{Min: n(2), Max: 20, Schedule: []store.ScaleChange{
		{Cron: "0 8 * * *", Min: n(10)}, {Cron: "0 20 * * *", Max: n(4)},
	}}
	byDay, byNight := spec.ScheduledAt(day), spec.ScheduledAt(night)
	for name, test := range map[string]struct {
		now   time.Time
		old   *store.Scheduled
		size  int
		edit  func(*draft)
		want  *store.Scheduled
		waits store.ScaleStays
	}{
		"it comes":       {night, byDay, 12, nil, byNight, ""},
		"it is in force": {day, byDay, 12, nil, byDay, ""},
		"clocks that differ": {
			night, byDay, 12, func(d *draft) { d.s.ClocksApart = 30 * time.Second }, byDay, store.ScaleClocks,
		},
		"clocks that differ little": {
			night, byDay, 12, func(d *draft) { d.s.ClocksApart = 30*time.Second - 1 }, byNight, "",
		},
		"a storm": {night, byDay, 12, func(d *draft) { d.storms.storm = &store.Storm{} }, byDay, store.ScaleStorm},
		"growth waits for nothing": {
			day, nil, 2, func(d *draft) { d.s.ClocksApart, d.storms.storm = time.Hour, &store.Storm{} }, byDay, "",
		},
		"bounds that fall wait as well": {
			night, byDay, 3, func(d *draft) { d.s.ClocksApart = time.Minute }, byDay, store.ScaleClocks,
		},
	} {
		d := draftWith(func(d *draft) {
			d.s, d.g, d.now, d.roll.rollout = &Snapshot{}, &Group{Name: "web"}, test.now, &store.Rollout{}
			d.spec = &store.Group{Name: "web", Scale: spec, Size: test.size}
			d.scaler.scale = &store.Scale{Size: test.size, Scheduled: test.old}
		})
		if test.edit != nil {
			test.edit(d)
		}
		changed := d.scaler.followSchedule()
		if !samePart(d.scaler.scale.Scheduled, test.want) || d.scaler.scale.Waits != test.waits ||
			changed != !samePart(test.old, test.want) {
			t.Errorf("%s: %+v, waits %q, changed %v", name, d.scaler.scale.Scheduled, d.scaler.scale.Waits, changed)
		}
	}
}
