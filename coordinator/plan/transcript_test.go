package plan

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

var update = flag.Bool("update", false, "write what the transcripts show into testdata instead of comparing it")

// Each transcript in testdata is a story: commands, and below ---- what came of them. Instances are called by their slot and
// a letter in the order of their making, so 0a is replaced by 0b. The commands:
//
//	group KEY=VALUE…        edit the spec (size, max_expansion, zones=a,b …)
//	settle                  plan until nothing happens any more, and say only how the group is then
//	run DURATION            let time pass, second by second, and tell what is decided
//	look · advance          let one second pass · plan once and carry that out
//	plan                    plan once and show the plan, without carrying it out
//	kill|cut-off|freeze|return|unhealthy|healthy ID…   (or "all")
//	order replace|delete ID · leader · outage · hold · release · spoil · vanish · full ZONE · room ZONE
//	show                    the instances, slots and the group's status
//
// go test ./coordinator/plan -run TestTranscripts -update writes the files anew.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newStory(t).play(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s tells another story (write it anew with -update):\n%s", file, difference(string(want), got))
			}
		})
	}
}

// difference shows the first lines that differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			from := max(0, i-3)
			return fmt.Sprintf("line %d\nwant:\n%s\ngot:\n%s", i+1, strings.Join(w[from:min(len(w), i+8)], "\n"), strings.Join(g[from:min(len(g), i+8)], "\n"))
		}
	}
	return ""
}

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
	return s
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
	case "group":
		s.edit(func(g *store.Group) {
			for _, setting := range word[1:] {
				s.set(g, setting)
			}
		})
	case "settle":
		s.settle()
	case "run":
		s.run(duration(s.t, word[1]))
	case "look":
		s.pass(time.Second)
	case "advance":
		s.advance()
	case "plan":
		s.plan()
	case "show":
		s.show()
	case "order":
		id := s.ids[word[2]]
		r := store.Request{Schema: store.Schema, ID: "r" + strconv.Itoa(int(s.rev)), Kind: store.RequestKind(word[1]), Group: s.group, Instance: id, By: "ada", At: s.now}
		s.put(s.keys.Request(r.ID), r)
	case "leader":
		s.leaderChange()
	case "outage":
		s.outage()
	case "hold", "release":
		s.editShard(func(sh *store.Shard) {
			sh.Hold = nil
			if word[0] == "hold" {
				sh.Hold = &store.Hold{By: "ada", Why: "maintenance", At: s.now}
			}
		})
	case "spoil":
		s.edit(func(g *store.Group) { g.Lifecycle = "nonsense" })
	case "vanish":
		s.drop(s.keys.Group(s.group))
	case "full", "room":
		s.noRoom[word[1]] = word[0] == "full"
	default:
		s.happen(word[0], word[1:])
	}
}

func (s *story) happen(what string, names []string) {
	if slices.Equal(names, []string{"all"}) {
		names = nil
		for _, v := range s.instances() {
			names = append(names, s.names[v.Record.ID])
		}
	}
	for _, name := range names {
		id, ok := s.ids[name]
		if !ok {
			s.t.Fatalf("there is no %s; there are %v", name, s.ids)
		}
		switch what {
		case "kill":
			s.kill(id)
		case "cut-off", "freeze":
			s.silence(id, what == "cut-off")
		case "return":
			s.comeBack(id)
		case "healthy", "unhealthy":
			s.turn(id, what == "healthy")
		default:
			s.t.Fatalf("there is no command %q", what)
		}
	}
}

func (s *story) set(g *store.Group, setting string) {
	key, value, _ := strings.Cut(setting, "=")
	number := func() int {
		n, err := strconv.Atoi(value)
		if err != nil {
			s.t.Fatalf("%s: %v", setting, err)
		}
		return n
	}
	switch key {
	case "size":
		g.Size = number()
	case "max_expansion":
		g.Budget.MaxExpansion = number()
	case "max_unavailable":
		g.Budget.MaxUnavailable = new(number())
	case "max_creating":
		g.Budget.MaxCreating = number()
	case "max_deleting":
		g.Budget.MaxDeleting = number()
	case "policy":
		g.Heal.Policy = value
	case "zones":
		g.Template.Zones = strings.Split(value, ",")
	case "type":
		g.Template.InstanceType = value
	case "paused":
		g.Paused = value == "true"
	case "deleting":
		g.Deleting = value == "true"
	default:
		s.t.Fatalf("there is no setting %q", key)
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

func (s *story) run(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.pass(time.Second)
		for range 3 {
			if _, done := s.advance(); len(done) == 0 {
				break
			}
		}
	}
}

// advance carries one plan out and tells what was done.
func (s *story) advance() (Plan, []Action) {
	before := s.now
	p, done := s.step()
	s.nameAll()
	for _, a := range done {
		if !a.Silent {
			s.say("%6s %s", before.Sub(s.start), s.sentence(a))
		}
	}
	return p, done
}

// nameAll names the instances that are new, in the order of their records.
func (s *story) nameAll() {
	list := s.instances()
	slices.SortFunc(list, func(a, b store.Versioned[store.Instance]) int { return int(a.Created - b.Created) })
	for _, v := range list {
		s.name(v.Record.ID, v.Record.Slot)
	}
}

func (s *story) name(id string, slot int) {
	if s.names[id] != "" {
		return
	}
	for letter := 'a'; ; letter++ {
		name := fmt.Sprintf("%d%c", slot, letter)
		if s.ids[name] == "" {
			s.names[id], s.ids[name] = name, id
			return
		}
	}
}

func (s *story) sentence(a Action) string {
	who := a.Instance
	if who == "" {
		who = "group"
	}
	return strings.TrimRight(fmt.Sprintf("%-8s %s: %s (%s)", a.Rule, who, a.What, a.Why), " ")
}

// plan shows a plan with all that its actions compare and write.
func (s *story) plan() {
	snapshot := s.snapshot()
	p := Compute(snapshot, s.now)
	for _, a := range p.Actions {
		if a.Silent {
			continue
		}
		for _, id := range s.made(&a) {
			s.name(id, *a.Slot)
		}
		s.say("%s", s.sentence(a))
		for _, e := range a.Evidence {
			s.say("    because  %s", e)
		}
		var compared, written []string
		for _, c := range a.Conditions {
			compared = append(compared, s.short(c.Key)+map[bool]string{true: " absent"}[c.Absent])
		}
		for _, op := range a.Writes {
			written = append(written, map[bool]string{true: "delete ", false: "put "}[op.Delete]+s.short(op.Key))
		}
		slices.Sort(compared)
		s.say("    compares %s", strings.Join(slices.Compact(compared), ", "))
		s.say("    writes   %s", strings.Join(written, ", "))
	}
	for _, c := range p.Calls {
		s.say("call %s %s", c.Kind, c.Instance)
	}
	if !p.Next.IsZero() {
		s.say("look again in %s", p.Next.Sub(s.now))
	}
}

func (s *story) short(key string) string {
	rest, _ := strings.CutPrefix(key, s.keys.Prefix())
	return rest
}

func (s *story) show() {
	snapshot := s.snapshot()
	p := Compute(snapshot, s.now)
	list := snapshot.Groups[0].Instances
	slices.SortFunc(list, func(a, b Instance) int { return strings.Compare(s.names[a.Record.ID], s.names[b.Record.ID]) })
	for _, in := range list {
		j := p.Judgments[in.Record.ID]
		s.say("%-3s %-9s zone %s %s: %s", s.names[in.Record.ID], in.Record.Phase, in.Record.Zone, j.Verdict, j.Why)
	}
	for _, v := range snapshot.Groups[0].Slots {
		if len(v.Record.Failures) > 0 {
			s.say("slot %d: %d failures, flapping %d", v.Record.Number, len(v.Record.Failures), v.Record.Flapping)
		}
	}
	st := snapshot.Groups[0].Status.Record
	s.say("group %s, health %d%%", st.State, st.Health)
	if st.Invalid != nil {
		s.say("invalid spec: %s", st.Invalid.Why)
	}
	for _, b := range st.Blocked {
		s.say("blocked: %s %s: %s; until %s", b.Rule, b.What, b.Why, b.Until)
	}
}
