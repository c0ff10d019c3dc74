package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider/fake"
)

// logbook is a slog.Handler that keeps what is logged.
type logbook struct {
	own   []slog.Attr // of the logger that this handler is of
	pages *pages
}

type pages struct {
	mu    sync.Mutex
	lines []line
}

// line is one record, with its attributes as text.
type line struct {
	level slog.Level
	msg   string
	attrs map[string]string
}

func (l line) String() string { return fmt.Sprintf("%s %s %v", l.level, l.msg, l.attrs) }

func newLogbook() *logbook { return &logbook{pages: &pages{}} }

func (b *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (b *logbook) WithGroup(string) slog.Handler            { panic("groups are not used") }
func (b *logbook) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logbook{own: append(append([]slog.Attr(nil), b.own...), attrs...), pages: b.pages}
}

func (b *logbook) Handle(_ context.Context, r slog.Record) error {
	l := line{level: r.Level, msg: r.Message, attrs: map[string]string{}}
	for _, a := range b.own {
		l.attrs[a.Key] = a.Value.String()
	}
	r.Attrs(func(a slog.Attr) bool { l.attrs[a.Key] = a.Value.String(); return true })
	b.pages.mu.Lock()
	defer b.pages.mu.Unlock()
	b.pages.lines = append(b.pages.lines, l)
	return nil
}

// since lists what was logged at a level or above, from a mark on.
func (b *logbook) since(mark int, level slog.Level) (out []line) {
	b.pages.mu.Lock()
	defer b.pages.mu.Unlock()
	for _, l := range b.pages.lines[mark:] {
		if l.level >= level {
			out = append(out, l)
		}
	}
	return out
}

func (b *logbook) mark() int {
	b.pages.mu.Lock()
	defer b.pages.mu.Unlock()
	return len(b.pages.lines)
}

// count counts the lines of exactly this level and message, by the value of one attribute.
func count(lines []line, level slog.Level, msg, by string) map[string]int {
	found := map[string]int{}
	for _, l := range lines {
		if l.level == level && l.msg == msg {
			found[l.attrs[by]]++
		}
	}
	return found
}

// kept has a replica log into a book.
func (b *logbook) kept(_ *coordinator.Config, deps *coordinator.Deps) { deps.Logger = slog.New(b) }

// worst checks that the messages at a level and above are these, each once.
func (b *logbook) worst(t *testing.T, mark int, level slog.Level, want ...string) {
	t.Helper()
	wanted, got := map[string]int{}, map[string]int{}
	for _, w := range want {
		wanted[w]++
	}
	for _, l := range b.since(mark, level) {
		got[l.level.String()+" "+l.msg]++
	}
	if !maps.Equal(got, wanted) {
		t.Errorf("logged %v, want %v:\n%v", got, wanted, b.since(mark, level))
	}
}

// What an operator should know is told at info, once; what goes on all the time is not.
//
// proves OBS-1
func TestChangesAreLoggedOnceAndReportsNever(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		book := newLogbook()
		one := w.start("one", book.kept)
		w.leads(time.Minute, "one")
		w.pass(time.Second) // until machines were listed: a new group waits for that (SAFE-15)
		w.apply(w.group("web", 3))
		ids := w.up(3)
		w.pass(10 * time.Second)
		lines := book.since(0, slog.LevelInfo)
		if got := count(lines, slog.LevelInfo, "leading", "replica"); got["one"] != 1 || len(got) != 1 {
			t.Errorf("leadership is told %v times", got)
		}
		registered := count(lines, slog.LevelInfo, "agent registered", "instance")
		for _, id := range ids {
			if registered[id] != 1 {
				t.Errorf("the registration of %s is told %d times", id, registered[id])
			}
		}
		// The journal knows all that was decided: each of it is a line.
		decided, logged := map[string]int{}, map[string]int{}
		steps := 0
		for _, e := range w.journal() {
			if e.Record.Group != "" {
				decided[e.Record.Rule+" "+e.Record.Instance+" "+e.Record.What]++
			}
			if e.Record.To != "" {
				steps++
			}
		}
		for _, l := range lines {
			if l.msg == "decided" {
				logged[l.attrs["rule"]+" "+l.attrs["instance"]+" "+l.attrs["what"]]++
			}
			if l.attrs["replica"] != "one" {
				t.Errorf("does not name its replica: %s", l)
			}
		}
		if !maps.Equal(decided, logged) {
			t.Errorf("decided was\n%s\nand logged was\n%s", listed(decided), listed(logged))
		}
		if steps != 15 { // three instances, each pending, creating, booting, checking, running
			t.Errorf("the journal has %d steps of instances", steps)
		}
		book.worst(t, 0, slog.LevelWarn)

		// 120 reports of each agent, 120 lists, two full passes.
		calm := book.mark()
		w.pass(10 * time.Minute)
		book.worst(t, calm, slog.LevelInfo)
		w.unchanged(ids)

		end := book.mark()
		one.stop()
		if got := count(book.since(end, slog.LevelInfo), slog.LevelInfo, "stopped", "replica"); got["one"] != 1 {
			t.Errorf("the end is told %v times", got)
		}
		book.worst(t, end, slog.LevelWarn)
	})
}

func listed(m map[string]int) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%d x %s\n", m[k], k)
	}
	return b.String()
}

// A disturbance is a warning, a refusal an error, and each is told once.
//
// proves OBS-1
func TestTroubleHasItsLevel(t *testing.T) {
	refused := fake.Fault{Times: 1, Err: errors.New("500 internal error")}
	for _, c := range []struct {
		name    string
		trouble func(*world, *replica, *atomic.Bool)
		want    []string
	}{
		{
			"etcd elects a leader", func(w *world, _ *replica, _ *atomic.Bool) { w.db.Faults().ChangeLeader() },
			[]string{"WARN disturbance"},
		},
		{"the provider does not list", func(w *world, _ *replica, _ *atomic.Bool) {
			f := refused
			f.Call, f.Times = fake.CallList, 5
			w.provider.Inject(f)
		}, []string{"ERROR provider does not list its machines: nothing is known of them"}},
		{"the provider does not create", func(w *world, _ *replica, _ *atomic.Bool) {
			f := refused
			f.Call = fake.CallCreate
			w.provider.Inject(f)
			w.provider.Crash(w.ids()[0], "exit 1")
		}, []string{"ERROR provider call failed"}},
		{"the provider does not delete", func(w *world, _ *replica, _ *atomic.Bool) {
			f := refused
			f.Call = fake.CallDelete
			w.provider.Inject(f)
			w.provider.Crash(w.ids()[0], "exit 1")
		}, []string{"ERROR provider call failed"}},
		{"etcd refuses a decision", func(w *world, _ *replica, lose *atomic.Bool) {
			lose.Store(true)
			w.provider.Crash(w.ids()[0], "exit 1")
		}, []string{"ERROR etcd refused a decision", "WARN disturbance"}},
		{"a group is paused: what it would take is held", func(w *world, _ *replica, _ *atomic.Bool) {
			g := w.group("web", 3)
			g.Paused = true
			w.apply(g)
			w.pass(time.Minute)
			g.Paused = false
			w.apply(g)
		}, []string{"WARN held"}},
		{"a machine crashes: that is what coordinators are for", func(w *world, _ *replica, _ *atomic.Bool) {
			w.provider.Crash(w.ids()[0], "exit 1")
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				book := newLogbook()
				var one *replica
				var lose atomic.Bool
				one = w.start("one", book.kept, before(func(boundary, _ string) {
					if boundary == "commit DET-4" && lose.CompareAndSwap(true, false) {
						one.store.Faults().LoseRequest()
					}
				}))
				w.apply(w.group("web", 3))
				w.up(3)
				w.pass(time.Minute)
				mark := book.mark()
				c.trouble(w, one, &lose)
				w.pass(2 * time.Minute)
				w.up(3)
				book.worst(t, mark, slog.LevelWarn, c.want...)
				for _, l := range book.since(mark, slog.LevelError) {
					if l.attrs["error"] == "" {
						t.Errorf("an error without its reason: %s", l)
					}
				}
			})
		})
	}
}

// What is judged of an instance is told at info when it changes, once, and so is that a provider
// answers again. The instance that stays is never spoken of.
//
// proves OBS-1
func TestVerdictsAreToldOnce(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		book := newLogbook()
		w.start("one", book.kept)
		w.apply(w.group("web", 3))
		ids := w.up(3)
		w.pass(5 * time.Minute)
		mark := book.mark()
		w.provider.Crash(ids[0], "exit 1")
		w.silence(ids[1])
		w.until(3*time.Minute, "both are replaced", func() bool {
			return w.settled(3) && !slices.Contains(w.ids(), ids[0]) && !slices.Contains(w.ids(), ids[1])
		})
		w.provider.Inject(fake.Fault{Call: fake.CallList, Times: 5, Err: errors.New("500 internal error")})
		w.pass(5 * time.Minute)
		told := map[string]int{}
		for _, l := range book.since(mark, slog.LevelDebug) {
			if l.msg == "verdict" {
				told[l.level.String()+" "+l.attrs["instance"]+" "+l.attrs["verdict"]]++
				if l.attrs["why"] == "" || l.attrs["rule"] == "" || l.attrs["group"] != "web" {
					t.Errorf("a verdict without its reason: %s", l)
				}
			}
		}
		for _, want := range []string{"INFO " + ids[0] + " dead", "INFO " + ids[1] + " lost"} {
			if told[want] != 1 {
				t.Errorf("%s is told %d times:\n%s", want, told[want], listed(told))
			}
		}
		for text := range told {
			if !strings.HasPrefix(text, "INFO "+ids[0]) && !strings.HasPrefix(text, "INFO "+ids[1]) {
				t.Errorf("told of an instance with which nothing is wrong: %s", text)
			}
		}
		again := count(book.since(mark, slog.LevelInfo), slog.LevelInfo, "provider lists its machines again", "provider")
		if len(again) != 1 || again["mem"] != 1 {
			t.Errorf("that the provider lists again is told %v times", again)
		}
	})
}
