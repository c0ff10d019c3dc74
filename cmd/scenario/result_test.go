package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

func TestWorstAvailabilityIsWhatWasHealthyOfWhatWasWanted(t *testing.T) {
	res := play(t, "length: 10m\nevents:\n- {at: 4m, kill: {count: 2}}\n")
	g := res.Groups[0]
	if g.Availability != 66 || g.Healthy != 4 || g.Of != 6 || g.At != "00:04:00" || g.Serving != 66 {
		t.Errorf("two of six were killed; got %+v", g)
	}
	e := res.Events[0]
	if e.Worst != 66 || e.Converged == nil || *e.Converged < 20 || *e.Converged > 60 {
		t.Errorf("got %+v", e)
	}
	if g.Below < 20 || g.Below > *e.Converged || g.Longest > g.Below {
		t.Errorf("below 100%% for %gs, at a stretch %gs, all as wanted after %gs", g.Below, g.Longest, *e.Converged)
	}
	if res.Machines.Created != 8 || res.Machines.Removed != 2 || res.Machines.AtOnce < 7 || res.Machines.AtOnce > 8 {
		t.Errorf("got %+v", res.Machines)
	}
}

// A group that comes up or grows lacks nothing that it ever had.
func TestComingUpAndGrowingIsNoLoss(t *testing.T) {
	res := play(t, "length: 10m\nevents:\n- {at: 4m, scale: {group: web, size: 12}}\n")
	if g := res.Groups[0]; g.Availability != 100 || g.Below != 0 || g.Size != 12 || !g.Whole {
		t.Errorf("got %+v", g)
	}
	res = play(t, "length: 10m\nevents:\n- {at: 4m, scale: {group: web, size: 12}}\n- {at: 5m, kill: {count: 6}}\n")
	if g := res.Groups[0]; g.Availability != 50 || g.Of != 12 {
		t.Errorf("half of the grown group was killed; got %+v", g)
	}
}

// Machines that run on while no coordinator hears their agents serve, though they do not count as
// healthy.
func TestServingIsNotTheSameAsHeard(t *testing.T) {
	res := play(t, "length: 10m\nevents:\n- {at: 4m, lost_leases: {percent: 50, for: 2m}}\n")
	if g := res.Groups[0]; g.Availability != 50 || g.Serving != 100 || g.Storms != 1 || res.Storms != 1 {
		t.Errorf("got %+v", g)
	}
	e := res.Events[0]
	if e.Converged == nil || *e.Converged < 120 || e.Late == nil || *e.Late > 30 {
		t.Errorf("got %+v", e)
	}
}

// What happens without a leader is no fault of the machines.
func TestCoordinatorsThatDieCostNothing(t *testing.T) {
	res := play(t,
		"length: 12m\nevents:\n- {at: 4m, coordinator_dies: {}}\n- {at: 6m, etcd_away: {for: 1m}}\n- {at: "+
			"8m, dropped_leases: {percent: 100}}\n")
	if g := res.Groups[0]; g.Availability != 100 || res.Machines.Created != 6 {
		t.Errorf("got %+v, %+v", g, res.Machines)
	}
	for _, e := range res.Events {
		if e.Converged == nil || *e.Converged != 0 {
			t.Errorf("got %+v", e)
		}
	}
}

func TestExpectations(t *testing.T) {
	const kill = "length: 10m\nevents:\n- {at: 4m, kill: {count: 2}}\n"
	const stuck = "length: 10m\nevents:\n- {at: 4m, no_capacity: {}}\n- {at: 5m, kill: {}}\n"
	for _, c := range []struct {
		text, expect, got string
		met               bool
	}{
		{kill, "worst_availability: 66%", "66%", true},
		{kill, "worst_availability: 67%", "66%", false},
		{kill, "worst_serving: 67%", "66%", false},
		{kill, "machines_created: 8", "8", true},
		{kill, "machines_created: 7", "8", false},
		{kill, "machines_at_once: 6", "7", false},
		{kill, "storms: 0", "0", true},
		{kill, "converged_within: 1m", " after 00:04:00", true},
		{kill, "converged_within: 10s", " after 00:04:00", false},
		{kill, "converged: true", "yes", true},
		{stuck, "converged: true", "no", false},
		{stuck, "converged_within: 1m", "not at all after 00:05:00", false},
		{"length: 10m\n", "converged_within: 1m", "no event happened", true},
	} {
		res := play(t, c.text+"expect: {"+c.expect+"}\n")
		name, _, _ := strings.Cut(c.expect, ":")
		i := slices.IndexFunc(res.Checks, func(k Check) bool { return k.Name == name })
		if i < 0 {
			t.Errorf("%s: not judged", c.expect)
			continue
		}
		if k := res.Checks[i]; k.Met != c.met || !strings.HasSuffix(k.Got, c.got) {
			t.Errorf("%s: got %+v", c.expect, k)
		}
		if !c.met && res.Met {
			t.Errorf("%s: not met, and all are", c.expect)
		}
	}
	if res := play(t, stuck+"expect: {converged: false}\n"); !res.Met || res.Whole || res.Groups[0].Unfinished == "" ||
		len(res.Groups[0].Blocked) == 0 {
		t.Errorf("got %+v", res.Groups[0])
	}
}

func TestFoldSumsUpWhatIsRepeated(t *testing.T) {
	at := func(d time.Duration, rule, instance string, effect store.Effect, cause store.Cause) Entry {
		return Entry{
			At: d, Time: Clock(d), Source: Decision, Rule: rule, Group: "web", Instance: instance,
			What: reason.Effect(effect), effect: effect, Why: reason.Short(cause), cause: cause,
		}
	}
	requested := store.Effect{Kind: store.EffectRequested}
	replaced := func(by string) store.Effect { return store.Effect{Kind: store.EffectReplaced, Instance: by} }
	in := func(zone string) store.Effect { return store.Effect{Kind: store.EffectInZone, Zone: zone} }
	filled := func(n int) store.Cause { return store.Cause{Kind: store.CauseUnfilled, Count: n, Limit: 2} }
	full := func(zone string) store.Cause { return store.Cause{Kind: store.CauseFullZone, Name: zone} }
	text := func(s string) store.Cause { return store.Cause{Kind: store.CauseUnhealthy, Text: s} }
	step := at(2*time.Second, "SAFE-8", "web-0-abc123", store.Effect{Kind: store.EffectAsked}, store.Cause{})
	step.minor = true
	got := Fold([]Entry{
		at(time.Second, "REC-3", "web-0-abc123", requested, filled(0)), step,
		at(3*time.Second, "REC-3", "web-1-abc123", requested, filled(1)),
		at(4*time.Second, "HEAL-2", "web-2-abc123", replaced("web-2-def456"), text("check http fails")),
		at(5*time.Second, "HEAL-2", "web-3-abc123", replaced("web-3-def456"), store.Cause{Kind: store.CauseNoReturn}),
		{At: 6 * time.Second, Time: "00:00:06", Source: Happens, What: "2 machines killed"},
		at(7*time.Second, "REC-3", "web-0-ghi789", requested, store.Cause{}),
		at(98*time.Second, "REC-3", "web-1-ghi789", requested, store.Cause{}),
		at(99*time.Second, "REC-3", "web-2-abc123", in("a"), full("b")),
		at(100*time.Second, "REC-3", "web-2-abc123", in("b"), full("a")),
		at(101*time.Second, "SPOT-2", "web-2-abc123", requested, store.Cause{
			Kind: store.CauseRelieved, Other: "web-2-b", Heir: "web-2-c", Also: &store.CauseAlso{Left: "one"},
		}),
		at(102*time.Second, "SPOT-2", "web-2-abc123", requested, store.Cause{
			Kind: store.CauseRelieved, Other: "web-2-d", Heir: "web-2-e", Also: &store.CauseAlso{Left: "two"},
		}),
	})
	var b strings.Builder
	for _, e := range got {
		fmt.Fprintf(&b, "%s %s|%s|%d|%s|%s|%s\n", e.Time, e.Rule, e.Instance, e.Count, e.What, e.Why, e.Until)
	}
	want := `00:00:01 REC-3||2|requested|0 of 2 slots are filled|00:00:03
00:00:04 HEAL-2||2|replacement … requested|check http fails …|00:00:05
00:00:06 ||0|2 machines killed||
00:00:07 REC-3|web-0-ghi789|0|requested||
00:01:38 REC-3|web-1-ghi789|0|requested||
00:01:39 REC-3||2|tried in zone …|zone … has no room|00:01:40
00:01:41 SPOT-2||2|requested|… is healthy in its place; it left because: …; … is healthy in its place|00:01:42
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestManyRunsAreSummedUp(t *testing.T) {
	s := readIt(t,
		"seed: 3\nlength: 10m\nprovider: {create_fails: 30%}\nevents:\n- {at: 4m, kill: {count: "+
			"3}}\nexpect: {machines_created: 10, converged: false}\n")
	told := 0
	runs := s.PlayMany(t.Context(), 8, func(int) { told++ })
	if runs.Seeds != 8 || runs.First != 3 || runs.Cut || told != 8 {
		t.Fatalf("got %+v, told %d times", runs, told)
	}
	var created []int
	met, worst := 0, uint64(0)
	for seed := uint64(3); seed < 11; seed++ {
		one := *s
		one.Seed = seed
		res := one.Play(t.Context(), func(time.Duration) {})
		if res.Met {
			met++
		}
		if n := res.Machines.Created; worst == 0 || n > slices.Max(created) {
			worst = seed
		}
		created = append(created, res.Machines.Created)
	}
	slices.Sort(created)
	i := slices.IndexFunc(runs.Measures, func(m Measure) bool { return m.Name == "machines made" })
	want := Measure{
		Name: "machines made", Best: float64(created[0]), Median: float64(created[4]),
		Worst: float64(created[7]), Seed: worst,
	}
	if runs.Measures[i] != want || created[0] == created[7] {
		t.Errorf("got  %+v\nwant %+v", runs.Measures[i], want)
	}
	if runs.Met != met || met == 8 || len(runs.Missed) != 1 || runs.Missed[0].Count != 8-met {
		t.Errorf("met in %d, got %+v", met, runs)
	}
}

func TestInterruptedItPrintsWhatThereIs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := readIt(t, "length: 24h\n")
	res := s.Play(ctx, func(at time.Duration) {
		if at > time.Hour {
			cancel()
		}
	})
	if !res.Cut || len(res.Timeline) == 0 || res.Machines.Created != 6 {
		t.Errorf("got %+v", res)
	}
	for _, k := range res.Checks {
		if k.Name == "converged" {
			t.Error("it is judged how it stands at an end that was not reached")
		}
	}
	if runs := s.PlayMany(ctx, 3, func(int) {}); !runs.Cut || runs.Seeds != 0 {
		t.Errorf("got %+v", runs)
	}
}

// A task that is done is as wanted, and lacks nothing.
func TestATaskThatIsDoneIsAsWanted(t *testing.T) {
	s := setting()
	s.Groups[0].Lifecycle = store.LifecycleTask
	sc,
		err := Read("s.yaml",
		strings.NewReader("length: 30h\nevents:\n- {at: 4m, workload_exits: {count: 2, code: 0}}\n- {at: "+
			"29h, workload_exits: {percent: 100, code: 0}}\n"), s)
	if err != nil {
		t.Fatal(err)
	}
	res := sc.Play(t.Context(), func(time.Duration) {})
	last := res.Events[1]
	if g := res.Groups[0]; !g.Whole || res.Machines.Created != 6 || last.Time != "29:00:00" || last.Converged == nil {
		t.Errorf("got %+v, %+v, %+v", g, res.Machines, last)
	}
}

func TestUntilEndsEarlier(t *testing.T) {
	s := readIt(t, "events: [{at: 5m, kill: {}}, {at: 10m, kill: {}}]")
	if n := s.Until(10 * time.Minute); n != 1 || len(s.Events) != 1 {
		t.Errorf("%d dropped, %d left", n, len(s.Events))
	}
	if res := s.Play(t.Context(), func(time.Duration) {}); res.Length != "10m" || len(res.Events) != 1 {
		t.Errorf("got %s, %d events", res.Length, len(res.Events))
	}
}

func BenchmarkHour(b *testing.B) {
	s := setting()
	s.Groups[0] = webOf(20)
	for b.Loop() {
		sc, err := Default(s)
		if err != nil {
			b.Fatal(err)
		}
		sc.Play(b.Context(), func(time.Duration) {})
	}
}
