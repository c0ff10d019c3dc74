package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

func TestErrorsNameTheirPosition(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"sed: 7", "sed: unknown field: did you mean seed? (s.yaml:1:1)"},
		{"seed: x", `seed: "x": must be a whole number, 0 to 9007199254740992 (s.yaml:1:7)`},
		{"length: 5", "length: 5: must be a length of time like 90s, 10m or 1h30m, 1s to 168h (s.yaml:1:9)"},
		{
			"provider: {boot: 40s..20s}",
			`provider.boot: "40s..20s": must be a length of time, or two with .. between: 30s or 20s..40s, at most 1h (s.yaml:1:18)`,
		},
		{"provider: {create_fails: 101%}", `provider.create_fails: "101%": must be 0% to 100% (s.yaml:1:26)`},
		{"provider: {zones: {a: 3}}", "provider.zones: group web wants zone b, which is not among a (s.yaml:1:19)"},
		{
			"provider: {zones: [a, b]}",
			"provider.zones: a list: must be zones with the number of machines for which each has room (0: any number), " +
				"like {a: 10, b: 10} (s.yaml:1:19)",
		},
		{"provider: [a]", "provider: a list: must have fields, like name: value (s.yaml:1:11)"},
		{"shard: {replicas: 9}", "shard.replicas: 9: must be a whole number, 1 to 5 (s.yaml:1:19)"},
		{
			"shard: {eligible_age: 2h, forced_age: 1h}",
			"shard.eligible_age: 2h0m0s: must be 0s, or 1m0s to 87600h0m0s, and at most forced_age (1h0m0s) (s.yaml:1:8)",
		},
		{"events: {}", "events: fields: must be a list of events like - {at: 5m, kill: {count: 2}} (s.yaml:1:9)"},
		{"events: [7]", "events[0]: 7: must be an event like {at: 5m, kill: {count: 2}} (s.yaml:1:10)"},
		{"events: [{at: 5m}]", "events[0]: the event has no kind: docs/simulate.md lists them (s.yaml:1:10)"},
		{
			"events: [{kill: {}}]",
			"events[0].at: missing: must be a length of time like 90s, 10m or 1h30m (s.yaml:1:10)",
		},
		{
			"events: [{at: 60m, kill: {}}]",
			`events[0].at: 1h: must be before the scenario ends, at 1h (length) (s.yaml:1:15)`,
		},
		{"events: [{at: 5m, kil: {}}]", "events[0].kil: unknown event: did you mean kill? (s.yaml:1:19)"},
		{
			"events: [{at: 5m, xyzzy: {}}]",
			"events[0].xyzzy: unknown event: docs/simulate.md lists the kinds (s.yaml:1:19)",
		},
		{
			"events: [{at: 5m, kill: {}, hold: {}}]",
			"events[0].hold: an event has one kind, and this one already is kill (s.yaml:1:29)",
		},
		{"events: [{at: 5m, kill: 2}]", "events[0].kill: 2: must have fields, like name: value (s.yaml:1:25)"},
		{
			"events: [{at: 5m, kill: {cuont: 2}}]",
			"events[0].kill.cuont: unknown field: did you mean count? (s.yaml:1:26)",
		},
		{
			"events: [{at: 5m, kill: {count: 2, percent: 5}}]",
			"events[0].kill.percent: give count or percent, not both (s.yaml:1:36)",
		},
		{
			"events: [{at: 5m, kill: {group: wob}}]",
			"events[0].kill.group: there is no group wob: did you mean web? (s.yaml:1:33)",
		},
		{
			"events: [{at: 5m, kill: {zone: z}}]",
			"events[0].kill.zone: there is no zone z: there are a, b (s.yaml:1:32)",
		},
		{
			"events: [{at: 5m, scale: {group: web}}]",
			"events[0].scale.size: missing: must be a whole number, 0 to 100000 (s.yaml:1:26)",
		},
		{
			"events: [{at: 5m, calm: {now: true}}]",
			"events[0].calm.now: unknown field: no fields are allowed here (s.yaml:1:26)",
		},
		{"events: [{at: 5m, apply: gone.yaml}]", "events[0].apply.file: gone.yaml: no such file (s.yaml:1:26)"},
		{
			"events: [{at: 5m, apply: {}}]",
			"events[0].apply.file: missing: must be the path of a group file (s.yaml:1:26)",
		},
		{"events: [{at: 5m, apply: wrong.yaml}]", "size: -1: must be 0 to 100000 (wrong.yaml:2:7)"},
		{
			"events: [{at: 5m, goodbye: {says: bye}}]",
			`events[0].goodbye.says: "bye": must be restart, shutdown, moving or evacuating (s.yaml:1:35)`,
		},
		{
			"events: [{at: 5m, apply: other.yaml}, {at: 6m, pause: {}}]",
			"events[1].pause.group: missing: must be the name of a group: there are web, api (s.yaml:1:55)",
		},
		{"expect: {storm: 1}", "expect.storm: unknown field: did you mean storms? (s.yaml:1:10)"},
		{"expect: {converged: 1}", "expect.converged: 1: must be true or false (s.yaml:1:21)"},
		{"seed: 1\nseed: 2", "seed: is a duplicate (first at line 1) (s.yaml:2:1)"},
		{"seed: &s 1\nlength: *s", "length: aliases and merge keys are not supported (s.yaml:2:9)"},
		{"a: [", "not YAML: "},
		{"seed: 1\n---\nseed: 2", "a second document: a scenario is one document (s.yaml:3:1)"},
		{strings.Repeat("#", yamlfile.MaxBytes+1), "the file is larger than 1024 KiB (s.yaml)"},
		{
			"events: [" + strings.Repeat("{},", maxEvents+1) + "]",
			"events: there are 1001, and at most 1000 are played (s.yaml:1:9)",
		},
	} {
		s := setting()
		known := s.File
		s.File = func(name string) ([]store.Group, error) {
			if name == "wrong.yaml" {
				return groupfile.Read(name, strings.NewReader("name: web\nsize: -1\nprovider: cloud\n"))
			}
			return known(name)
		}
		_, err := Read("s.yaml", strings.NewReader(c.text), s)
		var problems yamlfile.Problems
		if !errors.As(err, &problems) || len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), c.want) {
			t.Errorf("%.60s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestErrorsAreInTheOrderOfTheFile(t *testing.T) {
	_, err := Read("s.yaml", strings.NewReader("events:\n- {at: 1m, kill: {cont: 1}}\nsed: 1\nlength: x\n"), setting())
	got := fmt.Sprint(err)
	want := "events[0].kill.cont: unknown field: did you mean count? (s.yaml:2:19)\nsed: " +
		"unknown field: did you mean seed? (s.yaml:3:1)\n" +
		`length: "x": must be a length of time like 90s, 10m or 1h30m, 1s to 168h (s.yaml:4:9)`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatAScenarioSays(t *testing.T) {
	s := readIt(t, `
seed: 7
length: 30m
provider: {zones: {a: 10, b: 0}, boot: 20s..40s, call: 1s, unlisted: 3s, create_fails: 2%, call_fails: 1, call_timeout: 10s}
shard: {replicas: 3, session: 10s, provider_poll: 2s}
events:
- {at: 20m, scale: {group: web, size: 12}}
- at: 5m
  lose_zone: {zone: a, for: 10m}
expect: {worst_availability: 80%, machines_created: 40, converged_within: 10m, converged: false}
`)
	if s.Seed != 7 || s.Length != 30*time.Minute || s.Replicas != 3 || s.Session != 10*time.Second ||
		s.Settings.ProviderPoll.D() != 2*time.Second {
		t.Errorf("got %+v", s)
	}
	want := sim.Provider{
		Config: fake.Config{
			Zones: []fake.Zone{{Name: "a", Room: 10}, {Name: "b"}}, Call: fake.Exactly(time.Second),
			Consistency: 3 * time.Second, CallTimeout: 10 * time.Second, Fails: 1,
		},
		Joins: fake.Between(20*time.Second, 40*time.Second), NeverBoots: 2,
	}
	if !reflect.DeepEqual(s.Provider, want) {
		t.Errorf("provider: got  %+v\nwant %+v", s.Provider, want)
	}
	if len(s.Events) != 2 || s.Events[0].Kind != "lose_zone" || s.Events[0].For != 10*time.Minute ||
		s.Events[1].what.String() != "web is scaled to 12" {
		t.Errorf("events: got %+v", s.Events)
	}
	x := s.Expect
	if *x.Availability != 80 || *x.Created != 40 || *x.Converged != 10*time.Minute || x.Whole || x.Storms != nil ||
		x.Serving != nil || x.AtOnce != nil {
		t.Errorf("expectations: got %+v", x)
	}
}

func TestAnEmptyScenarioIsOne(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}", "events:\n"} {
		s := readIt(t, text)
		if s.Seed != 1 || s.Length != time.Hour || len(s.Events) != 0 || !s.Expect.Whole || len(s.Provider.Zones) != 2 {
			t.Errorf("%q: got %+v", text, s)
		}
	}
}

func TestZonesAreThoseOfTheGroups(t *testing.T) {
	s := readIt(t, "events: [{at: 5m, kill: {zone: b}}]")
	if got := s.Provider.Zones; !slices.Equal(got, []fake.Zone{{Name: "a"}, {Name: "b"}}) {
		t.Errorf("got %v", got)
	}
}

// For any file, reading ends with a scenario or with errors.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		DefaultText, "", "a: [", "events: [{at: 5m, kill: {count: 2}}]", "seed: &a [*a]",
		"? {a: b}\n: c", "<<: {seed: 1}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read("s.yaml", strings.NewReader(text), setting())
		if (s == nil) == (err == nil) {
			t.Errorf("got %v and %v", s, err)
		}
	})
}
