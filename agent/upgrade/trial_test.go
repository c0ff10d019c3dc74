package upgrade

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A trial that is recorded and has not begun is undone when its offer is withdrawn, or when it
// would begin too late: then the outcome says so.
//
// proves PROV-7
func TestTrialsThatDoNotBegin(t *testing.T) {
	const program = "#!/bin/sh\nexit 0\n"
	idle := func(m *Manager) func() bool {
		return func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return !m.beginning
		}
	}
	expire := func(m *Manager) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.until = time.Now()
	}
	for name, c := range map[string]struct {
		left     time.Duration
		recorded bool // the trial is, before it happens
		happens  func(*Manager)
		why      string // of the outcome; "": there is none
	}{
		"withdrawn":                  {recorded: true, happens: func(m *Manager) { m.Want(nil) }},
		"withdrawn as it is written": {happens: func(m *Manager) { m.Begin(); m.Want(nil) }},
		"late": {
			left: time.Minute + backTime, happens: func(m *Manager) { m.Begin() }, why: "ends too soon",
		},
		"late, though recorded": {recorded: true, happens: expire, why: "ends too soon"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.serve(program)
			m, end := b.manager()
			o := b.offer("one", b.statement("v1.1.0", program))
			o.Left = c.left
			m.Want(&o)
			b.await(m, "the download", m.Ready)
			if c.recorded {
				m.Begin()
				b.await(m, "the trial", func() bool { return m.Trial() != nil })
			}
			c.happens(m)
			if m.Trial() != nil && c.recorded {
				t.Error("the trial stands")
			}
			b.await(m, "the end of writing", idle(m))
			if m.Trial() != nil || m.Ready() {
				t.Error("it is tried or ready still")
			}
			end()
			s := b.place.read()
			if s.Trial != nil || (s.Last != nil) != (c.why != "") || s.Last != nil && !strings.Contains(s.Last.Why, c.why) {
				t.Errorf("recorded: %+v, %+v", s.Trial, s.Last)
			}
		})
	}
}

// tried returns a bench whose trial of a program is recorded.
func tried(t *testing.T, program string) (*bench, *Trial) {
	t.Helper()
	b := newBench(t)
	b.serve(program)
	m, end := b.manager()
	o := b.offer("one", b.statement("v1.1.0", program))
	m.Want(&o)
	b.await(m, "the download", m.Ready)
	m.Begin()
	b.await(m, "the trial", func() bool { return m.Trial() != nil })
	end()
	return b, m.Trial()
}

// The old program judges: what acknowledges and leaves stays; what does not start, ends, hangs or
// does not leave is taken back. Both are there after a restart.
//
// proves PROV-7
func TestTrials(t *testing.T) {
	for name, test := range map[string]struct {
		program string
		within  time.Duration
		leave   time.Duration
		why     string // "": it stays
	}{
		"acknowledged, and hangs while it leaves": {
			program: strings.Replace(acknowledges, "exit 0", "exec sleep 1000", 1), leave: 50 * time.Millisecond,
			why: "did not leave within 50ms",
		},
		"acknowledged": {program: acknowledges},
		"ends at once": {program: "#!/bin/sh\nexit 3\n", why: "ended too early: exit status 3"},
		"ends in order, unacknowledged": {
			program: "#!/bin/sh\nexit 0\n", why: "ended before it was acknowledged",
		},
		"crashes though acknowledged": {
			program: strings.Replace(acknowledges, "exit 0", "kill -SEGV $$", 1), why: "ended too early: signal",
		},
		"hangs":               {program: hangs, within: 50 * time.Millisecond, why: "not acknowledged within 50ms"},
		"is of another world": {program: "\x7fELF nonsense", why: "could not be started"},
	} {
		t.Run(name, func(t *testing.T) {
			b, trial := tried(t, test.program)
			if test.within > 0 {
				trial.Within = test.within
			}
			trial.Leave = test.leave
			turns := 0
			next, err := trial.Run(t.Context(), nil, os.Environ(), func() { turns++ })
			if err != nil || (next == "") != (test.why != "") {
				t.Fatalf("next %q, %v", next, err)
			}
			if turns == 0 && test.why != "could not be started" {
				t.Error("it gave no sign of life")
			}
			if start := b.place.Start(); start != next {
				t.Errorf("a start runs %q, want %q", start, next)
			}
			last := New(b.place, Deps{}).Last()
			want := Outcome{Token: "one", Version: "v1.1.0", Result: Installed}
			if test.why != "" {
				want.Result = Back
			}
			if last == nil || last.Token != want.Token || last.Result != want.Result || !strings.Contains(last.Why, test.why) {
				t.Errorf("outcome %+v", last)
			}
			left, _ := filepath.Glob(filepath.Join(b.place.Dir, "*"))
			if most := map[bool]int{true: 2, false: 1}[next != ""]; len(left) != most {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// The end of the agent is passed on to the program on trial, and decides nothing.
//
// proves PROV-7
func TestATrialIsInterrupted(t *testing.T) {
	_, trial := tried(t, hangs)
	ctx, cancel := context.WithCancel(t.Context())
	next, err := trial.Run(ctx, nil, os.Environ(), cancel)
	if next != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("next %q, %v", next, err)
	}
}

// A program on trial that is terminated has the time that its workload may take to end, and not
// only the time in which an acknowledged one has to leave.
//
// proves PROV-7
func TestAnOrderlyEndOfATrialIsNotCutShort(t *testing.T) {
	for name, c := range map[string]struct {
		program    string
		leave, end time.Duration
		orderly    bool
	}{
		"in order": {
			program: "trap 'read x <PIPE; : >DONE; exit 0' TERM", leave: time.Millisecond, end: time.Hour, orderly: true,
		},
		"never": {program: "trap '' TERM", leave: time.Hour, end: time.Millisecond},
		"never, though acknowledged": {
			program: `trap '' TERM; : >"$LEASEHOLD_UPGRADE_TRIAL"`, leave: time.Millisecond, end: time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			pipe, done, ready := filepath.Join(dir, "pipe"), filepath.Join(dir, "done"), filepath.Join(dir, "ready")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			program := strings.NewReplacer("PIPE", pipe, "DONE", done).Replace(c.program)
			_, trial := tried(t, "#!/bin/sh\n"+program+"\n: >"+ready+"\nwhile :; do sleep 0.01; done\n")
			trial.Leave, trial.End = c.leave, c.end
			ctx, cancel := context.WithCancel(t.Context())
			turns := 0 // since it was terminated
			next, _ := trial.Run(ctx, nil, os.Environ(), func() {
				if _, err := os.Stat(ready); err == nil {
					cancel()
				}
				if ctx.Err() == nil {
					return
				}
				if turns++; turns == 3 && c.orderly { // longer than an acknowledged one has
					if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
						_, _ = f.WriteString("end\n")
						t.Cleanup(func() { _ = f.Close() })
					}
				}
			})
			if next != "" {
				t.Errorf("next %q", next)
			}
			if _, err := os.Stat(done); (err == nil) != c.orderly {
				t.Errorf("ended in order: %t", err == nil)
			}
		})
	}
}

// Wherever a machine dies, the next start finishes the upgrade or undoes it: only a trial whose
// program was acknowledged is kept.
//
// proves PROV-7
func TestDyingAtEachStep(t *testing.T) {
	b, trial := tried(t, acknowledges)
	program := trial.state.Trial.Program.File
	content, err := os.ReadFile(b.place.path(program))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) func(dir string) {
		return func(dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := func(s state) func(dir string) {
		return func(dir string) {
			if err := (&Place{Dir: dir}).write(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		found []func(dir string)
		runs  bool // the new program
		last  Result
	}{
		"before anything":      {},
		"during the download":  {found: []func(string){write(program+".new", content[:3])}},
		"after the download":   {found: []func(string){write(program, content)}},
		"during the trial":     {found: []func(string){write(program, content), state(trial.state)}, last: Back},
		"of half a state file": {found: []func(string){write(program, content), write(stateFile, []byte(`{"sch`))}},
		"after the acknowledgement": {
			found: []func(string){write(program, content), state(trial.state), write(ackFile, nil)}, runs: true, last: Installed,
		},
		"after it was recorded": {
			found: []func(string){write(program, content), state(trial.state.won()), write(ackFile, nil)},
			runs:  true, last: Installed,
		},
		"and the program is spoiled": {
			found: []func(string){write(program, append([]byte("x"), content[1:]...)), state(trial.state.won())},
			last:  Installed,
		},
		"and the program is gone": {found: []func(string){state(trial.state.won())}, last: Installed},
		"after it went back": {
			found: []func(string){write(program, content), state(trial.state.lost("no"))}, last: Back,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := *b.place
			p.Dir = t.TempDir()
			for _, f := range test.found {
				f(p.Dir)
			}
			write("data.db", nil)(p.Dir) // a workload may run here
			for range 2 {                // a second start decides the same
				if _, err := os.Stat(filepath.Join(p.Dir, "data.db")); err != nil {
					t.Error(err)
				}
				if runs := p.Start(); (runs != "") != test.runs {
					t.Errorf("runs %q", runs)
				}
				if last := p.read().Last; (last == nil) != (test.last == "") || last != nil && last.Result != test.last {
					t.Errorf("outcome %+v", last)
				}
			}
			left, _ := filepath.Glob(filepath.Join(p.Dir, "*"))
			if len(left) > 3 || len(left) == 3 && !test.runs {
				t.Errorf("left: %v", left)
			}
		})
	}
}
