package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/cmd/groupdiff"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// foreseenChange is a change of a group, and its predicted effects.
type foreseenChange struct {
	Group    string         `json:"group"`
	New      bool           `json:"new,omitempty"`
	Revision store.Revision `json:"spec_revision"`    // for --if-revision
	Cache    store.Revision `json:"picture_revision"` // revision that the plan was computed on
	Changes  []fieldChange  `json:"changes"`
	Refused  string         `json:"refused,omitempty"`       // why coordinators would not put it in force
	InForce  string         `json:"then_in_force,omitempty"` // what would be blocked
	Plan     string         `json:"plan"`                    // for people
	Course   foresee.Course `json:"course"`
	Takes    store.Duration `json:"takes,omitempty"`          // an estimate
	Start    store.Duration `json:"median_start,omitempty"`   // start times that it is based on
	AtLeast  store.Duration `json:"takes_at_least,omitempty"` // at the shard's create_rate, which Takes respects
	Rate     float64        `json:"create_rate,omitempty"`    // if that is what holds creations up
	Warnings []string       `json:"warnings,omitempty"`
}

// fieldChange is a field that differs, and its effect on instances.
type fieldChange struct {
	Path   string `json:"path"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
	Forces string `json:"forces,omitempty"` // live_update, restart or recreate
}

// foreseeChange computes the effects of a change, with the coordinator's own planner on the present
// records. What only a coordinator knows is assumed to be in order.
func (inv *Invocation) foreseeChange(ctx context.Context, ch groupChange) (foreseenChange, error) {
	f := foreseenChange{
		Group: ch.name, New: ch.isNew(), Revision: ch.rev(), Changes: []fieldChange{},
		Warnings: ch.after.Warnings(),
	}
	for _, c := range groupdiff.Between(ch.before, ch.after) {
		field := fieldChange{Path: c.Path, Old: c.Old, New: c.New}
		if ch.before != nil && !ch.isNew() {
			field.Forces = forcedBy(c.Path, *ch.before, ch.after)
		}
		f.Changes = append(f.Changes, field)
	}
	listing, err := inv.recordsOf(ctx, ch.name)
	if err != nil {
		return f, err
	}
	f.Cache = listing.Revision
	var edits []store.Write
	if !ch.unchanged() {
		edits = []store.Write{store.Put(inv.keys().Group(ch.name), ch.value())}
	}
	world, err := inv.foresee(ctx, ch.name, listing, edits)
	if err != nil {
		return f, err
	}
	f.Warnings = append(f.Warnings, world.Foreign(&ch.after)...)
	if f.Refused = world.Refused(); f.Refused != "" {
		f.InForce = "nothing would be done"
		if _, known := world.Spec(); known {
			f.InForce = "the spec in force stays in force"
		}
	}
	pace, known := world.StartTime()
	if !known {
		pace = ch.after.Report.Interval.D() // only the order of steps is shown then
	}
	f.Course = world.Ahead(pace)
	f.Plan = f.Course.Words()
	if f.Course.AtLeast > 0 {
		f.AtLeast, f.Rate = store.Duration(f.Course.AtLeast), world.CreateRate()
	}
	if known && !f.Course.Idle() {
		f.Takes, f.Start = store.Duration(f.Course.Took), store.Duration(pace)
	}
	return f, nil
}

// forces returns what each field that differs does to existing instances, in words.
func (f foreseenChange) forces() map[string]string {
	words := map[string]string{}
	for _, c := range f.Changes {
		if !f.New {
			words[c.Path] = forcedWords(c.Path, c.Forces)
		}
	}
	return words
}

// text formats the prediction.
func (f foreseenChange) text(scr output.Screen) string {
	var b strings.Builder
	if f.Refused != "" {
		output.WriteWrapped(&b, scr, "refused: ", f.Refused+"; "+f.InForce)
	}
	fmt.Fprintf(&b, "plan: %s\n", f.Plan)
	if n := f.Course.Outdated; n > 0 && f.Course.Rests {
		fmt.Fprintf(&b, "  %s outdated until replaced for another reason: strategy opportunistic (ROLL-1)\n", isAre(n))
	}
	for _, waits := range story.Merge(f.Course.Waits) {
		output.WriteWrapped(&b, scr, "  waits: ", waits.Sentence())
	}
	for _, held := range story.Merge(f.Course.Held) {
		output.WriteWrapped(&b, scr, "  held: ", held.Sentence())
	}
	switch {
	case f.Course.Idle():
		return b.String()
	case f.Start == 0 && f.AtLeast == 0:
		b.WriteString("no estimate: " + f.noStart() + "\n")
		return b.String()
	case f.Start == 0:
		fmt.Fprintf(&b, "estimate more than %s (%s; %s)", about(f.AtLeast.D()), f.rate(), f.noStart())
	default:
		grounds := []string{"median start " + about(f.Start.D())}
		if f.AtLeast > 0 {
			grounds = append(grounds, f.rate())
		}
		switch {
		case f.Course.Seen > 0:
			grounds = append(grounds, fmt.Sprintf("computed for the first %d", f.Course.Seen))
		case f.Course.Estimated:
			grounds = append(grounds, "computed, not followed to the end")
		}
		until := ""
		if !f.Course.Rests {
			until = " until it goes no further"
		}
		fmt.Fprintf(&b, "estimate %s%s (%s)", roughly(f.Takes.D()), until, strings.Join(grounds, "; "))
	}
	if f.Course.Drain > 0 { // for an unknown time
		b.WriteString(", and the time that drain hooks take")
	}
	b.WriteByte('\n')
	return b.String()
}

// noStart says why it is not known how long a start takes.
func (f foreseenChange) noStart() string {
	if f.Course.Before > 0 {
		return "no instance shows how long a start takes, as after a restart of all machines"
	}
	return "no instance of this group has started yet"
}

// rate says how fast the shard creates machines.
func (f foreseenChange) rate() string {
	return fmt.Sprintf("at most %g creations a second", f.Rate)
}
