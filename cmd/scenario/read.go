package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"go.yaml.in/yaml/v4"
)

// The bounds of a scenario.
const (
	maxEvents = 1000
	maxLength = 7 * 24 * time.Hour
)

// Setting is the context of a scenario.
type Setting struct {
	Groups []store.Group // groups that exist from the beginning
	// File reads the groups in a file that an event applies, by its name in the scenario.
	File func(name string) ([]store.Group, error)
}

// Read reads a scenario. The name is for messages only. If the scenario is invalid, the error is
// yamlfile.Problems.
func Read(name string, from io.Reader, setting Setting) (*Scenario, error) {
	r := &reading{Reader: yamlfile.Reader{File: name}, setting: setting}
	roots, err := r.Documents(from, 1, "a second document: a scenario is one document")
	if err != nil {
		return nil, err
	}
	if len(r.Problems) > 0 {
		return nil, r.Problems
	}
	var root *yaml.Node // of an empty file there is none
	if len(roots) > 0 {
		root = roots[0]
	}
	s := r.scenario(root)
	if len(r.Problems)+len(r.applied) > 0 {
		return nil, append(r.Problems.Sorted(), r.applied...)
	}
	return s, nil
}

func (r *reading) scenario(root *yaml.Node) *Scenario {
	f := r.mapping("", root, "")
	s := &Scenario{groups: r.setting.Groups}
	list := f.value["events"]
	s.providers = r.learn(list)
	s.sources, s.all = r.sources, r.groups
	s.Seed = uint64(f.number("seed", 1, 0, 1<<53, "Seed of the random numbers: the same seed gives the same run."))
	s.Length = f.length("length", "1h", time.Second, maxLength, "How much time is simulated.")
	r.provider(f, s)
	r.shard(f, s)
	r.expect(f, s)
	f.ask("events", "none", "a list", "What happens, and when: see below.")
	r.events(list, s)
	f.done()
	return s
}

// learn finds all groups, including groups in files that events apply, and returns their providers.
func (r *reading) learn(list *yaml.Node) (providers []string) {
	know := func(groups []store.Group) {
		r.groups = append(r.groups, groups...)
		for _, g := range groups {
			if !slices.Contains(r.known, g.Name) {
				r.known = append(r.known, g.Name)
			}
			if !slices.Contains(providers, g.Provider) {
				providers = append(providers, g.Provider)
			}
			for _, name := range g.Sources() {
				if !slices.Contains(r.sources, name) {
					r.sources = append(r.sources, name)
				}
			}
		}
	}
	know(r.setting.Groups)
	if yamlfile.IsNothing(list) || list.Kind != yaml.SequenceNode {
		return providers
	}
	quiet := &reading{setting: r.setting}
	for _, item := range list.Content {
		f := quiet.mapping("", item, "")
		apply := f.value[applies]
		if yamlfile.IsNothing(apply) {
			continue
		}
		// otherwise it is reported when the event is read
		if groups, err := r.setting.File(quiet.mapping("", apply, "file").text("file", "", "")); err == nil {
			know(groups)
		}
	}
	return providers
}

func (r *reading) provider(f *fields, s *Scenario) {
	p := r.mapping("provider", f.ask("provider", "", "fields", "The provider of the machines."), "")
	s.Provider.Zones = r.readZones(p)
	s.Provider.Joins = p.span("boot", "20s..40s", "Time from the creation of a machine until its agent registers.",
		time.Hour)
	if s.Provider.Joins == (fake.Range{}) {
		s.Provider.Joins = fake.Between(20*time.Second, 40*time.Second)
	}
	s.Provider.Call = p.span("call", "200ms..2s", "Duration of a call.", 5*time.Minute)
	s.Provider.List = p.span("list", "50ms..300ms", "Duration of a list of the machines.", 5*time.Minute)
	s.Provider.CallTimeout = p.length("call_timeout", "30s", time.Second, time.Hour,
		"Time limit of a call.")
	s.Provider.Consistency = p.length("unlisted", "0s", 0, time.Hour,
		"How long a new machine may be missing from lists, and a deleted one still be listed.")
	s.Provider.Fails = p.percent("call_fails", "0%",
		"Share of calls that fail, some of them after they took effect.")
	s.Provider.NeverBoots = p.percent("create_fails", "0%", "Share of new machines that never come up.")
	s.Provider.Throttled = p.percent("throttled", "0%", "Share of calls that are throttled.")
	s.Provider.ListFails = p.percent("list_fails", "0%", "Share of lists that fail.")
	p.done()
}

// readZones returns the zones of the file or, if it has none, those that the groups name, or two.
func (r *reading) readZones(p *fields) []fake.Zone {
	const allowed = "zones with the number of machines for which each has room (0: any number), like {a: 10, b: 10}"
	n := p.ask("zones", "the groups', else {a: 0, b: 0}", "names with a number each",
		"The zones, and how many machines each has room for; 0: any number.")
	if n == nil {
		zones := zonesOf(r.groups)
		for _, z := range zones {
			r.zones = append(r.zones, z.Name)
		}
		return zones
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.refuse("zones", n, allowed)
		return nil
	}
	m := r.mapping("provider.zones", n, "")
	var zones []fake.Zone
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		zones = append(zones, fake.Zone{Name: name, Room: m.number(name, 0, 0, store.MaxSize, "")})
		r.zones = append(r.zones, name)
	}
	for _, g := range r.groups {
		for _, z := range g.Template.Zones {
			if !slices.Contains(r.zones, z) {
				r.Wrong(n, "provider.zones", "group %s wants zone %s, which is not among %s", g.Name, z,
					strings.Join(r.zones, ", "))
			}
		}
	}
	return zones
}

func zonesOf(groups []store.Group) (zones []fake.Zone) {
	var names []string
	for _, g := range groups {
		names = append(names, g.Template.Zones...)
	}
	if len(names) == 0 {
		names = []string{"a", "b"}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		zones = append(zones, fake.Zone{Name: name})
	}
	return zones
}

func (r *reading) shard(f *fields, s *Scenario) {
	at := f.ask("shard", "", "fields", "The settings of the shard.")
	m := r.mapping("shard", at, "")
	d := store.DefaultShardSettings()
	s.Settings = d
	s.Replicas = m.number("replicas", 2, 1, 5, "Number of coordinators.")
	s.Session = m.length("session", "3s", time.Second, time.Hour,
		"Session TTL: a dead coordinator is replaced after this time.")
	for _, x := range []struct {
		name string
		set  *store.Duration
		low  time.Duration
		doc  string
	}{
		{"provider_poll", &s.Settings.ProviderPoll, time.Second, "Interval between lists of the machines."},
		{"orphan_grace", &s.Settings.OrphanGrace, time.Second, "How long a machine without a record is left alone."},
		{
			"reconnect_max", &s.Settings.ReconnectMax, time.Second,
			"Longest time that an agent waits before it reconnects.",
		},
		{
			"eligible_age", &s.Settings.EligibleAge, 0,
			"Age at which instances are replaced while the group is healthy; 0: never.",
		},
		{"forced_age", &s.Settings.ForcedAge, 0, "When they are replaced in any case; 0: never."},
	} {
		*x.set = store.Duration(m.length(x.name, words(x.set.D()), x.low, longest, x.doc))
	}
	s.Settings.CreateRate = float64(m.number("create_rate", int(d.CreateRate), 1, 1000,
		"Machines created per second."))
	m.done()
	for _, one := range s.Settings.Wrong() { // a coordinator would refuse this (REC-20)
		r.Wrong(at, "shard."+one.Path, "%s: must be %s", one.Value, one.Allowed)
	}
}

func (r *reading) events(list *yaml.Node, s *Scenario) {
	switch {
	case yamlfile.IsNothing(list):
		return
	case list.Kind != yaml.SequenceNode:
		r.Wrong(list, "events", "%s: must be a list of events like - {at: 5m, kill: {count: 2}}", yamlfile.Shown(list))
		return
	case len(list.Content) > maxEvents:
		r.Wrong(list, "events", "there are %d, and at most %d are played", len(list.Content), maxEvents)
		return
	}
	for i, item := range list.Content {
		if e, ok := r.event(fmt.Sprintf("events[%d]", i), item, s); ok {
			s.Events = append(s.Events, e)
		}
	}
	slices.SortStableFunc(s.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
}

// event reads one event: a time, and one kind with its fields.
func (r *reading) event(path string, item *yaml.Node, s *Scenario) (e Event, ok bool) {
	if item.Kind != yaml.MappingNode {
		r.Wrong(item, path, "%s: must be an event like {at: 5m, kill: {count: 2}}", yamlfile.Shown(item))
		return e, false
	}
	f := r.mapping(path, item, "")
	before := len(r.Problems)
	e.At = f.length("at", "", 0, maxLength, "")
	if !f.has("at") {
		f.missing("at", lengths)
	} else if len(r.Problems) == before && e.At >= s.Length {
		f.Wrong(f.value["at"], path+".at", "%s: must be before the scenario ends, at %s (length)", words(e.At),
			words(s.Length))
	}
	var found []string
	for i := 0; i < len(item.Content); i += 2 {
		key := item.Content[i]
		if key.Value == "at" || f.keys[key.Value] != key {
			continue
		}
		k := kindOf(key.Value)
		if k == nil {
			what := suggest.DidYouMean(key.Value, KindNames())
			if what == "" {
				what = ": docs/simulate.md lists the kinds"
			}
			r.Wrong(key, yamlfile.Join(path, key.Value), "unknown event%s", what)
			return e, false
		}
		if found = append(found, k.Name); len(found) > 1 {
			r.Wrong(key, yamlfile.Join(path, key.Value), "an event has one kind, and this one already is %s", found[0])
			return e, false
		}
		m := r.mapping(yamlfile.Join(path, k.Name), f.value[k.Name], k.Short)
		if m.node == nil || yamlfile.IsNothing(m.node) {
			m.node = key // the position of what is missing
		}
		e.Kind = k.Name
		e.what, e.For, e.play = k.read(m)
		m.done()
	}
	if len(found) == 0 && len(r.Problems) == before {
		r.Wrong(item, path, "the event has no kind: docs/simulate.md lists them")
	}
	return e, len(r.Problems) == before
}

// refusedFile reports the problems of a file that an event applies.
func (f *fields) refusedFile(name string, err error) {
	var problems yamlfile.Problems
	if errors.As(err, &problems) {
		f.applied = append(f.applied, problems...)
		return
	}
	f.Wrong(f.value["file"], yamlfile.Join(f.path, "file"), "%s: %s", name, err)
}
