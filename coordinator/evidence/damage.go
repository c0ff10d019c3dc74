package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// UnreadableKey is a key of which it is not known what it said before.
type UnreadableKey struct {
	Key      string
	Modified store.Revision // of the value that cannot be read
}

// ToRecall returns the unreadable keys whose previous revisions should be read from etcd's history:
// see Recalled.
func (e *Evidence) ToRecall(c *cache.Content) (out []UnreadableKey) {
	if len(c.Unreadable) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, s := range c.Spoiled {
		kind, name, _ := e.cfg.Keys.Split(key)
		if e.recalled[key].of == s.Modified {
			continue
		}
		known := true
		switch kind {
		case store.KindInstances:
			_, known = c.Instances[name]
		case store.KindStatus:
			_, known = c.Status[name]
		case store.KindSlots:
			group, n, _ := store.SplitSlot(name)
			_, known = c.Slots[group][n]
		default:
		}
		if !known {
			out = append(out, UnreadableKey{Key: key, Modified: s.Modified})
		}
	}
	slices.SortFunc(out, func(a, b UnreadableKey) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// recall is an unreadable key's last readable value in etcd's history; kv is zero if there is none.
type recall struct {
	of store.Revision // of the unreadable value
	kv store.KV       // the newest that can be read
}

// Recalled records the former value of an unreadable key; a zero kv: it is no longer known.
func (e *Evidence) Recalled(s UnreadableKey, kv store.KV) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recalled[s.Key] = recall{of: s.Modified, kv: kv}
	_, name, _ := e.cfg.Keys.Split(s.Key)
	group, _, _ := strings.Cut(name, "/")
	e.dirty[group], e.dirty[""] = true, true
	e.recheckAll = true
}

// forgetRecalled forgets what was recalled of keys that can be read again.
func (e *Evidence) forgetRecalled(c *cache.Content) {
	maps.DeleteFunc(e.recalled, func(key string, r recall) bool { return c.Spoiled[key].Modified != r.of })
	maps.DeleteFunc(e.spoiled, func(key string, _ time.Time) bool { return c.Unreadable[key] == "" })
}

// before returns the former value of an unreadable key, from memory or from etcd's history.
func before[T any](e *Evidence, key string, remembered store.Versioned[T], known bool) (store.Versioned[T], bool) {
	if known {
		return remembered, true
	}
	v, err := store.Decode[T](e.recalled[key].kv)
	return v, err == nil && v.Present()
}

// placeOf returns the group and slot of an unreadable instance: from its former record, else from
// its name.
func (e *Evidence) placeOf(c *cache.Content, id string) (group string, slot *int, onDemand bool,
	last store.Revision,
) {
	remembered, known := c.Instances[id]
	if v, ok := before(e, e.cfg.Keys.Instance(id), remembered, known); ok {
		return v.Record.Group, v.Record.Place(), !v.Record.Managed, v.Modified
	}
	group, n, onDemand, ok := store.PlaceOf(id)
	if !ok {
		return "", nil, false, 0
	}
	if !onDemand {
		slot = &n
	}
	return group, slot, onDemand, 0
}

// seeDamage updates the known damage of groups that have changed or will be planned.
func (e *Evidence) seeDamage(c *cache.Content, planned []string) {
	e.forgetRecalled(c)
	groups := e.recheck
	if e.recheckAll {
		groups = everything(c)
		for group := range e.damage {
			groups[group] = true
		}
		for group := range e.tagged {
			groups[group] = true
		}
		for _, m := range c.Missing {
			if m.Instance != nil {
				groups[m.Instance.Group] = true
			}
		}
		for group := range c.Claiming {
			groups[group] = true
		}
	}
	for group := range groups {
		e.damageOf(c, group)
	}
	for _, group := range planned {
		e.damageOf(c, group)
	}
	e.recheck, e.recheckAll = map[string]bool{}, false
}

// damageOf records the damaged records of a group. It costs almost nothing if there is no damage.
func (e *Evidence) damageOf(c *cache.Content, group string) {
	if group == "" {
		return
	}
	found := map[string]store.Damaged{}
	status := c.Status[group].Record
	earlier := map[string]store.Damaged{}
	for _, d := range status.Damaged {
		earlier[d.Key] = d
	}
	add := func(d store.Damaged) {
		if _, there := found[d.Key]; there {
			return
		}
		if d.Since = e.cfg.Now().UTC(); d.Seen == 0 {
			d.Seen = e.firstSeen(d.Key, c.Revision)
		}
		if old, known := earlier[d.Key]; known && old.What == d.What {
			d.Since, d.Seen = old.Since, min(d.Seen, old.Seen)
		}
		found[d.Key] = d
	}
	e.addUnreadable(c, group, add)
	e.addMissing(c, group, add)
	e.addUnrecorded(c, group, add)
	for _, d := range status.Damaged {
		if e.stillLost(c, d) {
			add(d)
		}
	}
	e.addUncounted(c, group, found)
	for _, d := range e.damage[group] {
		if _, still := found[d.Key]; !still {
			delete(e.noticed, d.Key) // new damage, not the noted one
		}
	}
	if len(found) == 0 {
		delete(e.damage, group)
		return
	}
	list := make([]store.Damaged, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[key])
	}
	if len(list) != len(e.damage[group]) {
		e.dirty[group], e.dirty[""] = true, true
	}
	e.damage[group] = list
}

// firstSeen returns the revision of the cache that first showed the damage of a key in this term.
func (e *Evidence) firstSeen(key string, now store.Revision) store.Revision {
	if at, known := e.noticed[key]; known {
		return at
	}
	e.noticed[key] = now
	return now
}

func (e *Evidence) addUnreadable(c *cache.Content, group string, add func(store.Damaged)) {
	for key, why := range c.Unreadable {
		kind, id, _ := e.cfg.Keys.Split(key)
		if kind != store.KindInstances {
			continue
		}
		of, slot, onDemand, last := e.placeOf(c, id)
		if of == group {
			add(store.Damaged{
				Key: key, Instance: id, Slot: slot, OnDemand: onDemand, What: store.DamageUnreadable,
				Cause: store.Cause{Kind: store.CauseRecordSpoiled, Name: key, Text: why}, Last: last, Seen: c.Spoiled[key].Modified,
			})
		}
	}
}

func (e *Evidence) addMissing(c *cache.Content, group string, add func(store.Damaged)) {
	for key, m := range c.Missing {
		if m.Instance == nil || m.Instance.Group != group {
			continue
		}
		add(store.Damaged{
			Key: key, Instance: m.Name, Slot: m.Instance.Place(), OnDemand: !m.Instance.Managed, What: store.DamageLost,
			Last: m.Last, Seen: m.At,
			Cause: store.Cause{Kind: store.CauseRecordLost, Name: m.Name, Revision: m.Last},
		})
	}
}

// addUnrecorded adds machines and agents of slots that no record fills: their records were lost. In
// a group whose records no leader has counted, every machine without a record is damage, even if
// its slot is unknown.
func (e *Evidence) addUnrecorded(c *cache.Content, group string, add func(store.Damaged)) {
	if len(e.tagged[group]) == 0 && len(c.Claiming[group]) == 0 || e.groupGone(c, group) {
		return
	}
	ids := map[string]bool{}
	maps.Copy(ids, e.tagged[group])
	maps.Copy(ids, c.Claiming[group])
	var filled map[int]bool
	uncounted := e.uncounted(c, group)
	for id := range ids {
		key := e.cfg.Keys.Instance(id)
		if e.recorded(c, id) || c.DeletedOnPurpose(key, 0) {
			continue
		}
		slot, onDemand, ok := e.claimed(c, id, group)
		if !ok || onDemand {
			if uncounted { // otherwise it is shown, stays, and fills no slot
				add(store.Damaged{
					Key: key, Instance: id, OnDemand: onDemand, What: store.DamageLost,
					Cause: store.Cause{Kind: store.CauseUnrecorded, Name: id},
				})
			}
			continue
		}
		if filled == nil {
			filled = e.filled(c, group)
		}
		if filled[slot] {
			continue
		}
		add(store.Damaged{
			Key: key, Instance: id, Slot: &slot, What: store.DamageLost,
			Cause: store.Cause{Kind: store.CauseUnrecordedSlot, Name: id, Count: slot},
		})
	}
}

// uncounted reports whether a group is wanted and no leader has counted its records.
func (e *Evidence) uncounted(c *cache.Content, group string) bool {
	_, dynamic := c.Groups[group]
	_, static := c.Static[group]
	status, there := c.Status[group]
	if !dynamic && !static && !there {
		return false
	}
	key := e.cfg.Keys.Status(group)
	if m, lost := c.Missing[key]; lost && m.Status != nil {
		return false
	}
	if c.Unreadable[key] != "" {
		status, _ = before(e, key, status, there)
	}
	return status.Record.Records == nil
}

// claimed returns the slot of a group that a machine or agent without a record had.
func (e *Evidence) claimed(c *cache.Content, id, group string) (slot int, onDemand, known bool) {
	if claim := c.Strays[id].Record.Claim; claim != nil {
		return claim.Slot, claim.Slot < 0, claim.Group == group
	}
	of, slot, onDemand, known := store.PlaceOf(id)
	return slot, onDemand, known && of == group
}

// filled returns the slots of a group that have an instance with a readable record which is not
// being deleted.
func (e *Evidence) filled(c *cache.Content, group string) map[int]bool {
	filled := map[int]bool{}
	for _, id := range c.ByGroup[group] {
		rec := c.Instances[id].Record
		if rec.Managed && rec.Phase != store.Deleting && c.Unreadable[e.cfg.Keys.Instance(id)] == "" {
			filled[rec.Slot] = true
		}
	}
	return filled
}

// stillLost reports whether damage that an earlier leader recorded still exists.
func (e *Evidence) stillLost(c *cache.Content, d store.Damaged) bool {
	if e.recorded(c, d.Instance) || c.DeletedOnPurpose(d.Key, d.Last) {
		return false
	}
	if d.Last != 0 || len(e.listed) < len(e.cfg.Capabilities) {
		return true
	}
	_, extra := e.extras[d.Instance] // known only from its machine or its agent
	_, stray := c.Strays[d.Instance]
	return extra || stray
}

// waitsFor names a provider whose first complete List of this term a group has to wait for; "" if
// it waits for none. A group waits while no leader has counted its records: then only the machines
// show what is missing. A group that is being deleted does not wait for a provider that this
// coordinator does not have: nothing would be created, so no record can be doubled.
func (e *Evidence) waitsFor(c *cache.Content, g *plan.Group) string {
	delete(e.unlisted, g.Name)
	if g.Status.Record.Records != nil {
		return ""
	}
	for _, p := range e.providersOf(c, g) {
		_, known := e.cfg.Capabilities[p]
		if !e.listed[p] && (known || !g.Spec.Group.Deleting) {
			e.unlisted[g.Name] = max(1, len(c.ByGroup[g.Name]))
			return p
		}
	}
	return ""
}

// providersOf returns the providers with which a group can have machines: the one that its spec
// names, the one that the accepted spec names, and the providers of its records. A spec that cannot
// be in force counts only if no other is in force; a spec that names no provider means all of them.
func (e *Evidence) providersOf(c *cache.Content, g *plan.Group) (providers []string) {
	accepted := g.Status.Record.Accepted
	if accepted != nil {
		providers = append(providers, accepted.Provider)
	}
	if max(g.Spec.Modified, g.Spec.StaticModified) > 0 && (g.Spec.Problem == "" || accepted == nil) {
		if p := g.Spec.Group.Provider; p != "" {
			providers = append(providers, p)
		} else {
			providers = slices.AppendSeq(providers, maps.Keys(e.cfg.Capabilities))
		}
	}
	for _, id := range c.ByGroup[g.Name] {
		providers = append(providers, c.Instances[id].Record.Spec.Provider)
	}
	providers = slices.DeleteFunc(providers, func(p string) bool { return p == store.ProviderNone }) // it lists nothing
	slices.Sort(providers)
	return slices.Compact(providers)
}

// addUncounted adds records that an earlier leader has counted, that are missing, and of which
// nothing else is known.
func (e *Evidence) addUncounted(c *cache.Content, group string, found map[string]store.Damaged) {
	status := c.Status[group].Record
	lost := 0
	for _, d := range found {
		if _, remembered := c.Instances[d.Instance]; !remembered {
			lost++
		}
	}
	for i := range c.Uncounted(group, lost) {
		d := store.Damaged{
			Key: e.cfg.Keys.Instance(fmt.Sprintf("(%s, unknown %d)", group, i+1)), What: store.DamageLost,
			Since: e.cfg.Now().UTC(), Seen: status.Counted,
			Cause: store.Cause{
				Kind: store.CauseRecordsLost, Limit: *status.Records, Count: len(c.ByGroup[group]), Revision: status.Counted,
			},
		}
		found[d.Key] = d
	}
}

// allDamage returns the damage of all groups, in order of key.
func (e *Evidence) allDamage() []store.Damaged {
	var out []store.Damaged
	for _, list := range e.damage {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b store.Damaged) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// Damaged describes the damage for which etcd's history must be kept; "" if there is none
// (SAFE-15).
func (e *Evidence) Damaged(c *cache.Content) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(c.Unreadable) + len(c.Missing)
	for _, list := range e.damage {
		n = max(n, len(list))
	}
	switch h := c.Shard.Record.Hold; {
	case n > 0:
		return fmt.Sprintf("records are lost or cannot be read (%d): etcd's history is kept, "+
			"so that leasehold repair can read them from it", n)
	case h != nil && h.Damage > 0:
		return "the shard is on hold for damaged records: etcd's history is kept, so that leasehold " +
			"repair can read them from it"
	default:
		return ""
	}
}

// fillings caches the filled slots of groups, so that many machines without a record cost no more
// than the size of their groups.
type fillings map[string]map[int]bool

func (f fillings) of(e *Evidence, c *cache.Content, group string) map[int]bool {
	if f[group] == nil {
		f[group] = e.filled(c, group)
	}
	return f[group]
}

// judgeExtra adds what else is known of a machine without a record (REC-8).
func (e *Evidence) judgeExtra(c *cache.Content, x *plan.Extra, filled fillings) {
	keys := e.cfg.Keys
	key := keys.Instance(x.Instance)
	if s, there := c.Strays[x.Instance]; there {
		x.Stray, x.Claim = true, s.Record.Claim
	}
	x.Gone = c.DeletedOnPurpose(key, c.Missing[key].Last)
	group := x.Group
	if x.Claim != nil {
		group = x.Claim.Group
	}
	if slot, onDemand, ok := e.claimed(c, x.Instance, group); ok && !onDemand {
		x.Replaced = filled.of(e, c, group)[slot]
	}
	x.GroupGone = e.groupGone(c, group)
	damaged := e.damage[group]
	if i, lost := slices.BinarySearchFunc(damaged, key,
		func(d store.Damaged, key string) int { return strings.Compare(d.Key, key) }); lost {
		x.Lost, x.Damaged = true, !damaged[i].Reviewed(&c.Shard.Record)
	}
}

// groupGone reports whether a group was deleted on purpose. That happens only once none of its
// records is left.
func (e *Evidence) groupGone(c *cache.Content, group string) bool {
	keys := e.cfg.Keys
	return group != "" && !known(c, group) &&
		(c.DeletedOnPurpose(keys.Group(group), 0) || c.DeletedOnPurpose(keys.Static(group), 0) ||
			c.DeletedOnPurpose(keys.Status(group), 0))
}
