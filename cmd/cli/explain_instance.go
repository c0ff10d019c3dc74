package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// instanceStory is the output of explain for an instance.
type instanceStory struct {
	Instance string         `json:"instance"`
	Group    string         `json:"group,omitempty"`
	Slot     *int           `json:"slot,omitempty"`
	Phase    string         `json:"phase"` // "gone" without a record
	Revision store.Revision `json:"revision"`
	Answer   string         `json:"answer"`
	Verdict  *verdict       `json:"verdict"` // null: no verdict
	Now      []string       `json:"now"`     // its state
	Journal  []storyLine    `json:"journal"`
	// Claims are refusals of clients that gave its name without proof.
	Claims []storyLine `json:"claims,omitempty"`
	// Stopped says how far back the journal was read, if not to its beginning.
	Stopped string `json:"stopped,omitempty"`
	// Decision is the decision that matters, and what would have prevented it.
	Decision *storyLine `json:"decision,omitempty"`
	// Otherwise says what would have happened without it.
	Otherwise    string          `json:"otherwise,omitempty"`
	Blocked      []store.Blocked `json:"blocked"`  // as the leader has recorded it
	Computed     *computed       `json:"computed"` // computed here; nil: only what the leader has recorded
	NextDecision *story.Upcoming `json:"next_look"`
	Remedies     story.Remedies  `json:"remedies"`

	nextText string
}

// computed is the plan that this program computes from the records with the coordinator's planner.
// It is a prediction.
type computed struct {
	Plan string          `json:"plan,omitempty"`
	Held []store.Blocked `json:"held,omitempty"`
}

// explainInstance explains an instance that has a record.
func (inv *Invocation) explainInstance(ctx context.Context, id string) (bool, error) {
	kv, err := inv.find(ctx, inv.keys().Instance(id))
	if err != nil || kv.Modified == 0 {
		return false, err
	}
	v, err := store.Decode[store.Instance](kv)
	if err != nil {
		return false, err
	}
	life, err := inv.lifeOf(ctx, id, v.Record.Created)
	if err != nil {
		return false, err
	}
	sc, err := inv.scene(ctx, v.Record.Group)
	if err != nil {
		return false, err
	}
	if now, there := sc.content.Instances[id]; there { // it may have changed since
		v = now
	}
	st := instanceStoryOf(sc, v.Record, life.entries)
	st.read(life, sc.now)
	return true, inv.showInstanceStory(st)
}

// instanceStoryOf returns the story of an instance with a record.
func instanceStoryOf(sc *scene, i store.Instance, life []store.JournalEntry) instanceStory {
	slot, now := i.Slot, sc.now
	st := instanceStory{
		Instance: i.ID, Group: i.Group, Slot: &slot, Phase: string(i.Phase), Revision: sc.content.Revision,
		Journal:  storyLines(life),
		Remedies: story.Run("leasehold instance show " + i.ID),
	}
	judged := verdictNow(sc, i.ID, journaledVerdicts(life))
	if judged.shown() {
		st.Verdict = &judged
	}
	st.Answer = answerOf(sc, i, judged.judgment(), life)
	st.Now = append([]string{sc.cacheLine()}, judged.lines(now)...)
	st.Now = append(st.Now, story.InstanceLines(i, now)...)
	if d := sc.evacuation(i); d != "" {
		st.Now = append(st.Now, "doomed: DRAIN-3: "+d)
	}
	st.Now = append(st.Now, story.AgentLines(sc.content.Alive[i.ID], sc.content.Reports[i.ID], now)...)
	st.Now = append(st.Now, story.UnregisteredLines(i, sc.content.Replicas, now)...)
	v := sc.content.Slots[i.Group][i.Slot]
	if line := story.SlotState(v.Record, now); line != "" {
		st.Now = append(st.Now, fmt.Sprintf("slot %d: %s", i.Slot, line))
	}
	st.decide(i.ID, life, now)
	mine := func(b store.Blocked) bool { return b.Instance == i.ID || reason.OfGroup(&b) }
	st.Blocked = sc.blocked(mine)
	if held := sc.held(mine); len(held) > 0 {
		st.Computed = &computed{Held: held}
	}
	due := append(upcomingFor(sc, i, st.Blocked), suspectUpcoming(sc, i, judged)...)
	st.NextDecision, st.nextText = sc.nextDecision(due, st.Blocked)
	if commands := story.Unblocking(st.Blocked); len(commands) > 0 {
		st.Remedies = commands[:1]
	}
	return st
}

// read records how the story was read.
func (st *instanceStory) read(l life, now time.Time) {
	st.Claims, st.Stopped = storyLines(l.claims), l.stopped(st.Instance, now)
}

// decide selects the decision that matters.
func (st *instanceStory) decide(id string, life []store.JournalEntry, now time.Time) {
	e, found := countingDecision(id, sinceReturn(id, life))
	if !found {
		return
	}
	line := storyLines([]store.JournalEntry{e})[0]
	st.Decision, st.Otherwise = &line, reason.Prevented(&e, story.Clock(e.At, now))
}

// explainGone explains an instance or a group that is gone, from the journal alone.
func (inv *Invocation) explainGone(ctx context.Context, id string) (bool, error) {
	life, err := inv.lifeOf(ctx, id, time.Time{})
	if err != nil {
		return false, err
	}
	group, own := "", false
	var slot *int
	for _, e := range life.entries {
		if e.Instance == id {
			own = true
			group, slot = e.Group, e.Slot
		}
	}
	if !own && len(life.claims) == 0 {
		return inv.explainGoneGroup(ctx, id)
	}
	sc, err := inv.scene(ctx, group)
	if err != nil {
		return false, err
	}
	st := goneStoryOf(sc, id, slot, life.entries)
	st.read(life, sc.now)
	return true, inv.showInstanceStory(st)
}

// goneStoryOf returns the story of an instance without a record.
func goneStoryOf(sc *scene, id string, slot *int, life []store.JournalEntry) instanceStory {
	st := instanceStory{
		Instance: id, Group: sc.group, Slot: slot, Phase: "gone", Revision: sc.content.Revision,
		Journal: storyLines(life), Now: []string{},
		Blocked: []store.Blocked{}, Remedies: story.Run("leasehold explain " + sc.group),
	}
	st.decide(id, life, sc.now)
	e, found := partingOf(id, life)
	if sc.group == "" {
		st.Remedies = story.Run("leasehold instance list")
	}
	switch at := endOf(id, life); {
	case !everWas(id, life):
		st.Answer = fmt.Sprintf("there is no instance %s, and the journal has no entries about it", id)
	case !found || at.IsZero():
		st.Answer = fmt.Sprintf("%s is gone; the journal does not say why", id)
	default:
		st.Answer = fmt.Sprintf("%s was DELETED %s because %s%s", id, story.Clock(at, sc.now), removalReason(e),
			placeTaken(sc, id, slot, life))
	}
	return st
}

// everWas reports whether the journal has entries of the instance itself, not only orders for an
// unknown one.
func everWas(id string, life []store.JournalEntry) bool {
	return slices.ContainsFunc(life, func(e store.JournalEntry) bool {
		return e.Instance == id && (e.To != "" || e.Verdict != "" || e.Workload != nil || !reason.IsRefusal(&e))
	})
}
