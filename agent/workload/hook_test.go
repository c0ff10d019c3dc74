package workload

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

type hookTest struct {
	*testing.T
	*Hook
	cfg Config
	log *logged
}

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newHookTest(t *testing.T) hookTest {
	t.Helper()
	return nextHook(t, Config{
		Facts: map[string]string{"port": "8080"}, Dir: t.TempDir(), StateDir: t.TempDir(), Boot: "boot-1",
		Instance: "web-0-a", Group: "web", Shard: "shard-1",
	})
}

// nextHook is another agent's Hook on the same machine. What is left of it ends with the test.
func nextHook(t *testing.T, cfg Config) hookTest {
	t.Helper()
	log := &logged{}
	h, err := NewHook(cfg, Deps{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close(false)
		if r, known, _ := h.records.read(); known {
			h.discard(r)
		}
	})
	return hookTest{t, h, cfg, log}
}

// order returns a drain whose hook is this test binary in a role.
func order(t *testing.T, token, role string) *Drain {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Drain{
		Token: token, Run: []string{exe, "--port=${port}", "${greeting}"},
		Vars: map[string]string{playVar: role, "greeting": "hello"}, Timeout: time.Hour,
	}
}

func (h hookTest) eventually(what string, is func() bool) {
	h.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			h.Fatalf("%s: not within %s; output %q, log:\n%s", what, patience, h.output(), h.log)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (h hookTest) output() string {
	data, _ := os.ReadFile(h.out.path)
	return string(data)
}

// says waits until the hook has written this, and returns its process ID.
func (h hookTest) says(text string) int {
	h.Helper()
	h.eventually("hook says "+text, func() bool { return strings.Contains(h.output(), text) })
	var pid int
	h.eventually("hook is recorded", func() bool {
		r, known, _ := h.records.read()
		pid = r.PID
		return known && lives(pid)
	})
	return pid
}

// ends waits until Ended has the token of a drain.
func (h hookTest) ends(token string) {
	h.Helper()
	select {
	case <-h.Changed():
	case <-time.After(patience):
		h.Fatalf("no end within %s; output %q, log:\n%s", patience, h.output(), h.log)
	}
	if got := h.Ended(); got != token {
		h.Errorf("hook of drain %q has ended, want %q", got, token)
	}
}

// idle waits until nothing runs, and checks that nothing was signaled.
func (h hookTest) idle() {
	h.Helper()
	h.mu.Lock()
	over := h.last.over
	h.mu.Unlock()
	select {
	case <-over:
	case <-time.After(patience):
		h.Fatalf("hook is not over within %s; log:\n%s", patience, h.log)
	}
	select {
	case <-h.Changed():
		h.Errorf("end of drain %q was told", h.Ended())
	default:
	}
}

// proves DRAIN-1
func TestEndOfTheHookIsReported(t *testing.T) {
	h := newHookTest(t)
	d := order(t, "d1", "fail")
	h.Want(d)
	h.ends("d1")
	for _, want := range []string{"token=d1", "code=3", "ended with exit code 3", "about to fail"} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("log does not say %q:\n%s", want, h.log)
		}
	}
	if h.output() != "about to fail\nfor a reason\n" {
		t.Errorf("output that was kept is %q", h.output())
	}
	h.Want(d)
	h.idle()
	if !inTime(patience, h.records.written) {
		t.Fatal("the end is not recorded")
	}
	// Nor does an agent run it again whose predecessor could not say that it has ended.
	next := nextHook(t, h.cfg)
	next.Want(d)
	next.ends("d1")
	if log := next.log.String(); strings.Contains(log, "drain hook started") ||
		strings.Contains(log, "no agent was there") {
		t.Errorf("next agent says\n%s", log)
	}
}

// proves DRAIN-1
func TestHookSeesVarsAndFacts(t *testing.T) {
	h := newHookTest(t)
	h.Want(order(t, "d1", "look"))
	h.ends("d1")
	for _, want := range []string{
		"dir " + h.cfg.Dir, "env greeting=hello", "env LEASEHOLD_INSTANCE=web-0-a",
		"arg --port=8080", "arg hello",
	} {
		if !strings.Contains(h.output(), want+"\n") {
			t.Errorf("hook does not see %q", want)
		}
	}
}

// proves DRAIN-1
func TestHookIsKilledWhenItsTimeIsOver(t *testing.T) {
	h := newHookTest(t)
	for timeout := 50 * time.Millisecond; ; timeout *= 2 {
		token := "within " + timeout.String()
		d := order(t, token, "stubborn")
		d.Timeout = timeout
		h.Want(d)
		h.ends(token)
		if !strings.Contains(h.log.String(), "token=\""+token+"\" why=\"it could not be started") {
			break
		}
		// A busy machine has not even started it by then.
	}
	r, known, _ := h.records.read()
	if !known || lives(r.PID) {
		t.Errorf("recorded: %t, lives: %t", known, lives(r.PID))
	}
	if !strings.Contains(h.log.String(), "killed when its time was over") {
		t.Errorf("log is\n%s", h.log)
	}
}

// proves DET-15
func TestHookOfADrainThatIsCalledOffIsKilled(t *testing.T) {
	h := newHookTest(t)
	h.Want(order(t, "d1", "family"))
	pid := h.says("ready") // the child's
	var child int
	h.eventually("the hook names its child", func() bool { // before or after the child's own word
		_, rest, _ := strings.Cut(h.output(), "child ")
		_, err := fmt.Sscanf(rest, "%d\n", &child)
		return err == nil
	})
	h.Want(order(t, "d1", "family"))
	if !lives(pid) {
		t.Fatal("the same order again has ended the hook")
	}
	h.Want(nil)
	h.idle()
	h.eventually("hook and its child end", func() bool { return !lives(pid) && !lives(child) })
	if h.Ended() != "" {
		t.Errorf("drain %q is told to have ended, though it was called off", h.Ended())
	}
	h.Want(order(t, "d2", "fail"))
	h.ends("d2")
}

// proves DRAIN-1
func TestAnotherDrainTakesOver(t *testing.T) {
	h := newHookTest(t)
	h.Want(order(t, "d1", "stubborn"))
	pid := h.says("ready")
	h.Want(order(t, "d2", "fail"))
	h.ends("d2")
	if lives(pid) {
		t.Error("the hook of the drain before lives")
	}
}

// proves DRAIN-1
func TestHookIsTakenUpByTheNextAgent(t *testing.T) {
	d := order(t, "d1", "stubborn")
	for name, c := range map[string]struct {
		first func(t *testing.T, pid int) // before the next agent
		then  func(h hookTest, pid int)   // what that does
	}{
		"it ends": {
			then: func(h hookTest, pid int) {
				h.Want(d)
				h.eventually("hook is taken up",
					func() bool { return strings.Contains(h.log.String(), "adopted") })
				kill(h.T, pid)
				h.ends("d1")
			},
		},
		"it ended unseen": {
			first: func(t *testing.T, pid int) { kill(t, pid) },
			then:  func(h hookTest, _ int) { h.Want(d); h.ends("d1") },
		},
		"it was called off": {then: func(h hookTest, _ int) { h.Want(nil); h.idle() }},
		"another drain":     {then: func(h hookTest, _ int) { h.Want(&Drain{Token: "d2"}); h.ends("d2") }},
		"its time is over": {
			then: func(h hookTest, _ int) {
				r, _, _ := h.records.read()
				r.Begun = time.Now().Add(-2 * time.Hour)
				if err := writeRecord(h.records.path, r); err != nil {
					h.Fatal(err)
				}
				h.Want(d)
				h.ends("d1")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := newHookTest(t)
			first.Want(d)
			pid := first.says("ready")
			first.Close(true)
			if !lives(pid) {
				t.Fatal("hook ended when it was left")
			}
			next := nextHook(t, first.cfg)
			if c.first != nil {
				c.first(t, pid)
				next.eventually("hook ends", func() bool { return !lives(pid) })
			}
			c.then(next, pid)
			next.eventually("hook is gone", func() bool { return !lives(pid) })
			if strings.Contains(next.log.String(), "drain hook started") {
				t.Errorf("hook was started again:\n%s", next.log)
			}
		})
	}
}

// proves DRAIN-1
func TestNextBootRunsTheHookAgain(t *testing.T) {
	first := newHookTest(t)
	d := order(t, "d1", "stubborn")
	first.Want(d)
	pid := first.says("ready")
	first.Close(true)
	cfg := first.cfg
	cfg.Boot = "boot-2"
	next := nextHook(t, cfg)
	next.Want(d)
	next.eventually("hook runs again", func() bool {
		r, known, _ := next.records.read()
		return known && r.Boot == "boot-2" && r.PID != pid && lives(r.PID)
	})
	if lives(pid) {
		t.Error("hook of the former boot lives beside it")
	}
}

// proves DRAIN-1
func TestHookThatCannotRunHoldsNothingUp(t *testing.T) {
	for name, c := range map[string]struct {
		run  []string
		want string
	}{
		"none":            {nil, "drain has no hook"},
		"no such program": {[]string{"/nowhere/drain"}, "/nowhere/drain"},
		"unknown name":    {[]string{"./drain", "${prot}"}, "drain.hook[1]: ${prot}"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHookTest(t)
			h.Want(&Drain{Token: "d1", Run: c.run, Timeout: time.Hour})
			h.ends("d1")
			if !strings.Contains(h.log.String(), c.want) {
				t.Errorf("log does not say %q:\n%s", c.want, h.log)
			}
		})
	}
}

func TestHookEndsWithTheAgent(t *testing.T) {
	h := newHookTest(t)
	h.Want(order(t, "d1", "stubborn"))
	pid := h.says("ready")
	h.Close(false)
	if lives(pid) || h.Ended() != "" {
		t.Errorf("hook lives: %t, told to have ended: %q", lives(pid), h.Ended())
	}
	h.Want(order(t, "d2", "stubborn"))
	if h.last.Token == "d2" {
		t.Error("a hook was begun after Close")
	}
}
