package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// valueAt returns the value at a path of a group, as it is stored; nil if it is left out.
func valueAt(t *testing.T, g store.Group, path string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(store.Encode(g), &value); err != nil {
		t.Fatal(err)
	}
	for step := range strings.SplitSeq(path, ".") {
		fields, _ := value.(map[string]any)
		value = fields[step]
	}
	return value
}

// A default that an operator writes out is stored as one that is left out: the release before does
// not know all fields, and a spec is the same before and after it was stored. Other values stay.
//
// proves EXP-1, BUSY-1, PROV-7, ROLL-8, SPOT-4
func TestDefaultsThatAreWrittenOut(t *testing.T) {
	one := func() store.Group {
		g := web()
		g.Size = 1
		return g
	}
	for _, c := range []struct {
		path         string
		usual, other any
	}{
		{"expiry.forced_grace", "24h", "23h"},
		{"expiry.forced_grace", "24h", "0s"},
		{"busy.timeout", "1h", "30m"},
		{"agent.within", "2m", "3m"},
		{"agent.at_once", 1, 2},
		{"rollout.order", "any", "zone"},
		{"spread", "at_creation", "even"},
		{"capacity.on_demand_base", 0, 1},
		{"capacity.spot", 0, 1},
		{"capacity.fallback", "on_demand", "wait"},
		{"capacity.fallback_after", "2m", "1m"},
		{"capacity.return_after", "30m", "1h"},
	} {
		g := one()
		setField(t, &g, c.path, c.usual)
		if g.Complete(); !reflect.DeepEqual(g, one()) {
			t.Errorf("%s: with its default, %v, the group is %s", c.path, c.usual, store.Encode(g))
		}
		setField(t, &g, c.path, c.other)
		said := valueAt(t, g, c.path)
		if g.Complete(); said == nil || valueAt(t, g, c.path) != said {
			t.Errorf("%s: with %v the group is %s", c.path, c.other, store.Encode(g))
		}
		again, err := store.ReadGroup(store.Encode(g))
		if err != nil || !reflect.DeepEqual(again, g) {
			t.Errorf("%s: with %v, stored and read: %s, %v", c.path, c.other, store.Encode(again), err)
		}
	}
}

// Of a group that is divided between spot machines and others every default is stored; a group that
// is not divided has nothing of it.
//
// proves SPOT-4
func TestDefaultsOfCapacity(t *testing.T) {
	for said, want := range map[string]string{
		`{}`:                      `{}`,
		`{"spot":60}`:             `{"spot":60,"fallback":"on_demand","fallback_after":"2m0s","return_after":"30m0s"}`,
		`{"on_demand_base":1}`:    `{"on_demand_base":1,"fallback":"on_demand","fallback_after":"2m0s","return_after":"30m0s"}`,
		`{"fallback":"wait"}`:     `{"fallback":"wait","fallback_after":"2m0s","return_after":"30m0s"}`,
		`{"fallback_after":"0s"}`: `{"fallback":"on_demand","fallback_after":"0s","return_after":"30m0s"}`,
		`{"return_after":"0s"}`:   `{"fallback":"on_demand","fallback_after":"2m0s","return_after":"0s"}`,
		`{"fallback":"on_demand","fallback_after":"2m","return_after":"30m"}`: `{}`,
	} {
		g := web()
		if err := json.Unmarshal([]byte(said), &g.Capacity); err != nil {
			t.Fatal(err)
		}
		if g.Complete(); strings.TrimSpace(string(store.Encode(g.Capacity))) != want {
			t.Errorf("%s is stored as %s, want %s", said, store.Encode(g.Capacity), want)
		}
	}
	for fallback, want := range map[string]bool{"": false, store.FallbackOnDemand: false, store.FallbackWait: true} {
		if got := (store.CapacitySpec{Fallback: fallback}).Waits(); got != want {
			t.Errorf("with the fallback %q an instance waits for spot capacity: %t", fallback, got)
		}
	}
}

// Of the instances beyond the base a share is on spot machines. It is rounded in favour of machines
// on demand.
//
// proves SPOT-4
func TestHowManyAreOnDemand(t *testing.T) {
	for _, c := range []struct{ size, base, spot, want int }{
		{10, 0, 0, 10},
		{10, 0, 100, 0},
		{10, 0, 99, 1},
		{10, 2, 50, 6},
		{11, 2, 50, 7},
		{10, 1, 33, 8},
		{10, 10, 100, 10},
		{3, 5, 50, 3},
		{0, 5, 50, 0},
	} {
		got := store.CapacitySpec{OnDemandBase: c.base, Spot: c.spot}.OnDemand(c.size)
		if got != c.want {
			t.Errorf("%d of %d instances are on demand with a base of %d and %d%% spot, want %d",
				got, c.size, c.base, c.spot, c.want)
		}
	}
}

// A machine is a spot machine if the group has them alone, or a share of them.
//
// proves SPOT-3, SPOT-4
func TestWhichMachinesAreSpot(t *testing.T) {
	for _, c := range []struct {
		enabled bool
		share   int
		want    bool
	}{{false, 0, false}, {true, 0, true}, {false, 1, true}, {false, 100, true}} {
		g := web()
		g.Spot.Enabled, g.Capacity.Spot = c.enabled, c.share
		if got := g.InstanceSpec().Spot; got != c.want {
			t.Errorf("spot.enabled %t, capacity.spot %d: a spot machine: %t", c.enabled, c.share, got)
		}
	}
}

// The defaults of a group whose size follows its load are stored with it, and what the caller gave
// is not changed.
//
// proves AUTO-1
func TestDefaultsOfScalingAreStored(t *testing.T) {
	said := &store.ScaleSpec{Max: 20, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 60}}}
	g := web()
	g.Scale = said
	g.Complete()
	want := said.Complete()
	if g.Scale.Min == nil || *g.Scale.Min != 1 || !reflect.DeepEqual(*g.Scale, want) {
		t.Errorf("stored is %s, want %s", store.Encode(g.Scale), store.Encode(want))
	}
	if said.Min != nil {
		t.Error("the spec that the caller gave was changed")
	}
}

// Canaries are so many instances, one at least, and others always remain.
//
// proves ROLL-5
func TestHowManyCanaries(t *testing.T) {
	for _, c := range []struct {
		canary store.Amount
		size   int
		want   int
	}{
		{0, 10, 0},
		{1, 10, 1},
		{5, 10, 5},
		{10, 10, 9},
		{1000, 10, 9},
		{store.Percent(25), 10, 3},
		{store.Percent(1), 10, 1},
		{store.Percent(100), 10, 9},
		{1, 2, 1},
		{store.Percent(100), 2, 1},
		{1, 1, 0},
		{1, 0, 0},
	} {
		g := web()
		g.Size, g.Rollout.Canary = c.size, c.canary
		if got := g.Canaries(); got != c.want {
			t.Errorf("%s of %d: %d canaries, want %d", c.canary, c.size, got, c.want)
		}
	}
}

// Canaries have to be healthy for ten minutes, or as long as the operator says, and no shorter than
// each stage of the roll. With 0 an operator has to go on.
//
// proves ROLL-5, ROLL-8
func TestHowLongCanariesAreWatched(t *testing.T) {
	minutes := func(n int) *store.Duration {
		d := store.Duration(n) * store.Duration(time.Minute)
		return &d
	}
	moment := store.Duration(1)
	for name, c := range map[string]struct {
		duration *store.Duration
		bake     store.Duration
		wait     time.Duration
		promoted bool
	}{
		"nothing said":            {nil, 0, 10 * time.Minute, false},
		"shorter":                 {minutes(3), 0, 3 * time.Minute, false},
		"longer":                  {minutes(30), 0, 30 * time.Minute, false},
		"a longer stage":          {nil, *minutes(20), 20 * time.Minute, false},
		"a shorter stage":         {minutes(30), *minutes(20), 30 * time.Minute, false},
		"an operator goes on":     {minutes(0), 0, 0, true},
		"an operator, of stages":  {minutes(0), *minutes(5), 5 * time.Minute, true},
		"next to nothing is time": {&moment, 0, 1, false},
	} {
		r := store.RolloutSpec{CanaryDuration: c.duration, Bake: c.bake}
		if wait, promoted := r.CanaryWait(); wait != c.wait || promoted != c.promoted {
			t.Errorf("%s: %s, %t; want %s, %t", name, wait, promoted, c.wait, c.promoted)
		}
	}
}

// A rollback restores all that instances are made from, and nothing else.
//
// proves ROLL-4
func TestWhatARollbackRestores(t *testing.T) {
	g := web()
	g.Provider = "qemu"
	g.Template = store.Template{InstanceType: "large", Zones: []string{"a"}}
	g.Workload.Run, g.Vars = []string{"./web"}, map[string]string{"a": "b"}
	g.Secrets = map[string]string{"A": "a"}
	g.Checks = []store.Check{{Name: "c", TCP: &store.TCPCheck{Port: "80"}}}
	g.Files = []store.File{{Path: "/a", Text: new(string)}}
	g.Slots.Name, g.Busy.File = "web-${slot}", "/run/busy"
	g.Complete()
	good := g.InstanceSpec()

	now := web()
	now.Size, now.Report.Interval, now.Labels = 7, store.Duration(time.Second), map[string]string{"a": "b"}
	patience := store.Duration(time.Minute)
	now.Busy.Timeout = &patience
	now.Template.InstanceTypes, now.Busy.File = []string{"small"}, "/run/other"
	was := now
	now.Restore(good)
	if got := now.InstanceSpec(); got.TemplateHash() != good.TemplateHash() || got.ConfigHash() != good.ConfigHash() {
		t.Errorf("instances are made from %s, want %s", store.Encode(got), store.Encode(good))
	}
	for i := range reflect.TypeFor[store.Group]().NumField() {
		name := reflect.TypeFor[store.Group]().Field(i).Name
		restored := []string{"Provider", "Template", "Workload", "Vars", "Secrets", "Checks", "Files", "Slots", "Busy"}
		before, after := reflect.ValueOf(was).Field(i).Interface(), reflect.ValueOf(now).Field(i).Interface()
		if same := reflect.DeepEqual(before, after); same == slices.Contains(restored, name) {
			t.Errorf("%s was %s, is %s", name, fmt.Sprint(before), fmt.Sprint(after))
		}
	}
	if now.Busy.Timeout == nil || *now.Busy.Timeout != patience {
		t.Errorf("how long busy instances are waited for is %v", now.Busy.Timeout)
	}
}
