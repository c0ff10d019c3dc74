package scenario

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

const forGood = "for good"

// lasting reads how long an event lasts; 0: it never ends by itself.
func (f *fields) lasting(doc string) time.Duration {
	return f.length("for", forGood, time.Second, longest, doc)
}

// forWords formats how long an event lasts, for the end of a sentence.
func forWords(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return " for " + words(d)
}

// later runs a function when an event ends, if it ends.
func (st *stage) later(d time.Duration, do func()) {
	if d > 0 {
		st.w.At(st.w.Now().Add(d), do)
	}
}

// machineKinds are failures of machines and their agents.
func machineKinds() []Kind {
	return []Kind{
		{"kill", "", "Machines end without warning.", readKill},
		{
			"lost_leases", "", "Agents cannot reach any coordinator; their machines keep running.",
			readSilent("machine", "machines", "cut off", (*sim.World).Cut),
		},
		{
			"freeze", "", "Agents freeze, and their streams do not break.",
			readSilent("agent", "agents", "frozen", (*sim.World).Freeze),
		},
		{"unhealthy", "", "Checks fail.", readUnhealthy},
		{"workload_exits", "", "Workloads end.", readExits},
		{"spot_notice", "", "Providers give notice that they will reclaim machines, and do.", readNotice},
		{"goodbye", "", "Agents say goodbye, and then shut down or restart as announced.", readGoodbye},
	}
}

func readKill(f *fields) (text, time.Duration, func(*stage) string) {
	t := f.target("machine", "machines")
	return text{target: &t, after: " killed"}, 0, func(st *stage) string {
		return st.each(t, present, st.w.Kill)
	}
}

func readSilent(one, many, what string, do func(*sim.World, string)) reader {
	return func(f *fields) (text, time.Duration, func(*stage) string) {
		t := f.target(one, many)
		d := f.lasting("Then they return.")
		return text{target: &t, after: " " + what}, d, func(st *stage) string {
			return st.each(t, present, func(id string) {
				do(st.w, id)
				st.later(d, func() { st.w.Return(id) })
			})
		}
	}
}

func readUnhealthy(f *fields) (text, time.Duration, func(*stage) string) {
	t := f.target("instance", "instances")
	d := f.lasting("Then their checks pass again.")
	cure := f.choice("cured_by", string(sim.CuredByNothing),
		"What makes the checks pass again before for is over.",
		string(sim.CuredByRestart), string(sim.CuredByReboot), string(sim.CuredByNothing))
	how := sim.Cure(cure)
	if d > 0 && how == sim.CuredByNothing {
		how = sim.CuredByItself
	}
	return text{before: "checks of ", target: &t, after: " fail"}, d, func(st *stage) string {
		return st.each(t, present, func(id string) {
			st.w.Sicken(id, how)
			st.later(d, func() { st.w.Heal(id) })
		})
	}
}

func readExits(f *fields) (text, time.Duration, func(*stage) string) {
	t := f.target("workload", "workloads")
	code := f.number("code", 1, 0, 255, "The exit code.")
	return text{target: &t, after: fmt.Sprintf(" exited with %d", code)}, 0, func(st *stage) string {
		return st.each(t, present, func(id string) { st.w.Exit(id, code) })
	}
}

func readNotice(f *fields) (text, time.Duration, func(*stage) string) {
	t := f.target("machine", "machines")
	in := f.length("in", "2m", time.Second, time.Hour, "Time from the notice to the end of the machine.")
	return text{before: "notice that ", target: &t, after: " will end in " + words(in)}, 0, func(st *stage) string {
		return st.each(t, present, func(id string) { st.w.Notice(id, in) })
	}
}

func readGoodbye(f *fields) (text, time.Duration, func(*stage) string) {
	t := f.target("agent", "agents")
	kind := f.choice("says", string(store.GoodbyeShutdown), "The kind of goodbye.",
		string(store.GoodbyeRestart), string(store.GoodbyeShutdown), string(store.GoodbyeMoving),
		string(store.GoodbyeEvacuating))
	return text{target: &t, after: " said goodbye: " + kind}, 0, func(st *stage) string {
		return st.each(t, present, func(id string) { st.w.Goodbye(id, store.Goodbye(kind)) })
	}
}
