//go:build nightly

package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/stage"
)

// seen is what a watch beside the cluster has seen of its keys, and when.
type seen struct {
	t    *testing.T
	keys store.Keys

	mu        sync.Mutex
	instances map[string]store.Instance
	alive     map[string]store.Alive
	line      map[string]store.KV // who stands for election
	leads     string              // the key that is first in line
	changes   int                 // how often another key came first in line
	lost      []string            // leases that ended though their instance was to stay
	judged    []string            // instances that were taken for failed

	at      history.Time // of the kill that is looked at
	killed  string
	apart   map[string]bool // agents that the killed one served, and that no other serves yet
	present kill
}

// see begins to watch. It ends with the test.
func see(s *stage.Stage) *seen {
	s.T.Helper()
	w := &seen{
		t: s.T, keys: s.Keys, instances: map[string]store.Instance{}, alive: map[string]store.Alive{},
		line: map[string]store.KV{},
	}
	head, err := s.Store.List(s.T.Context(), s.Keys.Prefix(), 0)
	must(s.T, err)
	for _, kv := range head.KVs {
		if kind, _, _ := s.Keys.Split(kv.Key); kind != store.KindEvents { // what was before is none of ours
			w.take(store.Event{KV: kv})
		}
	}
	w.changes = 0 // the list is in no order
	ctx, end := context.WithCancel(s.T.Context())
	done := make(chan struct{})
	leave := s.Leave
	s.Leave = func() {
		end()
		<-done
		if leave != nil {
			leave()
		}
	}
	go func() {
		defer close(done)
		for from := head.Revision + 1; ctx.Err() == nil; {
			for batch := range s.Store.Watch(ctx, s.Keys.Prefix(), from) {
				if batch.Err != nil {
					break // on a busy machine etcd is silent for a while; it goes on where it was
				}
				w.mu.Lock()
				for _, e := range batch.Events {
					w.take(e)
				}
				w.mu.Unlock()
				from = batch.Revision + 1
			}
		}
	}()
	return w
}

// take takes one change in. The lock is held.
func (w *seen) take(e store.Event) {
	kind, name, _ := w.keys.Split(e.KV.Key)
	switch kind {
	case store.KindLeader:
		if w.line[e.KV.Key] = e.KV; e.Deleted {
			delete(w.line, e.KV.Key)
		}
		w.elected()
	case store.KindInstances:
		if w.present.Next != "" && w.present.Acted == 0 {
			w.present.Acted = w.since()
		}
		in := decode[store.Instance](w, e)
		if w.instances[name] = in; e.Deleted {
			delete(w.instances, name)
		}
	case store.KindAlive:
		w.heard(name, e)
	case store.KindEvents:
		if !e.Deleted {
			w.told(decode[store.JournalEntry](w, e))
		}
	}
}

func decode[T any](w *seen, e store.Event) T {
	if e.Deleted {
		return *new(T)
	}
	v, err := store.Decode[T](e.KV)
	if err != nil {
		w.t.Error(err)
	}
	return v.Record
}

func (w *seen) since() span { return span(history.Now().Sub(w.at)) }

// elected looks who is first in line.
func (w *seen) elected() {
	first, there := store.LeaderNow(slices.Collect(maps.Values(w.line)))
	if there && first.Key != w.leads {
		if w.leads != "" {
			w.changes++
		}
		w.leads = first.Key
	}
	if !there || w.at == 0 || w.present.Next != "" {
		return
	}
	if leads := decode[store.Leader](w, store.Event{KV: first}).Replica; leads != w.killed {
		w.present.Next, w.present.Elected = leads, w.since()
	}
}

func (w *seen) heard(id string, e store.Event) {
	if e.Deleted {
		delete(w.alive, id)
		if in, there := w.instances[id]; there && in.Phase != store.Deleting {
			w.lost = append(w.lost, fmt.Sprintf("%s at revision %d", id, e.KV.Modified))
		}
		return
	}
	a := decode[store.Alive](w, e)
	w.alive[id] = a
	if w.apart[id] && a.Replica != w.killed && a.State == store.StreamOpen {
		delete(w.apart, id)
		w.present.Back = append(w.present.Back, w.since())
	}
}

func (w *seen) told(e store.JournalEntry) {
	if e.Verdict.Failed() {
		w.judged = append(w.judged, fmt.Sprintf("%s: %s, %s", e.Instance, e.Verdict, e.Why))
	}
	if w.present.Next != "" && e.By == w.present.Next && w.present.Wrote == 0 {
		w.present.Wrote = w.since()
	}
}

// expect is told that a leader is killed now.
func (w *seen) expect(leader string) history.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.killed, w.apart = history.Now(), leader, map[string]bool{}
	for id, a := range w.alive {
		if a.Replica == leader && a.State == store.StreamOpen {
			w.apart[id] = true
		}
	}
	w.present = kill{Leader: leader, Served: len(w.apart)}
	return w.at
}

// over reports whether another leads and has acted, and that all agents of the killed one are
// served again.
func (w *seen) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.present.Acted != 0 && w.present.Wrote != 0 && len(w.apart) == 0
}

// kill is what was seen of the last one.
func (w *seen) kill() kill {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.present
}

// inFlight is in how many slots of a group a machine is being made, exchanged or removed.
func (w *seen) inFlight(group string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	slots, busy := map[int]bool{}, map[int]bool{}
	for _, in := range w.instances {
		if in.Group == group {
			busy[in.Slot] = busy[in.Slot] || slots[in.Slot] || in.Phase != store.Running
			slots[in.Slot] = true
		}
	}
	n := 0
	for _, is := range busy {
		if is {
			n++
		}
	}
	return n
}

// losses are the leases that ended though their machines were to stay, and the instances that the
// journal calls failed.
func (w *seen) losses() (leases, judged []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lost), slices.Clone(w.judged)
}

// elections is how often the lead has changed hands.
func (w *seen) elections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes
}
