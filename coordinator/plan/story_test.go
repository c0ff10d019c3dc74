package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// story plays a transcript.
type story struct {
	*world
	names map[string]string // ID → name
	ids   map[string]string
	out   strings.Builder
	start time.Time
}

func newStory(t *testing.T) *story {
	s := &story{world: newWorld(t, calm{}), names: map[string]string{}, ids: map[string]string{}}
	s.start = s.now
	s.checked()
	return s
}

// checked has every plan of the story, and all that is carried out, hold what the property tests
// hold them to.
func (s *story) checked() {
	s.onCommit = func(snapshot *Snapshot, p *Plan, a *Action) { s.actionIsSound(snapshot, p, a) }
}

// play runs the blocks of a transcript and returns it with what came of them.
func (s *story) play(text string) string {
	var result strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		result.WriteString(line + "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case line == "----": // what was shown before is replaced
			for i+1 < len(lines) && lines[i+1] != "" {
				i++
			}
			result.WriteString(s.named(s.out.String()))
			s.out.Reset()
			continue
		}
		s.command(line)
	}
	return result.String()
}

// named calls instances by their names.
func (s *story) named(text string) string {
	for id, name := range s.names {
		text = strings.ReplaceAll(text, id, name)
	}
	return text
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *story) command(line string) {
	word := strings.Fields(line)
	switch word[0] {
	case "settle":
		s.settle()
	case "run":
		s.run(duration(s.t, word[1]), time.Second)
	case "skip":
		s.run(duration(s.t, word[1]), time.Hour)
	case "look":
		s.pass(time.Second)
	case "advance":
		s.advance()
	case "plan":
		s.plan()
	case "overtake":
		s.overtake(strings.Join(word[1:], " "))
	case "show":
		s.show(len(word) > 1)
	case "records":
		for _, name := range s.world.names(word[1]) {
			s.say("%s/%s", word[1], name)
		}
	default:
		s.happens(word)
	}
}

func duration(t failer, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d
}

// settle plans until the group is as wanted, or nothing has happened for a while.
func (s *story) settle() {
	for quiet := 0; quiet < 10; quiet++ {
		s.pass(time.Second)
		if _, done := s.advance(); len(done) > 0 {
			quiet = 0
		}
	}
	s.out.Reset()
	st := read[store.Status](s.world, s.keys.Status(s.group)).Record
	s.say("settled: health %d%%, %s", st.Health, s.phases())
	s.start = s.now
}

func (s *story) phases() string {
	var out []string
	for _, v := range s.instances() {
		out = append(out, s.names[v.Record.ID]+" "+string(v.Record.Phase))
	}
	slices.Sort(out)
	if len(out) == 0 {
		return "no instances"
	}
	return strings.Join(out, ", ")
}

// run lets time pass in strides, and no further than to when a plan wants to be made. As long as
// something happens it takes small steps.
func (s *story) run(d, stride time.Duration) {
	next, quiet := time.Time{}, 0
	for end := s.now.Add(d); s.now.Before(end); quiet++ {
		step := min(time.Second, end.Sub(s.now))
		if quiet > 12 {
			step = min(stride, end.Sub(s.now))
			if !next.IsZero() {
				step = max(time.Second, min(step, next.Sub(s.now)))
			}
		}
		s.pass(step)
		next = time.Time{}
		for range 4 {
			p, done := s.advance()
			if next = p.Wake; len(done) == 0 {
				break
			}
			quiet = 0
		}
	}
}

// advance carries one plan out and tells what was done.
func (s *story) advance() (Plan, []Action) {
	s.t.Helper()
	s.planIsSound()
	before := s.now
	p, done := s.step()
	s.nameAll()
	for _, a := range done {
		for _, told := range a.JournalEntries() {
			s.say("%6s %s", before.Sub(s.start).Round(time.Second), s.sentence(told))
		}
	}
	return p, done
}

// overtake lets something happen between a plan and its being carried out.
func (s *story) overtake(command string) {
	p := Compute(s.snapshot(), s.now)
	s.command(command)
	for _, a := range p.Actions {
		if a.NoJournal {
			continue
		}
		for _, id := range s.made(&a) {
			s.name(id, s.group, *a.Slot)
		}
		fate := "done"
		if !s.commit(a.Conditions, a.Writes, 1) {
			fate = "overtaken"
		}
		s.say("%s: %s", fate, s.sentence(a))
	}
}

// nameAll names the instances that are new, in the order of their records.
func (s *story) nameAll() {
	list := s.instances()
	slices.SortFunc(list, func(a, b store.Versioned[store.Instance]) int { return int(a.Created - b.Created) })
	for _, v := range list {
		s.name(v.Record.ID, v.Record.Group, v.Record.Slot)
	}
}

func (s *story) name(id, group string, slot int) {
	if s.names[id] != "" {
		return
	}
	place := fmt.Sprint(slot)
	if slot < 0 {
		place = "x"
	}
	if group != "web" {
		place = group + "-" + place
	}
	for letter := 'a'; ; letter++ {
		name := place + string(letter)
		if s.ids[name] == "" {
			s.names[id], s.ids[name] = name, id
			return
		}
	}
}

func (s *story) sentence(a Action) string {
	who := a.Instance
	switch {
	case who != "":
	case a.Slot != nil:
		who = fmt.Sprintf("slot %d", *a.Slot)
	case a.Group == "":
		who = "shard"
	case a.Group != "web":
		who = "group " + a.Group
	default:
		who = "group"
	}
	text := fmt.Sprintf("%-8s %s: %s", a.Rule, who, a.What())
	if a.Why != "" {
		text += " (" + a.Why + ")"
	}
	return text
}

// plan shows a plan with all that its actions compare and write.
func (s *story) plan() {
	s.planIsSound()
	snapshot := s.snapshot()
	p := Compute(snapshot, s.now)
	for _, a := range p.Actions {
		if a.NoJournal {
			continue
		}
		for _, id := range s.made(&a) {
			s.name(id, a.Group, *a.Slot)
		}
		s.say("%s", s.sentence(a))
		for _, e := range reason.Lines(a.Facts) {
			s.say("    because   %s", e)
		}
		if a.Counterfactual != "" {
			s.say("    otherwise %s", reason.Otherwise(a.Counterfactual, ""))
		}
		var compared, written []string
		for _, c := range a.Conditions {
			compared = append(compared, s.short(c.Key)+map[bool]string{true: " absent"}[c.Absent])
		}
		for _, op := range a.Writes {
			written = append(written, map[bool]string{true: "delete ", false: "put "}[op.Delete]+s.short(op.Key))
		}
		slices.Sort(compared)
		s.say("    compares  %s", strings.Join(slices.Compact(compared), ", "))
		s.say("    writes    %s", strings.Join(written, ", "))
		for _, n := range a.Notes {
			s.say("    and tells %s %s (%s)", n.Rule, reason.Effect(n.Effect), reason.Short(n.Cause))
		}
	}
	calls := slices.Clone(p.Calls)
	slices.SortStableFunc(calls, func(a, b Call) int { return a.Rank - b.Rank })
	for _, c := range calls {
		s.say("call %s %s", c.Kind, c.Instance)
	}
	if !p.Wake.IsZero() {
		s.say("look again in %s", p.Wake.Sub(s.now).Round(time.Millisecond))
	}
}

func (s *story) short(key string) string {
	rest, _ := strings.CutPrefix(key, s.keys.Prefix())
	return rest
}

func (s *story) show(all bool) {
	snapshot := s.snapshot()
	p := Compute(snapshot, s.now)
	for i := range snapshot.Groups {
		if g := &snapshot.Groups[i]; all || g.Name == s.group {
			s.showGroup(g, &p)
		}
	}
}

func (s *story) showGroup(g *Group, p *Plan) {
	list := slices.Clone(g.Instances)
	slices.SortFunc(list, func(a, b Instance) int {
		return strings.Compare(s.names[a.Record.ID], s.names[b.Record.ID])
	})
	for _, in := range list {
		j := p.Judgments.Of(in.Record.ID)
		s.say("%-3s %-9s zone %s %s: %s", s.names[in.Record.ID], in.Record.Phase, in.Record.Zone, j.Verdict, j.Why())
	}
	for _, v := range g.Slots {
		if r := v.Record; len(r.Failures) > 0 || r.Errored != "" {
			line := fmt.Sprintf("slot %d: %d failures, flapping %d", r.Number, len(r.Failures), r.Flapping)
			if r.Errored != "" {
				line += ", given up: " + r.Errored
			}
			s.say("%s", line)
		}
	}
	st := g.Status.Record
	if !g.Status.Present() {
		s.say("group %s: no status", g.Name)
		return
	}
	name := ""
	if g.Name != "web" {
		name = " " + g.Name
	}
	s.say("group%s %s, health %d%%", name, st.State, st.Health)
	if r := st.Rollout; r != nil {
		s.say("roll to %s: %d of %d done%s%s%s%s", r.Template, r.Done, r.Total, prefixed(", stalled: ", r.Stalled),
			prefixed(", stopped: ", r.Blamed),
			prefixed(", meanwhile made from ", r.Fallback),
			prefixed(", the last good template cannot be used: ", r.FallbackUnusable))
	}
	if r := st.Storm; r != nil {
		s.say("storm: %d of %d lost at its height%s%s", r.Lost, r.Of, prefixed(", probe ", r.Probe),
			prefixed(", over: ", r.Ended))
	}
	if sc := st.Scale; sc != nil {
		s.say("scale: size %d, wish %d%s (%s)", sc.Size, sc.Wish,
			prefixed(": ", reason.SizeStays(sc, st.Accepted.Scale, s.now)), reason.Numbers(sc.Numbers))
	}
	if st.Uneven != "" {
		s.say("uneven: %s", st.Uneven)
	}
	if st.Invalid != nil {
		s.say("invalid spec: %s", st.Invalid.Why)
	}
	for _, b := range st.Blocked {
		s.say("blocked: %s %s: %s; until %s", b.Rule, b.What, b.Why, b.Until)
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
