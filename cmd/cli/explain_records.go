package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// recordsOf reads everything that the planner needs for a group, at one revision: its own records,
// and the shard's. Instances are named after their group, except machines adopted under another
// name: those are looked for if the group has more than were found by name.
func (inv *Invocation) recordsOf(ctx context.Context, group string) (store.Listing, error) {
	all, err := inv.recordsNamed(ctx, group)
	if err == nil && cache.FromListing(inv.keys(), all).Uncounted(group, 0) > 0 {
		err = inv.addAdopted(ctx, group, &all)
	}
	return all, err
}

// addAdopted adds the records of a group's instances that have another name than the group, and the
// notes of those that were deleted.
func (inv *Invocation) addAdopted(ctx context.Context, group string, all *store.Listing) error {
	keys := inv.keys()
	instances, err := inv.list(ctx, keys.Of(store.KindInstances), all.Revision)
	if err != nil {
		return err
	}
	notes, err := inv.list(ctx, keys.Gone(keys.Of(store.KindInstances)), all.Revision)
	if err != nil {
		return err
	}
	for _, kv := range notes.KVs {
		if v, err := store.Decode[store.Gone](kv); err == nil && v.Record.Group == group &&
			!strings.HasPrefix(v.Record.Instance, group+"-") {
			all.KVs = append(all.KVs, kv)
		}
	}
	for _, kv := range instances.KVs {
		_, id, _ := keys.Split(kv.Key)
		v, err := store.Decode[store.Instance](kv)
		if err != nil || v.Record.Group != group || strings.HasPrefix(id, group+"-") {
			continue
		}
		all.KVs = append(all.KVs, kv)
		for _, key := range []string{keys.Alive(id), keys.Report(id)} {
			l, err := inv.list(ctx, key, all.Revision)
			if err != nil {
				return err
			}
			for _, kv := range l.KVs {
				if kv.Key == key {
					all.KVs = append(all.KVs, kv)
				}
			}
		}
	}
	return nil
}

func (inv *Invocation) recordsNamed(ctx context.Context, group string) (store.Listing, error) {
	keys := inv.keys()
	var all store.Listing
	for _, prefix := range []string{
		keys.Shard(), keys.Served(), keys.Of(store.KindLeader), keys.Of(store.KindReplicas),
		keys.Of(store.KindRequests),
		keys.Group(group), keys.Static(group), keys.Status(group), keys.Of(store.KindSlots) + group + "/",
		keys.Of(store.KindInstances) + group + "-", keys.Of(store.KindAlive) + group + "-",
		keys.Of(store.KindReports) + group + "-",
		keys.Gone(keys.Of(store.KindInstances) + group + "-"), // without these, what was deleted would seem lost
	} {
		l, err := inv.list(ctx, prefix, all.Revision)
		if err != nil {
			return all, err
		}
		all.Revision = l.Revision
		exact := !strings.HasSuffix(prefix, "/") && !strings.HasSuffix(prefix, "-")
		for _, kv := range l.KVs {
			if !exact || kv.Key == prefix { // another group's name may begin with this one
				all.KVs = append(all.KVs, kv)
			}
		}
	}
	return all, nil
}

// scene is a group as stored at one revision, and what the planner would do next.
type scene struct {
	now     time.Time
	group   string
	content *cache.Content
	world   *foresee.World
	plan    plan.Plan
}

func (inv *Invocation) scene(ctx context.Context, group string) (*scene, error) {
	listing, err := inv.recordsOf(ctx, group)
	if err != nil {
		return nil, err
	}
	now := inv.env.Now()
	world, err := inv.foresee(ctx, group, listing, nil)
	if err != nil {
		return nil, err
	}
	return &scene{
		now: now, group: group, content: cache.FromListing(inv.keys(), listing), world: world,
		plan: world.Plan(),
	}, nil
}

func (sc *scene) leads() bool { return len(sc.content.Leaders) > 0 }

func (sc *scene) status() store.Status { return sc.content.Status[sc.group].Record }

// cacheLine returns how the scene was read.
func (sc *scene) cacheLine() string {
	return fmt.Sprintf("state: etcd at %s, rev %d", story.Clock(sc.now, sc.now), sc.content.Revision)
}

// evacuation reports that an instance is in a zone under evacuation; "" if it is not.
func (sc *scene) evacuation(i store.Instance) string {
	e, ok := sc.content.Shard.Record.Evacuated[i.Zone]
	if !ok || i.Doomed != nil {
		return ""
	}
	return fmt.Sprintf("zone %s is evacuated by %s since %s", i.Zone, e.By, story.Clock(e.At, sc.now))
}

// standstill returns why nothing is decided, however much time passes; "" if something is.
func (sc *scene) standstill() string {
	switch spec, known := sc.world.Spec(); {
	case !sc.leads():
		return "when a coordinator is running; none is"
	case sc.content.Shard.Record.Hold != nil:
		return "when the shard's hold is released; until then it is only observed (SAFE-12)"
	case known && spec.Paused:
		return "when the group is resumed; until then it is only observed (REC-13)"
	default:
		return ""
	}
}

// slots returns the group's slots, in order of number.
func (sc *scene) slots() []store.Versioned[store.Slot] {
	var all []store.Versioned[store.Slot]
	for _, v := range sc.content.Slots[sc.group] {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b store.Versioned[store.Slot]) int { return a.Record.Number - b.Record.Number })
	return all
}

// instances returns the group's instances, in order of ID.
func (sc *scene) instances() []store.Instance {
	var all []store.Instance
	for _, id := range sc.content.ByGroup[sc.group] {
		all = append(all, sc.content.Instances[id].Record)
	}
	return all
}

// holder returns the other instance that has a slot, or is about to take it; "" if none.
func (sc *scene) holder(slot int, beside string) (best store.Instance, found bool) {
	for _, i := range sc.instances() {
		if i.Managed && i.Slot == slot && i.ID != beside && i.Phase.Fills() &&
			(!found || i.Created.After(best.Created)) {
			best, found = i, true
		}
	}
	return best, found
}

// held returns what the planner would block now and the leader has not recorded: it is computed
// here.
func (sc *scene) held(concerns func(store.Blocked) bool) []store.Blocked {
	var all []store.Blocked
	for _, b := range sc.plan.Held[sc.group] {
		known := slices.ContainsFunc(sc.status().Blocked,
			func(o store.Blocked) bool { return reason.Same(&o, &b) })
		if !known && concerns(b) {
			all = append(all, b)
		}
	}
	return all
}

// blocked returns what the leader has recorded as blocked.
func (sc *scene) blocked(concerns func(store.Blocked) bool) []store.Blocked {
	all := []store.Blocked{}
	for _, b := range sc.status().Blocked {
		if concerns(b) {
			all = append(all, b)
		}
	}
	return all
}
