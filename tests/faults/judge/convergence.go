package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// convergence: once all that was wrong is healed, every group becomes complete, and that within a
// bound. The player of the run said so (Quiet); the judge looks itself.
//
// A run that was never healed is not asked: it ended early, and that it did is its player's to
// tell.
func (in *inquiry) convergence() {
	healed, there := in.mark(history.Healed)
	if !there {
		return
	}
	quiet, there := in.mark(history.Quiet)
	if !there || quiet.At < healed.At {
		at := min(in.events[len(in.events)-1].At, healed.At.Add(in.terms.Bound)) // afterwards everything is stopped
		missing, evidence := in.missing(in.worldAt(at), healed.Mark.Groups, at)
		if len(missing) == 0 {
			missing = []string{"nothing is missing by the records, and yet it was not quiet"}
		}
		in.violation("HEAL-6", at, fmt.Sprintf("all was healed, and %s later it was not quiet yet: %s",
			at.Sub(healed.At).Round(1e8), strings.Join(missing, "; ")), append(evidence, healed)...)
		return
	}
	if took := quiet.At.Sub(healed.At); took > in.terms.Bound {
		in.violation("HEAL-6", quiet.At,
			fmt.Sprintf("it took %s until all was quiet, and may take %s", took.Round(1e8), in.terms.Bound), healed)
	}
	groups := quiet.Mark.Groups
	if groups == nil {
		groups = healed.Mark.Groups
	}
	if missing, evidence := in.missing(in.worldAt(quiet.At), groups, quiet.At); len(missing) > 0 {
		in.violation("HEAL-6", quiet.At,
			"it was called quiet, and is not as it should be: "+strings.Join(missing, "; "), evidence...)
	}
}

// missing describes what is not as it should be, group by group, and what the leader reports about
// it.
func (in *inquiry) missing(w *world, groups map[string]int, at history.Time) (missing []string,
	evidence []history.Event,
) {
	if w.shard != nil && w.shard.Hold != nil {
		missing = append(missing, fmt.Sprintf("the shard is on hold by %s: %s", w.shard.Hold.By, w.shard.Hold.Why))
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		size := groups[name]
		why := in.missingOf(w, name, size, at)
		if len(why) == 0 {
			continue
		}
		text := fmt.Sprintf("group %s: %s", name, strings.Join(why, ", "))
		if st := w.statuses[name]; st != nil {
			for _, b := range st.Blocked {
				text += fmt.Sprintf("; blocked by %s: %s: %s", b.Rule, b.What, b.Why)
			}
			evidence = append(evidence, w.raw[in.keys.Status(name)])
		}
		missing = append(missing, text)
	}
	return missing, evidence
}

func (in *inquiry) missingOf(w *world, group string, size int, at history.Time) (why []string) {
	slots := map[int]bool{}
	members := w.inGroup(group)
	for _, m := range members {
		slots[m.Slot] = true
		switch {
		case m.Phase == store.Finished:
		case m.Phase != store.Running:
			why = append(why, fmt.Sprintf("%s is %s", m.ID, m.Phase))
		case in.truth.down(m.ID, at):
			why = append(why, m.ID+" does not run in truth")
		case !w.looksWell(m.ID):
			why = append(why, m.ID+" does not report that it is healthy")
		}
	}
	if len(members) != size || len(slots) != size {
		why = append(why, fmt.Sprintf("it has %d instances in %d slots, and should have %d", len(members), len(slots),
			size))
	}
	switch st := w.statuses[group]; {
	case st == nil && size > 0:
		why = append(why, "it has no status")
	case st != nil && (st.Health != 100 || !st.OK):
		why = append(why, fmt.Sprintf("its leader says that it is %s, %d%% healthy, %d flapping, %d given up", st.State,
			st.Health, st.Flapping, st.Errored))
	}
	if e, there := w.raw[in.keys.Group(group)]; there && w.statuses[group] != nil &&
		w.statuses[group].AcceptedRevision != e.Change.Revision && w.value(in.keys.Static(group)) == nil {
		why = append(why, fmt.Sprintf("its spec is of revision %d, and its leader goes by revision %d",
			e.Change.Revision, w.statuses[group].AcceptedRevision))
	}
	return why
}
