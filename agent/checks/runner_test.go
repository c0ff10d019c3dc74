package checks

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// scene is a runner whose probes do what a test says, in a synctest bubble.
type scene struct {
	t      *testing.T
	runner *Runner
	began  time.Time

	mu    sync.Mutex
	runs  map[string][]time.Duration // by the check's name: when a run was begun
	now   map[string]int             // runs under way
	does  map[string]probe
	vars  map[string]string // that commands saw last
	cross []string          // what went wrong
}

func inScene(t *testing.T, tell func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Place: workload.Config{Facts: map[string]string{"port": "20001"}}},
			Deps{Logger: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0.5 }})
		if err != nil {
			t.Fatal(err)
		}
		s := &scene{
			t: t, runner: r, began: time.Now(), runs: map[string][]time.Duration{}, now: map[string]int{},
			does: map[string]probe{},
		}
		r.prepare = s.prepare
		tell(s)
		r.Close()
		for _, c := range s.cross {
			t.Error(c)
		}
	})
}

func (s *scene) prepare(spec *protocol.CheckSpec, _ workload.Config, vars map[string]string) (probe, error) {
	name := spec.GetName()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vars = vars
	return func(ctx context.Context) Result {
		s.mu.Lock()
		s.runs[name] = append(s.runs[name], time.Since(s.began))
		s.now[name]++
		if s.now[name] > 1 {
			s.cross = append(s.cross, fmt.Sprintf("%d runs of %s at once", s.now[name], name))
		}
		does := s.does[name]
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.now[name]--
			s.mu.Unlock()
		}()
		if does == nil {
			return ""
		}
		return does(ctx)
	}, nil
}

// begun returns when each run of a check was.
func (s *scene) begun(name string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs[name])
}

// act has the runs of a check do this from now on.
func (s *scene) act(name string, does probe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.does[name] = does
}

func always(r Result) probe { return func(context.Context) Result { return r } }

// spec returns a check every 2s of 1s at most, with thresholds of 2.
func spec(name string) *protocol.CheckSpec {
	return &protocol.CheckSpec{
		Name: name, Interval: durationpb.New(2 * time.Second), Timeout: durationpb.New(time.Second),
		UnhealthyThreshold: 2, HealthyThreshold: 2,
		Kind: &protocol.CheckSpec_Tcp{Tcp: &protocol.TCPCheck{Port: "${port}"}},
	}
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// stands compares the state of every check: name, H or U, ? while undecided, and why.
func (s *scene) stands(what string, want ...string) {
	s.t.Helper()
	var got []string
	for _, st := range s.runner.States() {
		line := st.Name + " " + map[bool]string{true: "H", false: "U"}[st.Healthy]
		if st.Pending {
			line += "?"
		}
		got = append(got, strings.TrimSpace(line+" "+st.Why))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// changed reports whether a verdict was signaled since the last call.
func (s *scene) changed() bool {
	select {
	case <-s.runner.Changed():
		return true
	default:
		return false
	}
}

// A new instance is healthy within healthy_threshold × interval, although its first run came too
// early.
//
// proves DET-9, DET-1
func TestFirstRunIsAtOnceAndVerdictsAreReported(t *testing.T) {
	inScene(t, func(s *scene) {
		s.act("a", always("refused"))
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{spec("a")}})
		pass(0)
		s.stands("after the first run", "a U? refused")
		if s.changed() {
			t.Error("something is decided")
		}
		s.act("a", always(""))
		pass(4 * time.Second)
		s.stands("after two intervals", "a H")
		if !s.changed() {
			t.Error("the verdict is not told")
		}
		pass(4 * time.Second)
		if s.changed() {
			t.Error("nothing is new")
		}
		if got, want := s.begun("a"), []time.Duration{
			0, 1500 * time.Millisecond, 3500 * time.Millisecond,
			5500 * time.Millisecond, 7500 * time.Millisecond,
		}; !slices.Equal(got, want) {
			t.Errorf("runs at %v, want %v", got, want)
		}
		s.act("a", always("ill"))
		pass(4 * time.Second)
		s.stands("ill", "a U ill")
		if !s.changed() {
			t.Error("the verdict is not told")
		}
	})
}

// A check that never ends, whatever signal it gets, fails in time, delays no other check, and is
// not started a second time.
//
// proves DET-9
func TestHungCheckHarmsItselfAlone(t *testing.T) {
	inScene(t, func(s *scene) {
		free := make(chan struct{})
		s.act("hung", func(context.Context) Result { <-free; return "" })
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{spec("hung"), spec("well")}})
		pass(2*time.Second + time.Millisecond)
		s.stands("at first", "hung U? timed out", "well H")
		pass(time.Hour)
		s.stands("an hour later", "hung U timed out", "well H")
		hung, well := len(s.begun("hung")), len(s.begun("well"))
		if hung != 1 || well < 1800 {
			t.Errorf("%d runs of the one that hangs, %d of the other", hung, well)
		}
		s.act("hung", nil)
		close(free)
		pass(6 * time.Second)
		s.stands("it got free", "hung H", "well H")
	})
}

// proves DET-9
func TestHungCheckMakesAHealthyInstanceUnhealthy(t *testing.T) {
	inScene(t, func(s *scene) {
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{spec("a")}})
		pass(10 * time.Second)
		s.stands("well", "a H")
		free := make(chan struct{})
		s.act("a", func(context.Context) Result { <-free; return "" })
		pass(6 * time.Second)
		s.stands("it hangs", "a U timed out")
		close(free)
		pass(0)
	})
}

// proves DET-9
func TestWantKeepsWhatIsAsBefore(t *testing.T) {
	inScene(t, func(s *scene) {
		a, b := spec("a"), spec("b")
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{a, b}})
		pass(10 * time.Second)
		since := s.runner.States()[0].Since
		s.act("b", always("ill"))
		s.act("c", always("ill"))
		other := spec("b")
		other.HealthyThreshold = 3
		for range 3 {
			s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{spec("c"), other, a}, Assume: true})
			s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{spec("c"), other, a}, Assume: false})
		}
		pass(0)
		s.stands("changed", "c H? ill", "b H? ill", "a H")
		if !s.runner.States()[2].Since.Equal(since) {
			t.Error("what is as before has started over")
		}
		pass(4 * time.Second)
		s.stands("checked", "c U ill", "b U ill", "a H")
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{a}})
		s.stands("gone", "a H")
		pass(0)
		n := len(s.begun("b"))
		pass(time.Minute)
		if len(s.begun("b")) != n {
			t.Error("a check that is not wanted any more goes on")
		}
	})
}

// A run of a check that was changed ends before the first one of the new definition begins, and its
// result is none.
//
// proves DET-9
func TestChangedCheckWaitsForItsLastRun(t *testing.T) {
	inScene(t, func(s *scene) {
		free := make(chan struct{})
		s.act("a", func(context.Context) Result { <-free; return "of long ago" })
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{spec("a")}})
		pass(0)
		s.act("a", nil)
		other := spec("a")
		other.HealthyThreshold = 3
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{other}})
		pass(endWait - time.Millisecond)
		s.stands("while the old one hangs", "a U? not checked yet")
		close(free)
		pass(10 * time.Second)
		s.stands("once it has ended", "a H")
	})
}

// A run may be stuck in the kernel, for example on a file of a disk that hangs. That prevents
// neither another check in its place nor the end of the agent.
//
// proves DET-9, DET-8
func TestRunThatNeverEndsHoldsUpNothing(t *testing.T) {
	inScene(t, func(s *scene) {
		stuck, kept := make(chan struct{}), spec("a")
		s.act("a", func(context.Context) Result { <-stuck; return "" })
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{kept}})
		pass(time.Second)
		better := proto.CloneOf(kept)
		better.Interval = durationpb.New(3 * time.Second)
		s.act("a", nil)
		s.mu.Lock()
		s.now["a"]-- // that one is not counted
		s.mu.Unlock()
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{better}})
		pass(endWait + 10*time.Second)
		s.stands("done in its place", "a H")
		began := time.Now()
		s.runner.Close()
		if took := time.Since(began); took > endWait {
			t.Errorf("closing took %s", took)
		}
		s.mu.Lock()
		s.now["a"]++
		s.mu.Unlock()
		close(stuck)
	})
}

// proves DET-9
func TestVariablesOfACommandChange(t *testing.T) {
	inScene(t, func(s *scene) {
		a := spec("a")
		a.Kind = &protocol.CheckSpec_Exec{Exec: &protocol.ExecCheck{Run: []string{"check"}}}
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{a}, Vars: map[string]string{"greeting": "hi"}})
		pass(10 * time.Second)
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{a}, Vars: map[string]string{"greeting": "hello"}})
		s.stands("it keeps its verdict", "a H")
		if s.vars["greeting"] != "hello" {
			t.Errorf("the command sees %v", s.vars)
		}
		pass(10 * time.Second)
	})
}

// proves DET-9
func TestKnownVerdictsAreTakenUp(t *testing.T) {
	inScene(t, func(s *scene) {
		known := map[string]Verdict{
			"a": {Healthy: true, Since: s.began.Add(-time.Hour)},
			"b": {Why: "ill", Since: s.began},
		}
		s.act("a", always("refused"))
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{spec("a"), spec("b"), spec("c")}, Known: known})
		s.stands("at once", "a H", "b U ill", "c U? not checked yet")
		pass(2 * time.Second)
		s.stands("after a run of each", "a H refused", "b U ill", "c H")
		pass(4 * time.Second)
		s.stands("after a threshold", "a U refused", "b H", "c H")
		if at := s.begun("a")[0]; at != time.Second {
			t.Errorf("the first run is at %s: checks of an agent that restarts would be done all at once", at)
		}
	})
}

// proves DET-9
func TestTextsAreExpanded(t *testing.T) {
	inScene(t, func(s *scene) {
		s.runner.prepare = func(spec *protocol.CheckSpec, _ workload.Config, _ map[string]string) (probe, error) {
			return always(Result(fmt.Sprint(spec.GetTcp().GetPort(), spec.GetHttp().GetHeaders(),
				spec.GetHttp().GetStatus(), spec.GetHttp().GetTls().GetCaFile()))), nil
		}
		a := spec("tcp:${port}")
		b := spec("b")
		b.Kind = &protocol.CheckSpec_Http{Http: &protocol.HTTPCheck{
			Headers: map[string]string{"X": "${greeting} $${x}", "Y": "y"}, Status: []string{"${status}"},
			Tls: &protocol.TLSOptions{CaFile: "/${greeting}"},
		}}
		c := spec("c")
		c.GetTcp().Port = "${prot}"
		s.runner.Want(Wanted{
			Specs: []*protocol.CheckSpec{a, b, c},
			Vars:  map[string]string{"greeting": "hi", "status": "200"},
		})
		pass(0)
		s.stands("expanded", "tcp:20001 U? 20001map[] []", "b U? map[X:hi ${x} Y:y] [200]/hi",
			"c U? expand check c: port: ${prot}: there is no var or fact of that name (there are: greeting, port, status); "+
				"to pass it on literally, write $${prot}")
	})
}

// proves SEC-5
func TestWhyIsBoundedAndText(t *testing.T) {
	inScene(t, func(s *scene) {
		s.act("a", always(Result(strings.Repeat("ä\xff", 1000))))
		s.runner.Want(Wanted{Specs: []*protocol.CheckSpec{spec("a")}})
		pass(0)
		if why := s.runner.States()[0].Why; len(why) > 3*maxWhy || strings.ToValidUTF8(why, "") != why {
			t.Errorf("why is %d bytes: %q", len(why), why)
		}
	})
}
