package coordinator_test

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// mood is how an agent behaves, and what it works with.
type mood struct {
	mute    bool // says nothing
	sick    bool // reports that it is not healthy
	ignores bool // does not take in what is wanted
	leaves  bool // says goodbye, since its machine is to be emptied, and then nothing
	cure    int  // what ends the sickness: see the constants

	notice bool          // reports that its machine will end
	in     time.Duration // then
	done   *int          // the workload has ended with this code
	hook   time.Duration // how long the drain hook takes; 0: it never ends
}

// What ends a sickness.
const (
	cureNone     = iota
	cureWorkload // a start of the workload
	cureMachine  // a boot of the machine
)

func (m mood) why() string {
	if m.sick {
		return "it feels unwell"
	}
	return ""
}

func (m mood) silenced() mood {
	m.leaves, m.mute = false, true
	return m
}

// moodOf is an instance's mood, and a channel that is closed when anyone's changes.
func (w *world) moodOf(instance string) (mood, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, own := w.moods[instance]
	if !own {
		m = w.everyone
	}
	return m, w.moodsChanged
}

func (w *world) setMood(instance string, m mood) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moods[instance] = m
	w.moodsTold()
}

// setEveryone sets the mood of all who have none of their own.
func (w *world) setEveryone(m mood) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.everyone = m
	w.moodsTold()
}

func (w *world) moodsTold() {
	close(w.moodsChanged)
	w.moodsChanged = make(chan struct{})
}

// work is what an agent does with its workload. It is on the machine's disk, so that it outlives a
// boot.
type work struct {
	mu        sync.Mutex
	w         *world
	instance  string
	config    string // taken over; "": the bootstrap document's
	run       []string
	vars      map[string]string
	restarted string
	restarts  []string  // tokens of all restarts that were carried out
	starts    []start   // of the workload
	drain     string    // token of the drain whose hook runs
	hooks     []string  // tokens of all hooks that were begun
	due       time.Time // when it ends
	drained   string
	document  provider.Bootstrap // that the machine was made with
	papers    agentCert
}

// hookTimer ends with the hook that runs, if it ends.
func (k *work) hookTimer() *time.Timer {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := time.NewTimer(time.Until(k.due))
	if k.drain == "" || k.due.IsZero() {
		t.Stop()
	}
	return t
}

// start is one start of a workload, with what it was started with.
type start struct {
	run  []string
	vars map[string]string
	boot string
}

// boots begins a boot: the agent starts the workload as it knows it.
func (w *world) boots(boot fake.Boot) *work {
	id := boot.Bootstrap.Instance
	w.mu.Lock()
	k := w.works[id]
	if k == nil {
		k = &work{w: w, instance: id, run: boot.Bootstrap.Run, vars: boot.Bootstrap.Vars, document: boot.Bootstrap}
		w.works[id] = k
	}
	m, own := w.moods[id]
	if !own {
		m = w.everyone
	}
	if m.sick && m.cure == cureMachine && boot.Number > 1 || m.sick && m.cure == cureWorkload && boot.Number > 1 {
		w.moods[id] = mood{}
		w.moodsTold()
	}
	w.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drain = ""
	k.starts = append(k.starts, start{k.run, k.vars, boot.ID})
	return k
}

// work is what an instance has done.
func (w *world) work(instance string) *work {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.works[instance]; k != nil {
		return k
	}
	w.t.Fatalf("%s never booted", instance)
	return nil
}

// runs is what the workload was started with last, and how often it was started.
func (k *work) runs() (start, int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.starts) == 0 {
		return start{}, 0
	}
	return k.starts[len(k.starts)-1], len(k.starts)
}

// done is what was carried out: restarts of the workload, and hooks that were begun.
func (k *work) done() (restarts, hooks []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.restarts), slices.Clone(k.hooks)
}

// obey does what is wanted, once, and says whether there is news of it.
func (a *agent) obey(want *protocol.Wanted, m mood, hook *time.Timer) (news bool) {
	if m.ignores {
		return false
	}
	k := a.work
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := want.GetConfigHash(); h != "" && h != k.config {
		k.config, k.run, k.vars = h, want.GetRun(), want.GetVars()
		news = true
	}
	if t := want.GetRestartToken(); t != "" && t != k.restarted {
		k.restarted = t
		k.restarts = append(k.restarts, t)
		k.starts = append(k.starts, start{k.run, k.vars, a.boot.ID})
		if m.sick && m.cure == cureWorkload {
			a.w.setMood(k.instance, mood{})
		}
		news = true
	}
	switch t := want.GetDrain().GetToken(); {
	case t == "" || t == k.drained:
		k.drain = ""
	case t != k.drain:
		k.drain, k.due = t, time.Time{}
		k.hooks = append(k.hooks, t)
		if m.hook > 0 {
			k.due = time.Now().Add(m.hook)
			hook.Reset(m.hook)
		}
	}
	return news
}

// hookEnds reports whether a hook ran that has ended now.
func (k *work) hookEnds() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.drain == "" {
		return false
	}
	k.drained, k.drain = k.drain, ""
	return true
}

func (a *agent) report(sequence uint64, m mood) *protocol.Report {
	k := a.work
	k.mu.Lock()
	defer k.mu.Unlock()
	r := &protocol.Report{
		Sequence: sequence, Healthy: !m.sick, Why: m.why(), ConfigHash: k.config, Restarted: k.restarted,
		Drained: k.drained,
	}
	if m.notice {
		r.Notice = &protocol.Notice{Kind: "test", Why: "its host is wanted back", In: durationpb.New(m.in)}
	}
	if m.done != nil {
		r.WorkloadExit = &protocol.WorkloadExit{Code: int32(*m.done)}
		if *m.done != 0 {
			r.Healthy, r.Why = false, "workload ended"
		}
	}
	return r
}

// edit changes a group's spec in place.
func (w *world) edit(name string, change func(*store.Group)) store.Group {
	w.t.Helper()
	kv, err := w.store.Get(w.t.Context(), w.keys.Group(name))
	if err != nil {
		w.t.Fatalf("group %s: %v", name, err)
	}
	v, err := store.Decode[store.Group](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	change(&v.Record)
	w.apply(v.Record)
	return v.Record
}
