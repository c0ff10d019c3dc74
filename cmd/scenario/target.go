package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
)

// target selects the instances that an event affects.
type target struct {
	group   string // "": all groups
	zone    string
	slot    int // -1: any
	count   int
	percent int // instead of count

	one, many string // singular and plural of what is selected
}

const anyGroup = "every group"

// groupField reads the name of a group.
func (f *fields) groupField(def string) string {
	n := f.ask("group", def, "the name of a group", "Of this group.")
	if n == nil {
		if def == "" {
			return f.onlyGroup()
		}
		return ""
	}
	name := f.text("group", "the name of a group", "")
	f.asked = f.asked[:len(f.asked)-1] // it was read before
	if name != "" && !slices.Contains(f.known, name) {
		what := suggest.DidYouMean(name, f.known)
		if what == "" {
			what = ": there are " + strings.Join(f.known, ", ")
		}
		f.Wrong(n, yamlfile.Join(f.path, "group"), "there is no group %s%s", name, what)
	}
	return name
}

// onlyGroup returns the group that is meant if none is named.
func (f *fields) onlyGroup() string {
	if len(f.known) == 1 {
		return f.known[0]
	}
	f.missing("group", "the name of a group: there are "+strings.Join(f.known, ", "))
	return ""
}

// target reads a selection, of machines for example, for which the caller gives the nouns.
func (f *fields) target(one, many string) target {
	t := target{group: f.groupField(anyGroup), slot: -1, one: one, many: many}
	t.zone = f.zoneField("any", "Only in this zone.")
	if slot := f.number("slot", 0, 0, store.MaxSize-1, "The instance in this slot."); f.has("slot") {
		t.slot = slot
	}
	f.asked[len(f.asked)-1].Default = "any"
	t.count = f.number("count", 1, 1, store.MaxSize, "How many, chosen at random.")
	if t.percent = f.percent("percent", "none", "Share of all, instead of count."); f.has("percent") {
		t.count = 0
	}
	if f.has("percent") && f.has("count") {
		f.Wrong(f.keys["percent"], yamlfile.Join(f.path, "percent"), "give count or percent, not both")
	}
	return t
}

// text is the text of an event, with the selection of instances that the event affects.
type text struct {
	before   string
	target   *target // nil: the event selects no instances
	after    string
	selected *int // how many instances were selected; nil: the event has not happened
}

// says returns the text of an event that selects no instances.
func says(what string) text { return text{before: what} }

func (t text) String() string {
	switch {
	case t.target == nil:
		return t.before
	case t.selected == nil:
		return t.before + t.target.words() + t.after
	default:
		return t.before + t.target.found(*t.selected) + t.after
	}
}

// found describes the selection when that many instances were selected.
func (t target) found(count int) string {
	switch {
	case count == 0 && t.slot >= 0:
		return "no " + t.words()
	case count == 0:
		return "no " + t.one + t.where()
	case count < t.count:
		all := t.count
		t.count = count
		return fmt.Sprintf("%s (%d wanted)", t.words(), all)
	default:
		return t.words()
	}
}

// words describes the selection.
func (t target) words() string {
	var b strings.Builder
	switch {
	case t.slot >= 0:
		fmt.Fprintf(&b, "%s in slot %d", t.one, t.slot)
	case t.percent == 100:
		fmt.Fprintf(&b, "all %s", t.many)
	case t.percent > 0:
		fmt.Fprintf(&b, "%d%% of all %s", t.percent, t.many)
	case t.count == 1:
		b.WriteString("1 " + t.one)
	default:
		fmt.Fprintf(&b, "%d %s", t.count, t.many)
	}
	return b.String() + t.where()
}

// where names the group and the zone of the selection.
func (t target) where() string {
	where := ""
	if t.group != "" {
		where += " of " + t.group
	}
	if t.zone != "" {
		where += " in zone " + t.zone
	}
	return where
}

// pick chooses the instances among those that are eligible. Healthy ones come first, because a
// failure of one that has failed already would have no effect.
func (st *stage) pick(t target, fit func(store.Instance) bool) []string {
	var working, others []string
	for _, id := range st.w.Instances() {
		v := st.w.Instance(id)
		in := &v.Record
		if !v.Present() || t.group != "" && in.Group != t.group || t.zone != "" && in.Zone != t.zone || t.slot >= 0 &&
			in.Slot != t.slot || !fit(*in) {
			continue
		}
		if st.w.Works(id) {
			working = append(working, id)
		} else {
			others = append(others, id)
		}
	}
	n := t.count
	if t.percent > 0 {
		n = ((len(working)+len(others))*t.percent + 99) / 100
	}
	for _, ids := range [][]string{working, others} {
		st.chance.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	all := append(working, others...)
	all = all[:min(n, len(all))]
	slices.Sort(all)
	return all
}

// present reports whether the instance's machine may exist and is to be kept.
func present(in store.Instance) bool {
	switch in.Phase {
	case store.Pending, store.Creating, store.Deleting:
		return false
	default:
		return true
	}
}

func draining(in store.Instance) bool { return in.Phase == store.Draining }

// each does something to all selected instances, and returns their names.
func (st *stage) each(t target, fit func(store.Instance) bool, do func(id string)) string {
	ids := st.pick(t, fit)
	st.rec.selected(len(ids))
	if len(ids) == 0 {
		return "there is none"
	}
	for _, id := range ids {
		do(id)
	}
	return strings.Join(ids, ", ")
}
