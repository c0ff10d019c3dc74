package plan

import (
	"fmt"
	"hash/fnv"
	"sort"
	"time"

	"github.com/leasehold/leasehold/store"
)

// draft is a group as it will be once the actions decided so far have happened.
type draft struct {
	s    *Snapshot
	g    *Group
	now  time.Time
	spec *store.Group // in force; nil if there never was one

	members []*member // in order of ID; new ones at the end
	bySlot  map[int][]*member
	slots   map[int]*slot

	acceptedRevision store.Revision
	invalid          *store.InvalidSpec

	actions []Action
	calls   []Call
	blocked []store.Blocked
	held    []store.Blocked // what was decided and may not be done
	next    time.Time
	made    int  // how many IDs this plan has given out for the group
	extra   *int // what expansion found; nil once a member has changed
}

// member is an instance in the draft.
type member struct {
	Instance
	phase    store.Phase // as drafted
	judgment Judgment
	touched  bool // an action of this plan changes its record
}

func (m *member) ID() string { return m.Record.ID }

// gone says that the member no longer counts: it is being deleted.
func (m *member) gone() bool { return m.phase == store.Deleting }

func (m *member) dead() bool { return m.judgment.Verdict == store.Dead }

// failing says that it must be healed.
func (m *member) failing() bool { return m.judgment.Verdict.Failed() }

// unwanted says that it must go once its place is taken.
func (m *member) unwanted() bool { return m.failing() || m.Record.Condemned != nil }

// healthy says that it does its work, and that a report of its present boot says so: one that has only just come back has
// proved nothing yet.
func (m *member) healthy() bool {
	return m.phase == store.Running && m.judgment.Verdict == store.Live && reportIsCurrent(m.Instance) && m.Report.Record.Healthy
}

// fills says that it can fill its slot.
func (m *member) fills() bool { return m.phase.Fills() && !m.dead() && m.Record.Managed }

// slot is a slot in the draft.
type slot struct {
	store.Versioned[store.Slot]
	number  int
	retry   time.Time // not to be filled before, if it flaps
	touched bool
}

func newDraft(s *Snapshot, g *Group, now time.Time) *draft {
	d := &draft{s: s, g: g, now: now, slots: map[int]*slot{}, bySlot: map[int][]*member{}}
	for _, in := range g.Instances {
		d.join(&member{Instance: in, phase: in.Record.Phase})
	}
	for _, v := range g.Slots {
		d.slots[v.Record.Number] = &slot{Versioned: v, number: v.Record.Number, retry: g.SlotRetry[v.Record.Number]}
	}
	return d
}

func (d *draft) join(m *member) {
	d.members, d.extra = append(d.members, m), nil
	if m.Record.Managed {
		d.bySlot[m.Record.Slot] = append(d.bySlot[m.Record.Slot], m)
	}
}

// slot returns the slot with this number, drafting one if there is none.
func (d *draft) slot(n int) *slot {
	if sl, ok := d.slots[n]; ok {
		return sl
	}
	sl := &slot{number: n}
	sl.Key = d.s.Keys.Slot(d.g.Name, n)
	sl.Record = store.Slot{Schema: store.Schema, Group: d.g.Name, Number: n}
	d.slots[n] = sl
	return sl
}

// in lists the members of a slot that are not being deleted, oldest first.
func (d *draft) in(n int) []*member {
	var out []*member
	for _, m := range d.bySlot[n] {
		if !m.gone() {
			out = append(out, m)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return older(out[i], out[j]) })
	return out
}

// older orders members by when their records were made; drafted ones are the youngest.
func older(a, b *member) bool {
	if a.Created != b.Created {
		return b.Created == 0 || a.Created != 0 && a.Created < b.Created
	}
	return a.ID() < b.ID()
}

// filled lists the numbers of the slots that are filled, in order.
func (d *draft) filled() []int {
	seen := map[int]bool{}
	var out []int
	for _, m := range d.members {
		if m.fills() && !seen[m.Record.Slot] {
			seen[m.Record.Slot] = true
			out = append(out, m.Record.Slot)
		}
	}
	sort.Ints(out)
	return out
}

// slotsInUse lists the numbers of the slots with members that are not being deleted, in order.
func (d *draft) slotsInUse() []int {
	seen := map[int]bool{}
	var out []int
	for _, m := range d.members {
		if m.Record.Managed && !m.gone() && !seen[m.Record.Slot] {
			seen[m.Record.Slot] = true
			out = append(out, m.Record.Slot)
		}
	}
	sort.Ints(out)
	return out
}

// count counts the managed members for which a property holds.
func (d *draft) count(property func(*member) bool) int {
	n := 0
	for _, m := range d.members {
		if m.Record.Managed && property(m) {
			n++
		}
	}
	return n
}

// expansion is how many instances exist above size, once the slots that are missing are filled: healing does not use
// the room that they need (HEAL-10). Nor does it use the room of those that only this plan removes: that action may be
// overtaken, and the next one not.
func (d *draft) expansion() int {
	if d.extra == nil {
		n := d.count(func(m *member) bool { return m.Record.Phase != store.Deleting && !m.dead() }) - min(d.spec.Size, len(d.filled()))
		d.extra = &n
	}
	return *d.extra
}

// creating is how many come up. One that failed to does no more: else it would take the room of its replacement for good.
func (d *draft) creating() int {
	comingUp := func(p store.Phase) bool {
		return p == store.Pending || p == store.Creating || p == store.Booting || p == store.Starting
	}
	return d.count(func(m *member) bool { return !m.failing() && (comingUp(m.phase) || comingUp(m.Record.Phase)) })
}

func (d *draft) leaving() int {
	return d.count(func(m *member) bool {
		return m.phase == store.Draining || m.phase == store.Stopping || m.phase == store.Deleting
	})
}

// unavailable is how many of the wanted slots have nobody who has fully booted (HEAL-5: failing checks do not
// matter here).
func (d *draft) unavailable() int {
	up := map[int]bool{}
	for _, m := range d.members {
		if m.Record.Managed && m.phase == store.Running && !m.dead() {
			up[m.Record.Slot] = true
		}
	}
	return max(0, d.spec.Size-len(up))
}

// roomToCreate and roomToDelete apply HEAL-7.
func (d *draft) roomToCreate() bool {
	return d.spec.Budget.MaxCreating == 0 || d.creating() < d.spec.Budget.MaxCreating
}

func (d *draft) roomToDelete() bool {
	return d.spec.Budget.MaxDeleting == 0 || d.leaving() < d.spec.Budget.MaxDeleting
}

func (d *draft) wake(at time.Time) {
	if !at.IsZero() && at.After(d.now) {
		d.next = sooner(d.next, at)
	}
}

func (d *draft) block(rule, what, why, until, instance string) {
	d.blocked = append(d.blocked, store.Blocked{Rule: rule, What: what, Why: why, Until: until, Instance: instance})
}

// common are the conditions of every action that makes or removes a machine: the spec and the shard (its hold) are as seen.
func (d *draft) common() []store.Condition {
	return []store.Condition{store.At(d.specKey(), d.g.Spec.Modified), d.s.Shard.Unchanged()}
}

func (d *draft) specKey() string { return d.s.Keys.Group(d.g.Name) }

func (d *draft) decision(rule, why string) store.Decision {
	return store.Decision{Rule: rule, Why: why, Revision: d.s.Revision, At: d.now.UTC()}
}

// newMember drafts a new instance in a slot and returns it with the write that records it.
func (d *draft) newMember(n int, replaces *member, rule, why string) (*member, store.Write) {
	d.made++
	rec := store.Instance{
		Schema: store.Schema, ID: d.newID(n), Group: d.g.Name, Slot: n, Phase: store.Pending, Managed: true,
		Since: d.now.UTC(), Created: d.now.UTC(), Spec: d.spec.InstanceSpec(), Zone: d.zone(), Last: d.decision(rule, why),
	}
	rec.Template = rec.Spec.TemplateHash()
	if replaces != nil {
		rec.Replaces = replaces.ID()
	}
	m := &member{phase: store.Pending, touched: true}
	m.Record, m.Key = rec, d.s.Keys.Instance(rec.ID)
	m.judgment = Judgment{Verdict: store.Unborn, Rule: rule, Why: why}
	d.join(m)
	return m, store.Put(m.Key, store.Encode(rec))
}

const idLetters = "bcdfghjklmnpqrstvwxz2456789" // no vowels, so that no words come of it

// newID makes an ID that was never used: it depends on the revision of the picture, which only grows, and on the tenure's seed.
func (d *draft) newID(slot int) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%d/%d/%d", d.s.Seed, d.g.Name, slot, d.s.Revision, d.made)
	v := h.Sum64()
	suffix := make([]byte, 6)
	for i := range suffix {
		suffix[i] = idLetters[v%uint64(len(idLetters))]
		v /= uint64(len(idLetters))
	}
	return fmt.Sprintf("%s-%d-%s", d.g.Name, slot, suffix)
}

// zone is the wanted zone with the fewest members, of those that had room when last asked (REC-3).
func (d *draft) zone() string {
	all := d.zones()
	zones := make([]string, 0, len(all))
	for _, z := range all {
		if !d.s.Full[d.spec.Provider][z].After(d.now) {
			zones = append(zones, z)
		}
	}
	if len(zones) == 0 {
		zones = all
	}
	used := map[string]int{}
	for _, m := range d.members {
		if !m.gone() && !m.dead() {
			used[m.Record.Zone]++
		}
	}
	best := ""
	for i, z := range zones {
		if i == 0 || used[z] < used[best] {
			best = z
		}
	}
	return best
}

func (d *draft) zones() []string {
	zones := d.spec.Template.Zones
	if len(zones) == 0 {
		zones = d.s.Zones[d.spec.Provider]
	}
	zones = append([]string(nil), zones...)
	sort.Strings(zones)
	return zones
}

// step is an action that takes a member to another phase, with all that such an action compares.
func (d *draft) step(m *member, to store.Phase, rule, what, why string, evidence []string, change func(*store.Instance)) *Action {
	rec := m.Record
	a := Action{
		Group: d.g.Name, Instance: m.ID(), Slot: slotOf(rec), Rule: rule, What: what, Why: why,
		Evidence: evidence, From: rec.Phase, To: to, Verdict: m.judgment.Verdict,
		Conditions: []store.Condition{m.Unchanged()},
	}
	if to != rec.Phase {
		rec.Phase, rec.Since = to, d.now.UTC()
	}
	rec.Last = d.decision(rule, why)
	if change != nil {
		change(&rec)
	}
	a.Writes = []store.Write{store.Put(m.Key, store.Encode(rec))}
	m.phase, m.touched, d.extra = to, true, nil
	d.actions = append(d.actions, a)
	return &d.actions[len(d.actions)-1]
}

func slotOf(rec store.Instance) *int {
	if rec.Slot < 0 {
		return nil
	}
	n := rec.Slot
	return &n
}
