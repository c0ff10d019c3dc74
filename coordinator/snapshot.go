package coordinator

import (
	"fmt"
	"maps"
	"sort"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/picture"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// snapshot puts together what the planner needs for some groups. The caller holds the content; times are added from the evidence.
func (t *tenure) snapshot(c *picture.Content, groups []string) plan.Snapshot {
	e := t.evidence
	e.mu.Lock()
	defer e.mu.Unlock()
	s := plan.Snapshot{
		Keys: t.r.keys, Revision: c.Revision, Seed: t.seed, Shard: c.Shard, Stale: t.stale(c),
		GraceEnd: e.graceEnd, GraceWhy: e.graceWhy, SessionTTL: t.r.cfg.SessionTTL, Zones: map[string][]string{},
	}
	for name, caps := range e.capabilities {
		s.Zones[name] = caps.Zones
	}
	s.Full = map[string]map[string]time.Time{}
	for name, zones := range e.full {
		s.Full[name] = maps.Clone(zones)
	}
	byGroup := map[string][]store.Versioned[store.Request]{}
	for _, id := range sorted(c.Requests) {
		r := c.Requests[id]
		switch in, ok := c.Instances[r.Record.Instance]; {
		case ok:
			byGroup[in.Record.Group] = append(byGroup[in.Record.Group], r)
		case c.Unreadable[t.r.keys.Instance(r.Record.Instance)] != "":
			// There may be such an instance: the order waits for a program that can read its record.
		default:
			s.Lost = append(s.Lost, r)
		}
	}
	for _, name := range groups {
		if name == "" {
			for _, id := range sorted(e.extras) {
				s.Extras = append(s.Extras, e.extras[id])
			}
			continue
		}
		s.Groups = append(s.Groups, t.group(c, name, byGroup[name]))
	}
	return s
}

// stale says why the picture may not be used to destroy; "" if it may.
func (t *tenure) stale(c *picture.Content) string {
	if !c.Shard.Present() {
		return "the shard's record is missing"
	}
	if len(c.Unreadable) == 0 {
		return ""
	}
	for _, key := range sorted(c.Unreadable) {
		kind, _, _ := t.r.keys.Split(key)
		switch kind {
		case store.KindShard, store.KindInstances, store.KindAlive: // of a group we may not know
			return c.Unreadable[key]
		}
	}
	return ""
}

func (t *tenure) group(c *picture.Content, name string, requests []store.Versioned[store.Request]) plan.Group {
	e := t.evidence
	g := plan.Group{Name: name, Spec: t.spec(c, name), Requests: requests, SlotRetry: map[int]time.Time{}}
	g.Unreadable = unreadable(c, t.r.keys, name)
	g.Status = c.Status[name]
	g.Status.Key = t.r.keys.Status(name)
	var numbers []int
	for n := range c.Slots[name] {
		numbers = append(numbers, n)
	}
	sort.Ints(numbers)
	for _, n := range numbers {
		g.Slots = append(g.Slots, c.Slots[name][n])
		if r, ok := e.retries[fmt.Sprintf("%s/%d", name, n)]; ok {
			g.SlotRetry[n] = r.at
		}
	}
	for _, id := range sorted(c.ByGroup[name]) {
		in := plan.Instance{Versioned: c.Instances[id], Alive: c.Alive[id], Report: c.Reports[id]}
		in.Alive.Key, in.Report.Key = t.r.keys.Alive(id), t.r.keys.Report(id)
		if w := e.instances[id]; w != nil {
			in.PhaseStart, in.AliveGone, in.LastState, in.Sighting, in.Calls = w.phaseStart, w.aliveGone, w.lastState, w.sighting, w.calls
		}
		g.Instances = append(g.Instances, in)
	}
	return g
}

// unreadable says which record of the group alone cannot be read, and why; "" if all can.
func unreadable(c *picture.Content, keys store.Keys, group string) string {
	for _, key := range sorted(c.Unreadable) {
		kind, name, _ := keys.Split(key)
		slotOf, _, _ := store.SplitSlot(name)
		if kind == store.KindStatus && name == group || kind == store.KindSlots && slotOf == group {
			return c.Unreadable[key]
		}
	}
	return ""
}

// spec reads groups/<name> and says what keeps it from being in force: SAFE-10.
func (t *tenure) spec(c *picture.Content, name string) plan.Spec {
	kv, ok := c.Groups[name]
	if !ok {
		return plan.Spec{Key: t.r.keys.Group(name)}
	}
	s := plan.Spec{Key: kv.Key, Modified: kv.Modified}
	group, err := store.ReadGroup(kv.Value)
	s.Group = group
	switch p, known := t.r.deps.Providers[group.Provider]; {
	case err != nil:
		s.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	case group.Name != name:
		s.Problem = fmt.Sprintf("its name is %q, its key says %q", group.Name, name)
	case group.Deleting: // no machine is made from it any more: what a provider would say to it does not matter (REC-7)
	case !known:
		s.Problem = fmt.Sprintf("provider %q is not one of this coordinator's: %s", group.Provider, strings.Join(t.r.providerNames(), ", "))
	default:
		if err := p.Validate(provider.Template{InstanceType: group.Template.InstanceType, Zones: group.Template.Zones, Settings: group.Template.Settings}); err != nil {
			s.Problem = err.Error()
		}
	}
	return s
}

func sorted[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
