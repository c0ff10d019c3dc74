package scenario

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// orderKinds are the orders that operators give to the leader.
func orderKinds() []Kind {
	return []Kind{
		{"replace", "", "Orders instances to be replaced.", readOrder(store.RequestReplace, "replaced", present)},
		{
			"restart", "", "Orders machines to be restarted in place.",
			readOrder(store.RequestRestart, "restarted", present),
		},
		{"drain", "", "Orders instances to be drained and removed.", readOrder(store.RequestDrain, "drained", present)},
		{
			"drained", "", "Declares that instances have finished draining.",
			readOrder(store.RequestDrained, "declared drained", draining),
		},
		{"delete", "", "Orders instances to be removed now.", readOrder(store.RequestDelete, "deleted", present)},
		{"protect", "", "Orders instances to be protected.", readProtect},
		{
			"create", "group", "Orders an instance on demand.",
			readGroupOrder(store.RequestCreate, "an instance on demand is wanted of"),
		},
		{
			"retry", "group", "Orders a retry of slots that are backing off or were given up.",
			readGroupOrder(store.RequestRetry, "all slots are to be retried of"),
		},
		{
			"promote", "group", "Orders a roll to go on after its canaries.",
			readGroupOrder(store.RequestPromote, "the canaries are promoted of"),
		},
		{
			"override_storm", "group", "Orders the end of a storm.",
			readGroupOrder(store.RequestOverrideStorm, "the storm is declared over of"),
		},
		{"adopt", "", "Orders the adoption of a machine that has no record.", readAdopt},
		{"evacuate", "zone", "Orders the evacuation of a zone.", readEvacuate},
		{"hold", "for", "The shard is on hold: nothing is created or deleted.", readHold},
		{"release", "", "The hold ends.", readRelease},
	}
}

func readOrder(kind store.RequestKind, done string, fit func(store.Instance) bool) reader {
	return func(f *fields) (text, time.Duration, func(*stage) string) {
		t := f.target("instance", "instances")
		return text{before: "order: ", target: &t, after: " to be " + done}, 0, func(st *stage) string {
			return st.each(t, fit, func(id string) { st.w.Order(store.Request{Kind: kind, Instance: id}) })
		}
	}
}

func readProtect(f *fields) (text, time.Duration, func(*stage) string) {
	t := f.target("instance", "instances")
	mode := f.choice("from", store.ProtectRemoval, "From what; off ends it.", store.ProtectRemoval, store.ProtectHeal,
		store.ProtectOff)
	return text{before: "order: ", target: &t, after: " to be protected (" + mode + ")"}, 0, func(st *stage) string {
		return st.each(t, present, func(id string) {
			st.w.Order(store.Request{Kind: store.RequestProtect, Instance: id, Mode: mode})
		})
	}
}

func readGroupOrder(kind store.RequestKind, what string) reader {
	return func(f *fields) (text, time.Duration, func(*stage) string) {
		group := f.groupField("")
		return says("order: " + what + " " + group), 0, func(st *stage) string {
			st.w.Order(store.Request{Kind: kind, Group: group})
			return ""
		}
	}
}

func readAdopt(*fields) (text, time.Duration, func(*stage) string) {
	return says("order: a machine without a record to be adopted"), 0, func(st *stage) string {
		for _, id := range st.w.Machines() {
			if !st.w.Instance(id).Present() {
				st.w.Order(store.Request{Kind: store.RequestAdopt, Instance: id})
				return id
			}
		}
		return "there is none"
	}
}

func readEvacuate(f *fields) (text, time.Duration, func(*stage) string) {
	zone := f.zoneField("the first one", "Which.")
	d := f.lasting("Then it may be used again.")
	what := "the first zone"
	if zone != "" {
		what = "zone " + zone
	}
	return says("order: " + what + " to be evacuated"), d, func(st *stage) string {
		zone := zone
		if zone == "" {
			zone = st.sc.Provider.Zones[0].Name
		}
		st.w.Order(store.Request{Kind: store.RequestEvacuate, Zone: zone})
		st.later(d, func() { st.w.Order(store.Request{Kind: store.RequestReturn, Zone: zone}) })
		return "zone " + zone
	}
}

func readHold(f *fields) (text, time.Duration, func(*stage) string) {
	d := f.lasting("Then it is released.")
	return says("the shard is on hold"), d, func(st *stage) string {
		st.w.Hold()
		st.later(d, st.w.Release)
		return ""
	}
}

func readRelease(*fields) (text, time.Duration, func(*stage) string) {
	return says("the shard is released"), 0, func(st *stage) string {
		st.w.Release()
		return ""
	}
}
