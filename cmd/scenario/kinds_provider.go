package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
)

// providerKinds are failures of zones and providers.
func providerKinds() []Kind {
	return []Kind{
		{"lose_zone", "zone", "All machines of a zone end, and none can be created there.", readLoseZone},
		{"no_capacity", "zone", "No machine can be created.", readNoCapacity},
		{"no_spot", "zone", "No spot machine can be created; those that are there stay.", readNoSpot},
		{
			"provider_fails", "for", "All calls fail.",
			readTrouble("the provider fails", (*sim.World).ProviderFails),
		},
		{
			"provider_throttles", "for", "All calls are throttled.",
			readTrouble("the provider throttles", (*sim.World).ProviderThrottles),
		},
		{
			"provider_slow", "for", "Calls take as long as their time limit, or longer.",
			readTrouble("the provider is slow", (*sim.World).ProviderSlows),
		},
		{"lists_lie", "how", "Lists of the machines are wrong.", readLists},
		{
			"extra_machine", "",
			"A machine of the shard has no record: it was deleted on purpose or, if its agent registers, " +
				"its record was lost.", readExtra,
		},
		{"stuck_hooks", "percent", "Drain hooks never end, from now on.", readHooks},
		{"calm", "", "All faults end: of providers, zones, leases and drain hooks.", readCalm},
	}
}

// zoneField reads the name of a zone.
func (f *fields) zoneField(def, doc string) string {
	name := f.text("zone", "the name of a zone", doc)
	f.asked[len(f.asked)-1].Default = def
	if name != "" && !slices.Contains(f.zones, name) {
		what := suggest.DidYouMean(name, f.zones)
		if what == "" {
			what = ": there are " + strings.Join(f.zones, ", ")
		}
		f.Wrong(f.value["zone"], yamlfile.Join(f.path, "zone"), "there is no zone %s%s", name, what)
	}
	return name
}

// zonesMeant returns the zones of a name: one or, without a name, all.
func (st *stage) zonesMeant(name string) []string {
	if name != "" {
		return []string{name}
	}
	var all []string
	for _, z := range st.sc.Provider.Zones {
		all = append(all, z.Name)
	}
	return all
}

// eachZone calls a function for every zone of a name, in all providers that have it.
func (st *stage) eachZone(name string, do func(provider, zone string)) {
	for _, p := range st.providers {
		for _, z := range st.zonesMeant(name) {
			do(p, z)
		}
	}
}

func readLoseZone(f *fields) (text, time.Duration, func(*stage) string) {
	zone := f.zoneField("the first one", "Which.")
	d := f.lasting("Then machines can be created there again.")
	what := "the first zone"
	if zone != "" {
		what = "zone " + zone
	}
	return says(what + " is lost"), d, func(st *stage) string {
		zone := zone
		if zone == "" {
			zone = st.sc.Provider.Zones[0].Name
		}
		st.eachZone(zone, st.w.LoseZone)
		st.later(d, func() { st.eachZone(zone, st.w.ReturnZone) })
		return "zone " + zone
	}
}

func readNoCapacity(f *fields) (text, time.Duration, func(*stage) string) {
	zone := f.zoneField("all", "Which.")
	d := f.lasting("Then there is capacity again.")
	where := "any zone"
	if zone != "" {
		where = "zone " + zone
	}
	return says("no room in " + where), d, func(st *stage) string {
		return st.without(zone, d, st.w.Fill)
	}
}

func readNoSpot(f *fields) (text, time.Duration, func(*stage) string) {
	zone := f.zoneField("all", "Which.")
	d := f.lasting("Then there are spot machines again.")
	where := "any zone"
	if zone != "" {
		where = "zone " + zone
	}
	return says("no spot machines in " + where), d, func(st *stage) string {
		return st.without(zone, d, st.w.NoSpot)
	}
}

// without takes something from a zone for a while.
func (st *stage) without(zone string, d time.Duration, take func(provider, zone string, gone bool)) string {
	st.eachZone(zone, func(p, z string) { take(p, z, true) })
	st.later(d, func() { st.eachZone(zone, func(p, z string) { take(p, z, false) }) })
	return ""
}

func readTrouble(what string, do func(*sim.World, string, time.Duration)) reader {
	return func(f *fields) (text, time.Duration, func(*stage) string) {
		d := f.length("for", "1m", time.Second, longest, "How long.")
		return says(what), d, func(st *stage) string {
			for _, p := range st.providers {
				do(st.w, p, d)
			}
			return ""
		}
	}
}

func readLists(f *fields) (text, time.Duration, func(*stage) string) {
	var lies []string
	for _, l := range sim.Lies {
		lies = append(lies, string(l))
	}
	how := f.choice("how", string(fake.Empty), "What is wrong with them.", lies...)
	d := f.length("for", "1m", time.Second, longest, "How long.")
	return says("lists of machines are " + how), d, func(st *stage) string {
		for _, p := range st.providers {
			st.w.ListsLie(p, fake.LieKind(how), d)
		}
		return ""
	}
}

func readExtra(f *fields) (text, time.Duration, func(*stage) string) {
	group := f.groupField("")
	zone := f.zoneField("the first one", "Which.")
	speaks := f.length("speaks", "never", time.Second, longest, "Time from its appearance until its agent registers.")
	return says("a machine of " + group + " is there that has no record"), 0, func(st *stage) string {
		g, there := st.w.Group(group)
		if !there {
			return "there is no such group"
		}
		zone := zone
		if zone == "" {
			zone = st.sc.Provider.Zones[0].Name
		}
		st.extras++
		id := fmt.Sprintf("%s-extra-%d", group, st.extras)
		if speaks == 0 {
			st.w.NoteGone(id, g.Name) // without this evidence it would never be removed (REC-8)
		}
		st.w.Plant(g, id, zone, speaks)
		return id
	}
}

func readHooks(f *fields) (text, time.Duration, func(*stage) string) {
	percent := f.percent("percent", "0%", "How many.")
	return says(fmt.Sprintf("%d%% of the drain hooks never end", percent)), 0, func(st *stage) string {
		st.w.StuckHooks(percent)
		return ""
	}
}

func readCalm(*fields) (text, time.Duration, func(*stage) string) {
	return says("all troubles end"), 0, func(st *stage) string {
		st.w.Calm()
		return ""
	}
}
