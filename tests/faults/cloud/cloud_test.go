package cloud

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/tests/faults/history"
)

var born = []string{"create", "made 0", "/create | booted 1"}

func TestMachineIsMadeStoppedAndDeleted(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	if w.Zone("web-0") != "b" || w.Address("web-0") != "127.9.9.9" || !slices.Equal(w.Running(), []string{"web-0"}) ||
		!slices.Equal(w.Existing(), []string{"web-0"}) {
		t.Errorf("zone %s, address %s, running %v, existing %v", w.Zone("web-0"), w.Address("web-0"), w.Running(),
			w.Existing())
	}
	w.must(w.as.Stop(t.Context(), "s1", "web-0", time.Minute))
	if left := w.Processes(); len(left) > 0 {
		t.Errorf("it was stopped, and there are %v", left)
	}
	if said := w.Said("web-0"); !strings.Contains(said, "workload has ended") {
		t.Errorf("its agent was not asked to end: %s", said)
	}
	found, err := w.as.List(t.Context(), "s1")
	if err != nil || len(found) != 1 || found[0].State != provider.StateStopped {
		t.Errorf("listed: %v, %v", found, err)
	}
	w.must(w.as.Delete(t.Context(), "s1", "web-0"))
	w.expect("web-0", append(born, "stop", "ended 1 call", "/stop", "delete", "removed 1", "/delete")...)
	if len(w.Existing()) > 0 {
		t.Errorf("there is %v", w.Existing())
	}
}

func TestMachineBootsAgain(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	w.must(w.as.Restart(t.Context(), "s1", "web-0", ""))
	w.await("the second boot", func() bool { return slices.Contains(w.told("web-0"), "booted 2") })
	w.awaitAll("web-0")
	w.must(w.as.Delete(t.Context(), "s1", "web-0"))
	if left := w.Processes(); len(left) > 0 {
		t.Errorf("it was deleted, and there are %v", left)
	}
	told := w.told("web-0")
	// it is answered before, or meanwhile
	told = slices.DeleteFunc(told, func(s string) bool { return s == "/restart" })
	if want := []string{
		"restart", "ended 1 call", "booted 2", "delete", "ended 2 call", "removed 2",
		"/delete",
	}; !slices.Equal(told[4:], want) {
		t.Errorf("told %v", told)
	}
}

func TestCrash(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	w.must(w.Crash("web-0"))
	if left := w.Processes(); len(left) > 0 {
		t.Errorf("it has crashed, and there are %v", left)
	}
	found, err := w.as.List(t.Context(), "s1")
	if err != nil || len(found) != 1 || found[0].State != provider.StateCrashed {
		t.Errorf("listed: %v, %v", found, err)
	}
	w.expect("web-0", append(born, "crashed", "ended 1 fault")...)
	if strings.Contains(w.Said("web-0"), "workload is stopped") {
		t.Error("a machine that crashes ends nothing in order")
	}
	for what, do := range map[string]func(string) error{
		"crash": w.Crash, "freeze": w.Freeze, "thaw": w.Thaw, "kill agent": w.KillAgent,
		"kill workload": w.KillWorkload,
	} {
		if err := do("web-0"); !errors.Is(err, errDown) {
			t.Errorf("%s one that is down: %v", what, err)
		}
	}
}

// The end of a workload is told while its machine is up, and not when that goes down.
func TestAWorkloadThatEndsIsReported(t *testing.T) {
	w := newWorld(t)
	began, both := []history.Step{history.WorkloadBegan}, []history.Step{history.WorkloadBegan, history.WorkloadEnded}
	w.create("web-0")
	w.create("web-1")
	w.await("both workloads", func() bool {
		return slices.Equal(w.workloads("web-0"), began) && slices.Equal(w.workloads("web-1"), began)
	})
	w.must(w.KillAgent("web-1")) // it depends on no agent
	w.must(w.KillWorkload("web-0"))
	w.await("the end of one", func() bool { return slices.Equal(w.workloads("web-0"), both) })
	w.must(w.as.Stop(t.Context(), "s1", "web-1", time.Minute))
	if told := w.workloads("web-1"); !slices.Equal(told, began) {
		t.Errorf("it went with its machine: %v", told)
	}
}

func TestFreeze(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	w.must(w.Freeze("web-0"))
	all := w.awaitAll("web-0")
	for _, pid := range all {
		if !stands(pid) {
			t.Errorf("process %d goes on", pid)
		}
	}
	if err := w.Freeze("web-0"); err == nil {
		t.Error("it was frozen twice")
	}
	w.must(w.Thaw("web-0"))
	for _, pid := range all {
		if stands(pid) {
			t.Errorf("process %d stands still", pid)
		}
	}
	w.expect("web-0", append(born, "frozen", "/frozen")...)
}

// What stands still hears nothing: it is killed when its time is over, or at once.
func TestFrozenMachineGoesAway(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"web-0", "web-1"} {
		w.create(id)
		w.must(w.Freeze(id))
	}
	w.must(w.as.Stop(t.Context(), "s1", "web-0", 50*time.Millisecond))
	w.must(w.as.Delete(t.Context(), "s1", "web-1"))
	if left := w.Processes(); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
	w.expect("web-0", append(born, "frozen", "stop", "ended 1 call", "/frozen", "/stop")...)
	w.expect("web-1", append(born, "frozen", "delete", "ended 1 call", "/frozen", "removed 1", "/delete")...)
}

func TestDeleteCutsAStopShort(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	w.must(w.Freeze("web-0"))
	stopped := make(chan error, 1)
	go func() { stopped <- w.as.Stop(t.Context(), "s1", "web-0", time.Hour) }()
	w.await("the machine being stopped", func() bool {
		found, err := w.as.List(t.Context(), "s1")
		return err == nil && len(found) == 1 && found[0].State == provider.StateStopping
	})
	w.must(w.as.Delete(t.Context(), "s1", "web-0"))
	w.must(<-stopped)
	if left := w.Processes(); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
}

func TestAgentIsStartedAgainInTheSameBoot(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	before, agent := w.awaitAll("web-0"), w.PID("web-0")
	w.must(w.KillAgent("web-0"))
	w.await("another agent", func() bool { pid := w.PID("web-0"); return pid != 0 && pid != agent })
	w.await("the workload being taken up",
		func() bool { return strings.Contains(w.Said("web-0"), "workload of an earlier agent adopted") })
	var kept int
	for _, pid := range w.awaitAll("web-0") {
		if slices.Contains(before, pid) {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d processes of the workload have outlived the agent", kept)
	}
	w.expect("web-0", append(born, "exited", "/exited")...)
}

func TestWorkloadIsKilled(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	w.must(w.KillWorkload("web-0"))
	w.await("its end being noticed", func() bool {
		return strings.Contains(w.Said("web-0"), "workload ended") && len(w.Processes()["web-0"]) == 1
	})
	if err := w.KillWorkload("web-0"); err == nil {
		t.Error("it was killed twice")
	}
	w.must(w.as.Restart(t.Context(), "s1", "web-0", ""))
	w.await("the second boot", func() bool { return slices.Contains(w.told("web-0"), "booted 2") })
	w.awaitAll("web-0")
	if !slices.Contains(w.told("web-0"), "/exited") {
		t.Errorf("it is back: %v", w.told("web-0"))
	}
}

func TestSickness(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	w.must(w.Sicken("web-0"))
	if _, err := os.Stat(filepath.Join(w.cfg.Dir, "web-0", "sick")); err != nil {
		t.Error(err)
	}
	w.must(w.Cure("web-0"))
	w.expect("web-0", append(born, "sick", "/sick")...)
}

// The judge takes a machine whose harm has no end for hurt for good, and asks nothing of it.
func TestSicknessThatDidNotComeOrWentByItselfIsOver(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	file := filepath.Join(w.cfg.Dir, "web-0", "sick")
	w.must(os.Mkdir(file, 0o700)) // so it cannot be written
	if err := w.Sicken("web-0"); err == nil {
		t.Error("a file was written where a directory is")
	}
	w.expect("web-0", append(born, "sick", "/sick")...)
	w.must(os.Remove(file))
	w.must(w.Sicken("web-0"))
	w.must(os.Remove(file))
	w.must(w.Cure("web-0"))
	w.expect("web-0", append(born, "sick", "/sick", "sick", "/sick")...)
}

// A wall clock stays wrong when the agent is started again.
func TestWallClock(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	year := fmt.Sprintf(`"time":"%d-`, time.Now().Add(10*365*24*time.Hour).Year())
	w.must(w.SetClock("web-0", 10*365*24*time.Hour))
	w.await("the clock being wrong", func() bool { return strings.Contains(w.Said("web-0"), year) })
	w.must(w.KillAgent("web-0"))
	before := strings.Count(w.Said("web-0"), year)
	w.await("the clock being wrong still", func() bool { return strings.Count(w.Said("web-0"), year) > before })
}

func TestFaultsOfCallsAndWhatIsWritten(t *testing.T) {
	w := newWorld(t)
	lost := errors.New("the answer was lost")
	w.Inject(fake.Fault{Call: fake.CallCreate, Times: 1, Err: lost, Effect: fake.EffectDone})
	if _, err := w.as.Create(t.Context(), request("web-0")); err == nil ||
		!strings.Contains(err.Error(), lost.Error()) {
		t.Errorf("the answer was lost: %v", err)
	}
	w.awaitAll("web-0")
	w.expect("web-0", "create", "made 0", "/create the answer was lost | booted 1")

	w.Inject(fake.Fault{
		Call: fake.CallCreate, Times: 1, Err: lost, Effect: fake.EffectLate,
		Late: 300 * time.Millisecond,
	})
	if _, err := w.as.Create(t.Context(), request("web-1")); err == nil {
		t.Error("the answer was not lost")
	}
	w.awaitAll("web-1")
	w.expect("web-1", "create", "/create the answer was lost", "made 0", "booted 1")

	w.Inject(fake.Fault{Call: fake.CallCreate, Times: 1, Err: provider.ErrCapacity})
	if _, err := w.as.Create(t.Context(), request("web-2")); !errors.Is(err, provider.ErrCapacity) {
		t.Errorf("there is no room: %v", err)
	}
	w.expect("web-2", "create", "/create out of capacity")

	// One that gives up is told nothing; what it has asked for ends when it would have given up in
	// any case.
	lift := w.Inject(fake.Fault{Call: fake.CallDelete, Hang: true})
	brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := w.as.Delete(brief, "s1", "web-0"); err == nil ||
		!strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("the call hangs: %v", err)
	}
	w.await("the end of the call", func() bool { return slices.Contains(w.told("web-0"), "/delete") })
	lift()
	w.must(w.as.Delete(t.Context(), "s1", "web-0"))
}

// What a call was made to do wrong is written with its end.
func TestHowACallGoesWrongIsWritten(t *testing.T) {
	w := newWorld(t)
	oops, calls := errors.New("oops"), 0
	for want, fault := range map[string]fake.Fault{
		"":                 {Call: fake.CallStop},
		"slow":             {Delay: time.Millisecond},
		"fails":            {Err: oops},
		"fails, done":      {Err: oops, Effect: fake.EffectDone},
		"hangs, done late": {Hang: true, Effect: fake.EffectLate},
	} {
		lift := w.Inject(fault)
		patience := time.Minute
		if fault.Hang {
			patience = 500 * time.Millisecond
		}
		brief, cancel := context.WithTimeout(t.Context(), patience)
		_ = w.as.Delete(brief, "s1", "web-0") // how it went is written
		calls++
		cancel()
		lift()
		var call *history.Call
		w.await("the end of the call", func() bool {
			ended := 0
			for _, e := range w.log.Events() {
				if e.Call != nil && e.Call.Ended {
					call = e.Call
					ended++
				}
			}
			return ended == calls
		})
		if call.Lie != want {
			t.Errorf("written: %q, want %q", call.Lie, want)
		}
	}
}

// An agent that ends in order takes its machine with it, one that breaks down is started again;
// that is told, since it was not asked for.
func TestAgentEndsByItself(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	agent := w.PID("web-0")
	w.must(syscall.Kill(agent, syscall.SIGKILL))
	w.await("another agent", func() bool { return w.PID("web-0") != agent })
	if told := w.forgive(); len(told) != 1 || !strings.Contains(told[0], "ended by itself (signal: killed)") {
		t.Errorf("told %q", told)
	}
	w.await("the other agent being ready",
		func() bool { return strings.Contains(w.Said("web-0"), "workload of an earlier agent adopted") })
	w.must(syscall.Kill(w.PID("web-0"), syscall.SIGTERM))
	w.await("the machine being down", func() bool { return slices.Contains(w.told("web-0"), "ended 1 self") })
	w.await("the machine being listed so", func() bool {
		found, err := w.as.List(t.Context(), "s1")
		return err == nil && len(found) == 1 && found[0].State == provider.StateStopped
	})
	if left := w.Processes(); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
	w.expect("web-0", append(born, "ended 1 self")...)
}

func TestAgentThatBreaksDownIsReported(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	log, err := os.OpenFile(w.logOf("web-0"), os.O_APPEND|os.O_WRONLY, 0)
	w.must(err)
	_, err = log.WriteString("panic: of a test\n")
	w.must(errors.Join(err, log.Close()))
	w.must(w.as.Delete(t.Context(), "s1", "web-0"))
	if told := w.forgive(); len(told) != 1 || !strings.Contains(told[0], "the agent of web-0 broke down") {
		t.Errorf("told %q", told)
	}
}

// A machine is told apart by the address that it comes from.
func TestAgentComesFromItsMachinesAddress(t *testing.T) {
	w := newWorld(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	w.must(err)
	defer l.Close()
	req := request("web-0")
	req.Bootstrap.Coordinators = []string{l.Addr().String()}
	_, err = w.as.Create(t.Context(), req)
	w.must(err)
	conn, err := l.Accept()
	w.must(err)
	defer conn.Close()
	if from, _, _ := net.SplitHostPort(conn.RemoteAddr().String()); from != "127.9.9.9" {
		t.Errorf("it comes from %s", from)
	}
}

func TestLies(t *testing.T) {
	w := newWorld(t)
	w.create("web-0")
	w.Lie(fake.Lie{Kind: fake.Empty, Times: 1})
	lift := func() {}
	for _, c := range []struct {
		want int
		lie  string
		then func()
	}{
		{0, "empty", func() {}},
		{1, "", func() { lift = w.Lie(fake.Lie{Kind: fake.Odd, Delay: 10 * time.Millisecond}) }},
		{2, "odd", func() { lift() }},
		{1, "", func() { w.Lie(fake.Lie{Kind: fake.Empty}); w.Heal() }},
		{1, "", func() {}},
	} {
		found, err := w.as.List(t.Context(), "s1")
		if err != nil || len(found) != c.want {
			t.Errorf("listed %d, %v, want %d", len(found), err, c.want)
		}
		var last history.Call
		for _, e := range w.log.Events() {
			if e.Call != nil && e.Call.Method == history.List && e.Call.Ended {
				last = *e.Call
			}
		}
		if last.Listed != c.want || last.Lie != c.lie || last.Replica != "a" {
			t.Errorf("written: %+v, want %d, %q", last, c.want, c.lie)
		}
		c.then()
	}
}

// If the test is killed, its machines end all the same, frozen ones too.
func TestKeeperEndsWhatIsLeft(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.AgentAgain = time.Hour })
	w.create("web-0")
	w.create("web-1")
	w.must(w.Freeze("web-1"))
	w.must(w.keeps.Close())
	w.await("the end of all", func() bool { return len(w.Processes()) == 0 })
	w.await("the end of both being noticed", func() bool { return len(w.Failures()) == 2 })
	w.forgive()
}

func TestManyMachinesAtOnce(t *testing.T) {
	const many = 100
	w := newWorld(t)
	each := func(do func(string) error) time.Duration {
		begun := time.Now()
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				if err := do(fmt.Sprintf("web-%d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return time.Since(begun)
	}
	made := each(func(id string) error { _, err := w.as.Create(t.Context(), request(id)); return err })
	begun := time.Now()
	w.await("all of them", func() bool {
		running := 0
		for _, pids := range w.Processes() {
			running += len(pids)
		}
		return running == 3*many
	})
	booted := time.Since(begun)
	frozen, thawed := each(w.Freeze), each(w.Thaw)
	deleted := each(func(id string) error { return w.as.Delete(t.Context(), "s1", id) })
	t.Logf("%d machines made in %s, running after %s more, frozen in %s, thawed in %s, deleted in %s", many, made,
		booted, frozen, thawed, deleted)
	if left := w.Processes(); len(left) > 0 || len(w.Existing()) > 0 {
		t.Errorf("there are %v, %v", left, w.Existing())
	}
}
