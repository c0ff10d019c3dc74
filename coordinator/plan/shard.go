package plan

import (
	"fmt"
	"maps"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// planShard decides what concerns no group alone: orders for the shard, orders that concern nothing
// we know, and extra machines.
func planShard(s *Snapshot, now time.Time) (actions []Action, next time.Time) {
	for _, r := range s.Orders {
		a := planOrder(s, r, now)
		actions = append(actions, a)
		if len(a.Writes) > 1 {
			break // it writes the shard's record: the others are decided on the next cache
		}
	}
	for _, r := range s.Lost {
		why := "there is no such group or instance"
		if r.Record.Kind == store.RequestAdopt {
			why = "no machine of this name is known to be extra, or its tag names no group"
		}
		actions = append(actions, refuse(r, why))
	}
	if s.Shard.Record.Hold != nil || s.Stale != "" || !s.Shard.Present() {
		return actions, time.Time{}
	}
	if hold, ok := holdForExtras(s, now); ok {
		return append(actions, hold), time.Time{}
	}
	extras, next := planExtras(s, now)
	return append(actions, extras...), next
}

// planOrder carries an order for the whole shard out, in the shard's record: so it stands for every
// leader (DRAIN-3).
func planOrder(s *Snapshot, r store.Versioned[store.Request], now time.Time) Action {
	zone, rec := r.Record.Zone, s.Shard.Record
	_, evacuated := rec.Evacuated[zone]
	rec.Evacuated = maps.Clone(rec.Evacuated)
	a := Action{
		Rule: "DRAIN-3", Why: reason.Short(orderedBy(r.Record.By)), Cause: orderedBy(r.Record.By),
		Evidence:       []string{"request " + r.Record.ID},
		Counterfactual: counterfactual("REC-16", ""),
	}
	switch {
	case !s.Shard.Present():
		return refuse(r, "the shard's record is missing")
	case zone == "":
		return refuse(r, "it names no zone")
	case r.Record.Kind == store.RequestEvacuate && !evacuated:
		if rec.Evacuated == nil {
			rec.Evacuated = map[string]store.Evacuation{}
		}
		rec.Evacuated[zone] = store.Evacuation{By: r.Record.By, At: now.UTC()}
		a.What = "zone " + zone + " is evacuated"
	case r.Record.Kind == store.RequestReturn && evacuated:
		delete(rec.Evacuated, zone)
		a.What = "zone " + zone + " may be used again"
	case r.Record.Kind == store.RequestEvacuate:
		return refuse(r, "zone "+zone+" is being evacuated already, by "+rec.Evacuated[zone].By)
	case r.Record.Kind == store.RequestReturn:
		return refuse(r, "zone "+zone+" is not evacuated")
	default:
		return refuse(r, fmt.Sprintf("this version knows no order %q for a shard", r.Record.Kind))
	}
	a.Conditions = []store.Condition{s.Shard.Unchanged(), r.Unchanged()}
	a.Writes = []store.Write{store.Put(s.Shard.Key, store.Encode(rec)), store.Delete(r.Key)}
	return a
}
