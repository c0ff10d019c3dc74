package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// trial is one fault, and when etcd showed its effects.
type trial struct {
	Victim string
	Harmed time.Time
	// Zero until it was seen.
	Suspect, Verdict, Replaced time.Time
	Judged                     store.Verdict
	VerdictRule, ReplacedRule  string
}

// instance is the ledger's knowledge of an instance.
type instance struct {
	store.Instance
	running time.Time         // since when it runs
	stream  store.StreamState // "" while there is none
}

// ledger records everything that etcd shows, on the bench's own clock.
type ledger struct {
	keys store.Keys

	mu        sync.Mutex
	moved     chan struct{} // closed and replaced with each batch
	instances map[string]instance
	trials    map[string]*trial // by victim, including reserved ones
	replicas  map[string]int    // disturbances that each replica has seen
	leader    bool
	onBoot    func(store.Instance, time.Time) // called for each instance that begins to boot, with the lock held
	unasked   []string                        // verdicts on machines without a fault
	notes     []string                        // storms, flapping and disturbances, which make the figures worse
	broken    error
}

func newLedger(keys store.Keys) *ledger {
	return &ledger{
		keys: keys, moved: make(chan struct{}), instances: map[string]instance{}, trials: map[string]*trial{},
		replicas: map[string]int{},
		onBoot:   func(store.Instance, time.Time) {},
	}
}

// follow records everything until ctx ends.
func (l *ledger) follow(ctx context.Context, s store.Store) {
	for b := range s.Watch(ctx, l.keys.Prefix(), 1) {
		l.take(time.Now(), b)
	}
}

func (l *ledger) take(now time.Time, b store.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := b.Err
	for _, e := range b.Events {
		kind, name, ok := l.keys.Split(e.KV.Key)
		if !ok || err != nil {
			continue
		}
		switch kind {
		case store.KindAlive:
			err = l.takeAlive(now, name, e)
		case store.KindInstances:
			err = l.takeInstance(now, name, e)
		case store.KindEvents:
			err = l.takeEntry(now, e)
		case store.KindLeader:
			l.leader = !e.Deleted
		case store.KindReplicas:
			err = l.takeReplica(name, e)
		}
	}
	if err != nil && l.broken == nil {
		l.broken = err
	}
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *ledger) takeAlive(now time.Time, name string, e store.Event) error {
	var state store.StreamState
	if !e.Deleted {
		v, err := store.Decode[store.Alive](e.KV)
		if err != nil {
			return err
		}
		state = v.Record.State
	}
	if in, known := l.instances[name]; known {
		in.stream = state
		l.instances[name] = in
	}
	if t := l.trialOf(name); t != nil && t.Suspect.IsZero() && t.Verdict.IsZero() && state != store.StreamOpen {
		t.Suspect = now
	}
	return nil
}

func (l *ledger) takeInstance(now time.Time, name string, e store.Event) error {
	if e.Deleted {
		delete(l.instances, name)
		return nil
	}
	v, err := store.Decode[store.Instance](e.KV)
	if err != nil {
		return err
	}
	before, known := l.instances[name]
	in := instance{Instance: v.Record, running: before.running, stream: before.stream}
	switch {
	case in.Phase != store.Running:
		in.running = time.Time{}
	case before.Phase != store.Running:
		in.running = now
	}
	l.instances[name] = in
	if in.Phase == store.Booting && before.Phase != store.Booting {
		l.onBoot(in.Instance, now)
	}
	if known || in.Replaces == "" {
		return nil
	}
	t := l.trialOf(in.Replaces)
	if t == nil {
		l.unasked = append(l.unasked, fmt.Sprintf("%s was replaced: %s: %s", in.Replaces, in.Last.Rule, in.Last.Why))
	} else if t.Replaced.IsZero() {
		t.Replaced, t.ReplacedRule = now, in.Last.Rule
	}
	return nil
}

func (l *ledger) takeEntry(now time.Time, e store.Event) error {
	if e.Deleted {
		return nil
	}
	v, err := store.Decode[store.JournalEntry](e.KV)
	if err != nil {
		return err
	}
	n := v.Record
	if n.Rule == "SAFE-2" || n.Rule == "SAFE-12" || strings.HasPrefix(n.Rule, "FLAP-") {
		l.notes = append(l.notes, n.Rule+": "+n.What+": "+n.Why)
	}
	told := n.Verdict.Failed() || n.Rule == "SPOT-2"
	switch t := l.trialOf(n.Instance); {
	case !told:
	case t == nil:
		l.unasked = append(l.unasked, fmt.Sprintf("%s was judged %s: %s: %s", n.Instance, n.What, n.Rule, n.Why))
	case t.Verdict.IsZero():
		t.Verdict, t.Judged, t.VerdictRule = now, n.Verdict, n.Rule
		if n.Rule == "SPOT-2" { // the evidence shows a healthy machine: doomed is in its record from now on
			t.Judged = store.Doomed
		}
	}
	return nil
}

func (l *ledger) takeReplica(name string, e store.Event) error {
	if e.Deleted {
		delete(l.replicas, name)
		return nil
	}
	v, err := store.Decode[store.Replica](e.KV)
	if err != nil {
		return err
	}
	if v.Record.Disturbances > l.replicas[name] && v.Record.Last != nil {
		l.notes = append(l.notes,
			fmt.Sprintf("SAFE-1: replica %s was disturbed: %s: lost instances wait until agents had time to return",
				name, v.Record.Last.What))
	}
	l.replicas[name] = v.Record.Disturbances
	return nil
}

// begin records that a victim has a fault from now on.
func (l *ledger) begin(t *trial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*t = trial{Victim: t.Victim, Harmed: time.Now()}
}

// trialOf returns the trial of an instance, nil if there is none. The lock is held.
func (l *ledger) trialOf(id string) *trial {
	if t := l.trials[id]; t != nil && !t.Harmed.IsZero() {
		return t
	}
	return nil
}

// await returns when a condition holds, which is checked whenever etcd has shown something. It is
// called with the lock held.
func (l *ledger) await(ctx context.Context, what string, atMost time.Duration, condition func() bool) error {
	late := time.NewTimer(atMost)
	defer late.Stop()
	for {
		l.mu.Lock()
		moved, holds, broken := l.moved, condition(), l.broken
		l.mu.Unlock()
		if holds {
			return nil
		}
		if broken != nil {
			return fmt.Errorf("follow etcd: %w", broken)
		}
		select {
		case <-moved:
		case <-late.C:
			return fmt.Errorf("waited %s without success for %s", atMost, what)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settled returns the instances of a group that may become victims: healthy since before a time,
// alone in their slot, without a fault and not reserved. They are in order of ID. The lock is held.
func (l *ledger) settled(group string, since time.Time) []store.Instance {
	inSlot := map[int]int{}
	for _, in := range l.instances {
		if in.Group == group {
			inSlot[in.Slot]++
		}
	}
	var out []store.Instance
	for id, in := range l.instances {
		well := in.Phase == store.Running && in.stream == store.StreamOpen && in.running.Before(since)
		if in.Group == group && well && inSlot[in.Slot] == 1 && l.trials[id] == nil {
			out = append(out, in.Instance)
		}
	}
	slices.SortFunc(out, func(a, b store.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out
}
