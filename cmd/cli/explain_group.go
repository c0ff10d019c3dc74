package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// groupStory is the output of explain for a group.
type groupStory struct {
	Group        string          `json:"group"`
	State        string          `json:"state"`
	Revision     store.Revision  `json:"revision"`
	Answer       string          `json:"answer"`
	Now          []string        `json:"now"`     // work in progress
	Blocked      []store.Blocked `json:"blocked"` // as the leader has recorded it
	Computed     *computed       `json:"computed"`
	NextDecision *story.Upcoming `json:"next_look"`
	Decisions    []storyLine     `json:"decisions"` // the last ones
	Remedies     story.Remedies  `json:"remedies"`

	nextText string
}

// maxDecisions is how many of the last decisions are shown.
const maxDecisions = 8

// explainGroup explains a group that has a spec or a status.
func (inv *Invocation) explainGroup(ctx context.Context, name string) (bool, error) {
	for _, key := range []string{inv.keys().Group(name), inv.keys().Static(name), inv.keys().Status(name)} {
		kv, err := inv.find(ctx, key)
		if err != nil {
			return false, err
		}
		if kv.Modified != 0 {
			return true, inv.explainExisting(ctx, name)
		}
	}
	return false, nil
}

func (inv *Invocation) explainExisting(ctx context.Context, name string) error {
	sc, err := inv.scene(ctx, name)
	if err != nil {
		return err
	}
	entries, err := inv.decisions(ctx, name)
	if err != nil {
		return err
	}
	decisions, journaled := lastOf(entries), journaledVerdicts(entries)
	g := group{
		Name: name, Stored: sc.content.Groups[name], Static: sc.content.Static[name],
		Status: sc.content.Status[name],
	}
	g.Read()
	all := func(store.Blocked) bool { return true }
	story := groupStory{
		Group: name, State: strings.TrimSpace(story.RowOf(g).State), Revision: sc.content.Revision,
		Answer: groupAnswer(sc, g), Now: goingOn(sc, journaled),
		Blocked: sc.blocked(all), Decisions: storyLines(decisions),
	}
	story.NextDecision, story.nextText = sc.nextDecision(groupUpcoming(sc, journaled), story.Blocked)
	story.Remedies = remediesOf(g, sc)
	story.Computed = computeGroup(sc, sc.held(all))
	return inv.showGroupStory(story)
}

// maxRemedies is how many remedies are shown.
const maxRemedies = 3

// remediesOf returns what an operator can do about what is blocked or wrong.
func remediesOf(g group, sc *scene) story.Remedies {
	remedies := append(story.Remedies{}, story.Unblocking(sc.status().Blocked)...)
	for _, p := range story.GroupProblems(g, sc.leads(), sc.now) {
		for _, remedy := range p.Remedies {
			if remedy.Kind != story.Inspection && !slices.Contains(remedies, remedy) {
				remedies = append(remedies, remedy)
			}
		}
	}
	return remedies[:min(len(remedies), maxRemedies)]
}

// computeGroup follows the planner until the group comes to rest. It changes the scene's world.
func computeGroup(sc *scene, held []store.Blocked) *computed {
	pace, known := sc.world.StartTime()
	if !known {
		pace = 5 * time.Second // only the order of steps is shown then
	}
	course := sc.world.Ahead(pace)
	if course.Idle() && len(held) == 0 {
		return nil
	}
	c := &computed{Held: held}
	if !course.Idle() {
		drains := course.Drain > 0 || sc.status().Phases[store.Draining] > 0
		c.Plan = course.Words() + courseEnd(course, known, drains)
	}
	return c
}

func courseEnd(c foresee.Course, known, drains bool) string {
	hooks := ""
	if drains { // for an unknown time
		hooks = ", and the time that drain hooks take"
	}
	switch {
	case !known && c.Rests:
		return ""
	case !c.Rests:
		return "; then it goes no further"
	default:
		return "; at rest in " + roughly(c.Took) + hooks
	}
}

// decisions returns the last entries of the journal about a group.
func (inv *Invocation) decisions(ctx context.Context, name string) ([]store.JournalEntry, error) {
	of := func(e store.JournalEntry) bool { return e.Group == name }
	found, _, err := inv.entriesOf(ctx, name, of,
		func(found []store.JournalEntry) bool { return len(found) >= maxDecisions })
	return found, err
}

func lastOf(entries []store.JournalEntry) []store.JournalEntry {
	return entries[max(0, len(entries)-maxDecisions):]
}

// groupAnswer describes the state of a group in a sentence, with the two things that matter most.
func groupAnswer(sc *scene, g group) string {
	st := g.Status.Record
	text := fmt.Sprintf("%s is %s", g.Name, strings.ToUpper(story.RowOf(g).State))
	if g.StatusBad != nil {
		text = g.Name
	}
	if st.Accepted != nil {
		text += fmt.Sprintf(", %d of %d healthy", st.Healthy, st.Accepted.Size)
	}
	clauses := groupClauses(sc, g)
	if len(clauses) == 0 {
		clauses = []string{"there is nothing to do"}
	}
	return text + ": " + strings.Join(clauses[:min(2, len(clauses))], "; ")
}

// groupClauses returns the noteworthy facts about a group, the most important first.
func groupClauses(sc *scene, g group) []string {
	st := g.Status.Record
	var all []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(!sc.leads(), "no coordinator is running, so nothing is done")
	if h := sc.content.Shard.Record.Hold; h != nil {
		add(true, "the shard is ON HOLD by %s: %s", h.By, h.Why)
	}
	add(g.StatusBad != nil, "its status cannot be read, so at most the leader knows which spec is in force")
	add(!g.Status.Present() && g.StatusBad == nil && sc.leads() && g.Bad == nil, "the leader has not accepted it yet")
	add(g.Gone() && !g.Leaving(), "its spec is gone; %s", story.InForceWithout(st))
	if g.Bad != nil {
		add(true, "the spec of revision %d cannot be used: %s", g.Revision(), joined(g.Bad))
	} else if st.Invalid != nil && st.Invalid.Revision == g.Revision() && !g.Gone() {
		add(true, "the spec of revision %d is not in force: %s", st.Invalid.Revision, st.Invalid.Why)
	}
	add(st.State == store.GroupPaused, "nothing is created, healed or deleted in it")
	add(st.State == store.GroupReady, "it was applied with --no-start")
	on := story.Of(st)
	if s := on.Storm; s != nil {
		add(true, "a STORM: %d of %d lost at its peak, and not replaced", s.Lost, s.Of)
	}
	if r := on.Roll; r.Halted() {
		how := "STALLED"
		if r.State == story.Stopped {
			how = "STOPPED"
		}
		add(true, "its roll is %s at %d of %d: %s", how, r.Done, r.Total, r.Why)
	}
	add(on.Errored > 0, "%s given up", counted(on.Errored, "slot is", "slots are"))
	add(on.Flapping > 0, "%s after repeated failures", counted(on.Flapping, "slot waits", "slots wait"))
	for _, v := range on.Verdicts {
		add(true, "%d %s", v.N, v.Verdict)
	}
	held, turns := len(story.Merge(on.Blocked)), len(story.Merge(on.Turns))
	add(held > 0, "%s", counted(held, "thing is held back", "things are held back"))
	if r := on.Roll; r != nil && !r.Halted() {
		add(true, "rolling, %d of %d done%s", r.Done, r.Total, story.RollProves(r.Rollout, sc.now))
	}
	add(story.WaveNow(st) != "", "%s", story.WaveNow(st))
	add(on.Outdated > 0, "%s outdated", isAre(on.Outdated))
	add(turns > 0 && len(all) == 0, "%s", counted(turns, "item waits for its turn", "items wait for their turn"))
	for _, p := range on.Phases {
		add(true, "%d %s", p.N, p.Phase)
	}
	return all
}

// goingOn describes what is in progress in a group.
func goingOn(sc *scene, journaled map[string]store.JournalEntry) []string {
	st := sc.status()
	st.Blocked = nil // that is shown elsewhere
	lines := append([]string{sc.cacheLine()}, ailingLines(sc, journaled)...)
	lines = append(lines, story.NowLines(st, sc.slots(), sc.now)...)
	for _, i := range sc.instances() {
		switch {
		case i.Phase == store.Draining && i.Drain != nil:
			until := "ends in " + story.DrainEnds(*i.Drain, sc.now) + " at the latest"
			if i.Drain.Done != "" {
				until = "it is over: " + i.Drain.Done
			}
			lines = append(lines, fmt.Sprintf("%s drains because %s; %s", i.ID, reason.Clause(i.Drain.Cause, i.Drain.Why),
				until))
		case i.Doomed != nil:
			lines = append(lines, fmt.Sprintf("%s is doomed: %s (%s)", i.ID, reason.Text(i.Doomed.Cause, i.Doomed.Why),
				i.Doomed.Rule))
		case i.Protected != "":
			lines = append(lines, fmt.Sprintf("%s is protected (REC-13)%s", i.ID, story.ProtectedBy(i)))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sc.content.Requests)) {
		r := sc.content.Requests[id]
		of := r.Record.Group
		if r.Record.Instance != "" {
			of = sc.content.Instances[r.Record.Instance].Record.Group
		}
		if of == sc.group {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("ordered %s ago by %s: %s %s",
				output.Age(sc.now, r.Record.At), r.Record.By, r.Record.Kind, r.Record.Instance)))
		}
	}
	return lines
}

func groupUpcoming(sc *scene, journaled map[string]store.JournalEntry) []story.Upcoming {
	upcoming := story.StatusUpcoming(sc.status())
	for _, v := range sc.slots() {
		upcoming = append(upcoming, story.SlotUpcoming(v.Record)...)
	}
	for _, i := range sc.instances() {
		upcoming = append(upcoming, story.InstanceUpcoming(i)...)
		upcoming = append(upcoming, suspectUpcoming(sc, i, verdictNow(sc, i.ID, journaled))...)
	}
	return upcoming
}

// explainGoneGroup explains a group that is gone, from the journal alone.
func (inv *Invocation) explainGoneGroup(ctx context.Context, name string) (bool, error) {
	entries, err := inv.decisions(ctx, name)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	decisions := lastOf(entries)
	last := decisions[len(decisions)-1]
	now := inv.env.Now()
	story := groupStory{
		Group: name, State: "gone", Now: []string{}, Blocked: []store.Blocked{}, Decisions: storyLines(decisions),
		Remedies: story.Remedies{},
		Answer: fmt.Sprintf("%s is gone; the last of it, %s: %s: %s", name, story.Clock(last.At, now), last.What,
			reason.Text(last.Cause, last.Why)),
	}
	return true, inv.showGroupStory(story)
}

func (inv *Invocation) showGroupStory(st groupStory) error {
	if done, err := inv.records(st); done {
		return err
	}
	var b strings.Builder
	scr := inv.screen()
	output.WriteWrapped(&b, scr, "", st.Answer)
	for _, line := range st.Now {
		output.WriteWrapped(&b, scr, "  ", line)
	}
	writeBlocked(&b, scr, st.Blocked)
	writeComputed(&b, scr, st.Computed, st.Revision)
	writeNextDecision(&b, scr, st.nextText, "the group")
	if len(st.Decisions) > 0 {
		b.WriteString("Last decisions\n")
		writeStory(&b, scr, st.Decisions, "", inv.env.Now(), inv.wide())
	}
	for _, remedy := range st.Remedies {
		output.WriteWrapped(&b, scr, "next: ", remedy.Text)
	}
	return inv.print(&b)
}
