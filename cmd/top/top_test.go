package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// terminal is a model over a store in memory, and who looks at it.
type terminal struct {
	t    *testing.T
	st   *memstore.Store
	keys store.Keys
	m    *model
	ran  int
}

func newTerminal(t *testing.T, width, height int) *terminal {
	t.Helper()
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	x := &terminal{t: t, st: db.Connect(), keys: store.KeysOf("test")}
	x.put(x.keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "x1", Name: "test", Created: time.Now(), Settings: store.DefaultShardSettings(),
	})
	f, wait := follow(t.Context(), Config{Shard: "test"}, x.st)
	t.Cleanup(wait)
	x.m = newModel(Config{Shard: "test", Now: time.Now, Colour: true}, f)
	x.m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return x
}

func (x *terminal) put(key string, record any) store.Revision {
	x.t.Helper()
	rev, err := x.st.Commit(x.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, store.Encode(record))}})
	if err != nil {
		x.t.Fatal(err)
	}
	return rev
}

// group is a group with an instance in each slot.
func (x *terminal) group(name string, size int) {
	x.t.Helper()
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = name, "process", size
	g.Workload.Run = []string{"./web"}
	g.Complete()
	rev := x.put(x.keys.Group(name), g)
	x.put(x.keys.Status(name), store.Status{
		Schema: store.Schema, Group: name, Accepted: &g, AcceptedRevision: rev, State: store.GroupStarted, Health: 100,
		Healthy: size, OK: true, Since: time.Now(), Phases: map[store.Phase]int{store.Running: size},
		Verdicts: map[store.Verdict]int{store.Live: size},
	})
	for slot := range size {
		id := fmt.Sprintf("%s-%d-a", name, slot)
		x.put(x.keys.Instance(id), store.Instance{
			Schema: store.Schema, ID: id, Group: name, Slot: slot, Phase: store.Running, Managed: true, Since: time.Now(),
			Created: time.Now(), Template: "t1", Spec: g.InstanceSpec(), Zone: "a",
		})
		x.put(x.keys.Alive(id), store.Alive{
			Schema: store.Schema, Instance: id, Replica: "coord-a", Epoch: 1, State: store.StreamOpen, Since: time.Now(),
		})
	}
}

func (x *terminal) tell(e store.JournalEntry) {
	x.t.Helper()
	x.ran++
	e.Schema, e.By = store.Schema, "coord-a"
	e.At = time.Now().Add(time.Duration(x.ran) * time.Microsecond)
	x.put(x.keys.Event(e.At, fmt.Sprint(x.ran)), e)
}

// sees waits until the screen shows a text.
func (x *terminal) sees(text string) {
	x.t.Helper()
	x.until(text, x.shown)
}

// knows waits until a text is among the lines, shown or not.
func (x *terminal) knows(text string) {
	x.t.Helper()
	x.until(text, func() string { return ansi.Strip(fmt.Sprint(x.m.screen.lines)) })
}

func (x *terminal) until(text string, shown func() string) {
	x.t.Helper()
	end := time.After(2 * time.Minute)
	for !strings.Contains(shown(), text) {
		select {
		case <-x.m.f.dirty:
		case <-time.After(20 * time.Millisecond): // ages, and how old it is, change without news
		case <-end:
			x.t.Fatalf("%q is not shown:\n%s", text, x.shown())
		}
		x.m.Update(changed{})
	}
}

func (x *terminal) shown() string {
	x.t.Helper()
	text := x.m.View().Content
	lines := strings.Split(text, "\n")
	if len(lines) != x.m.height {
		x.t.Errorf("%d lines on a screen of %d", len(lines), x.m.height)
	}
	for _, l := range lines {
		if width := ansi.StringWidth(l); width > x.m.width {
			x.t.Errorf("a line of %d on a screen of %d: %s", width, x.m.width, l)
		}
	}
	return ansi.Strip(text)
}

// cursor is the line with the cursor.
func (x *terminal) cursor() string {
	for _, l := range strings.Split(x.shown(), "\n") {
		if strings.HasPrefix(l, ">") {
			return l
		}
	}
	return ""
}

var named = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"end": {Code: tea.KeyEnd}, "home": {Code: tea.KeyHome}, "pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp},
	"backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
}

// press presses keys, and reports whether the program ends.
func (x *terminal) press(keys ...string) (ends bool) {
	x.t.Helper()
	for _, k := range keys {
		msg, special := named[k]
		if !special {
			msg = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		_, cmd := x.m.Update(msg)
		if cmd != nil {
			_, ends = cmd().(tea.QuitMsg)
		}
	}
	return ends
}

// proves WEB-1: the terminal shows what the page shows, from the shard to the events of an
// instance, by keys alone
func TestFromTheShardToAnInstance(t *testing.T) {
	x := newTerminal(t, 80, 24)
	x.group("api", 2)
	x.group("web", 3)
	x.put(x.keys.Of(store.KindLeader)+"1a", store.Leader{Schema: store.Schema, Replica: "coord-a", Since: time.Now()})
	x.tell(store.JournalEntry{
		Group: "web", Instance: "web-1-a", Kind: store.EntryVerdict, Verdict: store.Unhealthy, What: "unhealthy",
		Why: "http:8080: connection refused", Rule: "DET-9",
	})
	x.put(x.keys.Of(store.KindReports)+"web-1-a", store.Report{
		Schema: store.Schema, Instance: "web-1-a", Healthy: false, Why: "http:8080: connection refused",
		Received: time.Now(),
	})
	x.sees("web-1-a  unhealthy")
	x.sees("leader coord-a")
	if got := x.cursor(); !strings.Contains(got, "api") {
		t.Errorf("the cursor is at %q", got)
	}
	x.press("down", "enter")
	x.sees("shard › web")
	x.sees("slots  ! 1 unhealthy  · 2 live")
	x.press("home") // the cursor stays with what it was on before the report came
	if got := x.cursor(); !strings.Contains(got, "web-1-a") {
		t.Errorf("the worst instance is not the first: %q", got)
	}
	x.press("enter")
	x.sees("web-1-a is unhealthy, running: http:8080: connection refused")
	x.sees("DET-9   unhealthy")
	x.press("e")
	x.sees("› events")
	x.press("esc", "esc", "esc", "esc")
	x.sees("decided last")
	x.press("n")
	if got := x.cursor(); !strings.Contains(got, "web-1-a") {
		t.Errorf("n stops at %q", got)
	}
	x.press("?")
	x.sees("its lease ended, and that was confirmed")
	if !x.press("q") {
		t.Error("q does not leave")
	}
}

// A group that is larger than the screen: the cursor stays in sight and at its instance, filters
// find.
func TestLargeGroup(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 50}, {40, 10}} {
		x := newTerminal(t, size[0], size[1])
		x.group("web", 200)
		x.m.open = append(x.m.open, spot{place: place{kind: ofGroup, group: "web"}})
		x.knows("200 live")
		for range 60 {
			x.press("down")
			x.shown()
		}
		before := x.m.at().key
		x.group("web", 201)
		x.knows("201 live")
		if got := x.m.at().key; got != before || before == "" {
			t.Errorf("the cursor went from %q to %q", before, got)
		}
		for _, key := range []string{"pgdown", "end", "down", "pgup", "home", "up", "up"} {
			x.press(key)
			x.shown()
		}
		x.press("/", "-", "1", "7", "7", "-", "enter")
		if len(x.m.screen.lines) == 0 || !strings.Contains(fmt.Sprint(x.m.screen.lines), "instances: 1 of 2") {
			t.Errorf("the filter does not find one: %v", x.m.screen.lines)
		}
		x.press("esc")
		if x.m.at().filter != "" || x.m.at().kind != ofGroup {
			t.Errorf("Esc did not remove the filter first: %+v", x.m.at())
		}
	}
}

// proves WEB-2: hostile text of a workload or a client reaches no terminal
func TestHostileText(t *testing.T) {
	x := newTerminal(t, 80, 24)
	x.group("web", 1)
	const evil = "\x1b]0;pwned\x07\x1b[2J\u009b31m\r\nfake line"
	x.tell(store.JournalEntry{Group: "web", Instance: "web-0-a", What: evil, Why: evil, Rule: "DET-9"})
	x.tell(store.JournalEntry{Group: "web", Instance: "web-0-a", What: evil, Rule: evil})
	x.put(x.keys.Of(store.KindReports)+"web-0-a", store.Report{
		Schema: store.Schema, Instance: "web-0-a", Why: evil, Received: time.Now(),
	})
	x.sees("fake line")
	for _, keys := range [][]string{nil, {"enter"}, {"enter"}, {"e"}} {
		x.press(keys...)
		x.m.Update(changed{})
		raw := x.m.View().Content
		for _, bad := range []string{"\x1b]", "\x1b[2J", "\x07", "\u009b", "\r"} {
			if strings.Contains(raw, bad) {
				t.Errorf("%q reaches the terminal in %v:\n%q", bad, keys, raw)
			}
		}
	}
}

// An etcd that does not answer: what is shown stays, and says how old it is; afterwards it goes on.
func TestStaleAndBack(t *testing.T) {
	x := newTerminal(t, 80, 24)
	x.group("web", 1)
	x.sees("started") // it must have arrived before etcd is cut off
	x.st.Faults().Cut()
	x.sees("STALE: heard from etcd")
	x.sees("started")
	x.st.Faults().Mend()
	x.group("later", 1)
	x.sees("later")
	x.sees("rev ")
}

// A roll, windows, scaling and the time axis are shown in a terminal too.
//
// proves WEB-1
func TestChangeInATerminal(t *testing.T) {
	x := newTerminal(t, 100, 40)
	x.group("web", 4)
	now, least := time.Now(), 2
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size, g.Workload.Run = "web", "process", 4, []string{"./web"}
	g.Windows = []store.Window{{From: "22:00", For: store.Duration(time.Hour), Allow: []string{store.PlannedRoll}}}
	g.Scale = &store.ScaleSpec{Min: &least, Max: 6, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
	g.Complete()
	x.put(x.keys.Status("web"), store.Status{
		Schema: store.Schema, Group: "web", Accepted: &g, AcceptedRevision: 1 << 40, State: store.GroupStarted, Health: 100,
		Healthy: 4, Since: now, Phases: map[store.Phase]int{store.Running: 4},
		Rollout: &store.Rollout{
			Template: "t1", Since: now, Progress: now, Done: 4, Total: 4, Canary: 2, Canaries: []int{0, 3},
			Stalls: &store.Timer{Start: now, For: store.Duration(9 * time.Minute)},
		},
		Scale: &store.Scale{Size: 4, Wish: 6, Asks: 8, Stays: store.ScaleWindowUp},
		Blocked: []store.Blocked{{
			Rule: "ROLL-6", Kind: store.BlockedByWindow, Work: store.WorkRoll, Turn: true,
			Of: store.BlockedFacts{Group: "web", Opens: now.Add(time.Hour)},
		}},
	})
	x.tell(store.JournalEntry{Rule: "ROLL-2", What: "update", Group: "web", Instance: "web-0-a"})
	x.sees("web ")
	x.m.enter(place{kind: ofGroup, group: "web"})
	for _, want := range []string{
		"2 of 2 canaries in slots 0, 3, not promoted yet (ROLL-5)", "without progress it is stalled in",
		"roll to t1", "██████████████████████████████ 4 done", "no window that allows it is open",
		"expiry     not by its windows",
		"size 4, from 2 to 6; load asks for 8: it grows once load has asked", "time, from", "roll   ", "rolling  ",
	} {
		x.knows(want)
	}
	x.m.views.Sample(now.Add(-time.Minute))
	x.m.views.Sample(now)
	x.knows("4 of at most 6")
}

// The report is shown for all groups and for one, and leads to the worst instance.
//
// proves WEB-1, DAY-5
func TestReportInATerminal(t *testing.T) {
	x := newTerminal(t, 100, 40)
	x.group("web", 1)
	slot := 0
	for _, e := range []store.JournalEntry{
		{Rule: "DET-9", What: "healthy", From: store.Checking, To: store.Running},
		{Rule: "DET-4", What: "dead", Kind: store.EntryVerdict, Verdict: store.Dead},
		{Rule: "DET-9", What: "healthy", Instance: "web-0-b", From: store.Checking, To: store.Running},
	} {
		e.Group, e.Slot = "web", &slot
		if e.Instance == "" {
			e.Instance = "web-0-a"
		}
		x.tell(e)
	}
	x.sees("web ")
	x.knows("web-0-b")
	x.press("r")
	x.sees("AVAILABLE")
	if got := x.cursor(); !strings.Contains(got, "web") {
		t.Errorf("the cursor is at %q", got)
	}
	x.press("enter")
	x.sees("all slots together")
	x.sees("shard › report › report")
	x.press("esc", "esc")
	x.sees("decided last")
}
