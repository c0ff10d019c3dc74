package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

func webOf(size int) store.Group {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = "web", size, "cloud"
	g.Template.Zones = []string{"a", "b"}
	g.Complete()
	return g
}

// setting is a group of six, and files that bring others.
func setting() Setting {
	return Setting{Groups: []store.Group{webOf(6)}, File: func(name string) ([]store.Group, error) {
		switch name {
		case "other.yaml":
		case "spot.yaml":
			web := webOf(6)
			web.Capacity = store.CapacitySpec{Spot: 100, Fallback: store.FallbackWait}
			web.Complete()
			return []store.Group{web}, nil
		case "scaled.yaml":
			web := webOf(6)
			warmup := store.Duration(10 * time.Second)
			web.Scale = &store.ScaleSpec{
				Max: 12, Warmup: &warmup, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}},
			}
			web.Complete()
			return []store.Group{web}, nil
		case "canary.yaml":
			web := webOf(6)
			web.Rollout.Canary, web.Rollout.CanaryDuration = 1, new(store.Duration)
			web.Template.InstanceType = "large"
			web.Complete()
			return []store.Group{web}, nil
		case "queued.yaml":
			web := webOf(6)
			web.Scale = &store.ScaleSpec{Max: 12, Targets: []store.ScaleTarget{{From: "queue", Value: 100}}}
			web.Complete()
			return []store.Group{web}, nil
		default:
			return nil, fmt.Errorf("no such file")
		}
		web, api := webOf(6), webOf(2)
		web.Template.InstanceType, api.Name = "large", "api"
		api.Drain.Hook = []string{"/bin/leave"}
		return []store.Group{web, api}, nil
	}}
}

func readIt(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Read("s.yaml", strings.NewReader(text), setting())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t *testing.T, text string) *Result {
	t.Helper()
	res := readIt(t, text).Play(t.Context(), func(time.Duration) {})
	for _, b := range res.Broken {
		t.Errorf("what must never happen did: %s", b)
	}
	return res
}

// lines is the whole timeline as text, but for the events of the scenario themselves.
func lines(res *Result) string {
	var b strings.Builder
	for _, e := range res.Timeline {
		if e.Source == Happens || e.Source == Over {
			continue
		}
		fmt.Fprintf(&b, "%s %s %s %s%s: %s: %s\n", e.Time, e.Source, e.Rule, e.Instance, e.Group, e.What, e.Why)
	}
	return b.String()
}

// effects are, for each kind of event, a scenario with it and what is then in the timeline that is
// not there without it.
var effects = map[string]struct{ before, event, after, shows string }{
	// What happens to machines.
	"kill":        {event: "count: 2", shows: `(?s)DET-4 .* deleting; replacement.*DET-4 .* deleting; replacement`},
	"lost_leases": {event: "count: 4, for: 2m", shows: `(?s)is lost: its lease.*00:05:0\d verdict .*is healthy again`},
	"freeze":      {event: "slot: 2", shows: `web-2-\w+web: is lost: its lease`},
	"unhealthy": {
		event: "percent: 30, for: 1m",
		shows: `(?s)is unhealthy: check http fails.*is unhealthy: check http fails`,
	},
	"workload_exits": {event: "code: 0, zone: a", shows: `is unhealthy`},
	"spot_notice":    {event: "in: 1m", shows: `SPOT-2 .* doomed: a notice`},
	"goodbye":        {event: "says: shutdown", shows: `suspect: its agent said goodbye: shutdown`},
	// What happens to providers.
	"lose_zone": {event: "zone: b, for: 2m", shows: `tried in zone a: zone b has no room`},
	"no_capacity": {
		event: "for: 2m", after: "- {at: 3m1s, kill: {}}\n",
		shows: `(?m)^00:05:\d\d machine .*made`,
	},
	"no_spot": {
		event: "for: 2m", before: "- {at: 1s, apply: spot.yaml}\n", after: "- {at: 4m, kill: {percent: 100}}\n",
		shows: `(?m)^00:05:\d\d machine .*made`,
	},
	"provider_fails": {
		event: "for: 2m", after: "- {at: 3m1s, kill: {}}\n",
		shows: `machine exists: the provider lists it`,
	},
	"provider_throttles": {
		event: "for: 2m", after: "- {at: 3m1s, kill: {}}\n",
		shows: `(?m)^00:05:\d\d machine .*made`,
	},
	"provider_slow": {
		event: "for: 2m", after: "- {at: 3m1s, kill: {}}\n",
		shows: `(?m)^00:03:[2-5]\d machine .*made`,
	},
	"lists_lie":     {event: "how: empty", shows: `is suspect: .*list`},
	"extra_machine": {event: "group: web", shows: `decision \S+ web-extra-1`},
	"stuck_hooks": {
		event: "percent: 100", after: "- {at: 4m, drain: {group: api}}\n",
		before: "- {at: 1m, apply: other.yaml}\n", shows: `(?m)^00:09.* api-\d-\w+api: deleting`,
	},
	"calm": {
		event: "", before: "- {at: 1m, lose_zone: a}\n- {at: 2m, lose_zone: b}\n",
		shows: `(?m)^00:03:\d\d machine .*made`,
	},
	// What happens to coordinators and etcd.
	"coordinator_dies":    {event: "", shows: `(?m)^00:03:0[3-9] world .*leads`},
	"replica_dies":        {event: "", shows: `coordinator r1 dies`},
	"coordinator_resigns": {event: "", shows: `(?m)^00:03:00 world .*leads`},
	"coordinator_freezes": {event: "for: 20s", shows: `(?m)^00:03:0[3-9] world .*leads`},
	"watch_silent": {
		event: "for: 30s", after: "- {at: 3m1s, kill: {}}\n",
		shows: `(?m)^00:03:3\d decision DET-4`,
	},
	"wrong_clock":    {event: "by: -2h", shows: `(?m)^00:03:00 world .*leads`},
	"etcd_away":      {event: "for: 1m", shows: `(?m)^00:04:0\d world .*leads`},
	"dropped_leases": {event: "count: 3", shows: `suspect: its lease ended; to be confirmed`},
	"lost_answers": {
		event: "percent: 100", after: "- {at: 4m, kill: {}}\n- {at: 5m, lost_answers: 0%}\n",
		shows: `(?m)^00:05:\d\d machine .*made`,
	},
	// What is done to groups.
	"apply":        {event: "file: other.yaml", shows: `api: is as wanted`},
	"bad_template": {event: "group: web, for: 1m", shows: `is unhealthy`},
	"roll":         {event: "action: restart, bad: true", shows: `ROLL-2 .*restart`},
	"scale":        {event: "group: web, size: 8", shows: `web-7-\w+web: healthy`},
	"pause": {
		event: "group: web, for: 2m", after: "- {at: 4m, kill: {}}\n",
		shows: `(?m)^00:05:0\d decision DET-4`,
	},
	"resume": {
		event: "group: web", before: "- {at: 1m, pause: web}\n- {at: 2m, kill: {}}\n",
		shows: `decision DET-4`,
	},
	"stop": {event: "group: web, for: 2m", shows: `(?s)the group is stopped.*REC-3 .*requested`},
	"start": {
		event: "group: web", before: "- {at: 1m, stop: web}\n",
		shows: `(?m)^00:03:\d\d decision REC-3 .*requested`,
	},
	"restart_group": {event: "group: web, recreate: true", shows: `outdated: relaunch 1`},
	"rollback": {
		event: "group: web", before: "- {at: 2m, roll: {bad: true}}\n",
		shows: `(?m)^00:0[3-9].* web: is as wanted`,
	},
	"delete_group": {event: "group: web", shows: `web: is as wanted.*: 0 of 0`},
	// Load.
	"load": {event: "cpu: 550", before: "- {at: 1m, apply: scaled.yaml}\n", shows: `AUTO-1 .*size 6 -> \d`},
	"no_load": {
		event: "percent: 100, for: 4m", before: "- {at: 1m, apply: scaled.yaml}\n- {at: 1m, load: {cpu: 290}}\n",
		after: "- {at: 4m, load: {cpu: 550}}\n", shows: `(?m)^00:0[7-9].* AUTO-1 .*size`,
	},
	"number": {
		event: "from: queue, value: 850, over: 1m", before: "- {at: 1m, apply: queued.yaml}\n",
		shows: `(?m)^00:0[34].* AUTO-1 .*size 6 -> 9: queue `,
	},
	"no_number": {
		event:  "from: queue, for: 4m",
		before: "- {at: 1m, apply: queued.yaml}\n- {at: 2m, number: {from: queue, value: 600}}\n",
		after:  "- {at: 4m, number: {from: queue, value: 900}}\n",
		shows:  `(?m)^00:07.* AUTO-1 .*size 6 -> 9`,
	},
	// Orders.
	"replace": {event: "slot: 1", shows: `REC-16 web-1-\w+web: replacement .* requested`},
	"restart": {event: "", shows: `restarting its machine: ordered`},
	"drain":   {event: "count: 2", shows: `(?s)ordered to be drained.*ordered to be drained`},
	"drained": {
		event:  "group: api",
		before: "- {at: 1m, apply: other.yaml}\n- {at: 1m, stuck_hooks: 100%}\n- {at: 2m, drain: {group: api}}\n",
		shows:  `(?m)^00:03.* api-\d-\w+api: deleting`,
	},
	"delete":  {event: "", shows: `deleting.*ordered by operator`},
	"protect": {event: "from: heal", after: "- {at: 4m, unhealthy: {percent: 100}}\n", shows: `protected`},
	"create":  {event: "group: web", shows: `requested on demand`},
	"retry":   {event: "group: web", shows: `retry`},
	"promote": {
		event: "group: web", before: "- {at: 1m, apply: canary.yaml}\n", shows: `(?s)canaries promoted.*web: is as wanted`,
	},
	"override_storm": {
		event: "group: web", before: "- {at: 2m, lost_leases: {percent: 60}}\n",
		shows: `storm.*(operator|overr)`,
	},
	"adopt":    {event: "", before: "- {at: 1m, extra_machine: {speaks: 10s}}\n", shows: `adopt`},
	"evacuate": {event: "zone: a, for: 5m", shows: `DRAIN-3 .*zone a is evacuated`},
	"hold":     {event: "for: 2m", after: "- {at: 4m, kill: {}}\n", shows: `(?m)^00:05:0\d decision DET-4`},
	"release": {
		event: "", before: "- {at: 1m, hold: {}}\n- {at: 2m, kill: {}}\n",
		shows: `(?m)^00:03.* decision DET-4`,
	},
}

func TestEveryKindDoesWhatItSays(t *testing.T) {
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			x, there := effects[k.Name]
			if !there {
				t.Fatal("no test of it")
			}
			text := func(event string) string {
				return "length: 16m\nevents:\n" + x.before + event + x.after
			}
			with := lines(play(t, text("- {at: 3m, "+k.Name+": {"+x.event+"}}\n")))
			shows := regexp.MustCompile(x.shows)
			if !shows.MatchString(with) {
				t.Errorf("%s is not in\n%s", x.shows, with)
			}
			if without := lines(play(t, text(""))); shows.MatchString(without) {
				t.Errorf("%s is there without it as well:\n%s", x.shows, without)
			}
		})
	}
	if len(effects) != len(Kinds()) {
		t.Errorf("%d kinds are tried, there are %d", len(effects), len(Kinds()))
	}
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	run := func(seed int) string {
		s, err := Read("s.yaml", strings.NewReader(fmt.Sprintf("seed: %d\n%s", seed, DefaultText)), setting())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(s.Play(t.Context(), func(time.Duration) {}))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	one, again := run(5), run(5)
	if one != again {
		t.Error("two runs of a seed differ")
	}
	if one == run(6) {
		t.Error("the runs of two seeds do not differ")
	}
}
