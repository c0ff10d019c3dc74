package web_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/store"
)

// Each gauge shows its own field of what is recorded, and of a group that is well each is 0. A
// replica that does not lead shows none of them.
//
// proves OBS-2
func TestGaugesShowWhatIsRecorded(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.still.orphans, x.still.missing = 3, 4
	leads := ready(x.now)
	leads.Leads, leads.Streams, leads.GraceEnd, leads.History = true, 5, x.now.Add(time.Hour), 2*time.Hour
	x.still.set(leads)
	x.still.certificates = []coordinator.Certificate{{Name: "agents_server", Ends: x.now.Add(time.Hour)}}
	sick := store.Status{
		Schema: store.Schema, Group: "sick", Accepted: &store.Group{Size: 50}, Invalid: &store.InvalidSpec{Why: "wrong"},
		State: store.GroupErrored, Healthy: 20, OnDemand: 6, Outdated: 7, Flapping: 8, Errored: 9,
		Phases: map[store.Phase]int{}, Verdicts: map[store.Verdict]int{}, Storm: &store.Storm{},
		Rollout: &store.Rollout{Stalled: "no progress", Blamed: "it fails"}, Scale: &store.Scale{Asks: 60},
		Blocked: make([]store.Blocked, 11),
	}
	want := map[string]float64{
		"leasehold_leader": 1, "leasehold_streams": 5, "leasehold_etcd_history_seconds": 7200, "leasehold_replicas": 2,
		"leasehold_held": 1, "leasehold_unreadable_records": 1, "leasehold_orphan_machines": 3,
		"leasehold_missing_machines": 4,
	}
	of := func(group, metric, label string, value float64) {
		if label != "" {
			label = "," + label
		}
		want[fmt.Sprintf(`leasehold_group_%s{group="%s"%s}`, metric, group, label)] = value
	}
	for i, p := range store.Phases {
		sick.Phases[p] = 100 + i
		of("sick", "instances", fmt.Sprintf(`phase="%s"`, p), float64(100+i))
		of("well", "instances", fmt.Sprintf(`phase="%s"`, p), 0)
	}
	for i, v := range []store.Verdict{
		store.Unborn, store.Live, store.Suspect, store.Unhealthy, store.Lost, store.Dead, store.Stuck, store.Doomed,
	} {
		sick.Verdicts[v] = 200 + i
		of("sick", "verdicts", fmt.Sprintf(`verdict="%s"`, v), float64(200+i))
		of("well", "verdicts", fmt.Sprintf(`verdict="%s"`, v), 0)
	}
	for metric, value := range map[string]float64{
		"size": 50, "scale_wish": 60, "healthy_instances": 20, "on_demand_instances": 6, "health_ratio": 0.4,
		"outdated_instances": 7, "storm": 1, "rollout_stalled": 1, "rollout_blamed": 1, "spec_invalid": 1, "blocked": 11,
	} {
		of("sick", metric, "", value)
		of("well", metric, "", map[string]float64{"size": 2, "healthy_instances": 3, "health_ratio": 1}[metric])
	}
	delete(want, `leasehold_group_scale_wish{group="well"}`) // its size follows no load
	of("sick", "troubled_slots", `trouble="flapping"`, 8)
	of("sick", "troubled_slots", `trouble="errored"`, 9)
	of("sick", "state", `state="errored"`, 1)
	of("well", "state", `state="started"`, 1)
	of("new", "size", "", 0)
	of("new", "health_ratio", "", 1)
	shard := store.Shard{Schema: store.Schema, ID: "id", Hold: &store.Hold{By: "ada"}}
	x.put(map[string]any{
		x.keys.Status("sick"): sick, x.keys.Shard(): shard,
		x.keys.Status("well"): store.Status{
			Schema: store.Schema, Group: "well", Accepted: &store.Group{Size: 2}, State: store.GroupStarted, Healthy: 3,
			Storm: &store.Storm{Ended: "calm"}, Rollout: &store.Rollout{},
		},
		x.keys.Status("new"): store.Status{Schema: store.Schema, Group: "another"},
		x.keys.Replica("a"):  store.Replica{Schema: store.Schema, ID: "a"},
		x.keys.Replica("b"):  store.Replica{Schema: store.Schema, ID: "b"},
		x.keys.Instance("a"): map[string]any{"schema": 999},
	})
	told := x.site.scrape()
	for series, value := range want {
		if got, err := strconv.ParseFloat(told.values[series], 64); err != nil || got != value {
			t.Errorf("%s is %q, want %g", series, told.values[series], value)
		}
	}
	for series, most := range map[string]float64{
		"leasehold_grace_remaining_seconds": 3600, `leasehold_certificate_remaining_seconds{certificate="agents_server"}`: 3600,
		"leasehold_picture_revision": 1 << 20, "leasehold_picture_age_seconds": 3,
	} {
		if got, err := strconv.ParseFloat(told.values[series], 64); err != nil || got < 0 || got > most ||
			most == 3600 && got < 3000 || strings.HasSuffix(series, "revision") && got < 2 {
			t.Errorf("%s is %q, want at most %g", series, told.values[series], most)
		}
	}
	for _, series := range told.series {
		if _, known := want[series]; !known && strings.HasPrefix(series, "leasehold_group_") &&
			!strings.Contains(series, `group="well",trouble=`) && !strings.Contains(series, `group="new"`) {
			t.Errorf("%s is shown besides", series)
		}
	}
	shard.Hold = nil
	x.put(map[string]any{x.keys.Shard(): shard})
	if held := x.site.scrape().values["leasehold_held"]; held != "0" {
		t.Errorf("without a hold it is %q", held)
	}
	x.still.set(ready(x.now))
	for _, series := range x.site.scrape().series {
		if strings.HasPrefix(series, "leasehold_group_") || strings.HasPrefix(series, "leasehold_held") {
			t.Errorf("a follower shows %s", series)
		}
	}
}
