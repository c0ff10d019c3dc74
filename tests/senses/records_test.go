package senses

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/senses/swarm"
)

// records are those of a kind, by name, as etcd has them now. What cannot be read fails the test.
func records[T any](s *stage, kind string) map[string]store.Versioned[T] {
	s.t.Helper()
	out, err := read[T](s, kind)
	if err != nil {
		s.t.Fatalf("read %s: %v", kind, err)
	}
	return out
}

func read[T any](s *stage, kind string) (map[string]store.Versioned[T], error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	listing, err := s.st.List(ctx, s.keys.Of(kind), 0)
	if err != nil {
		return nil, err
	}
	out := map[string]store.Versioned[T]{}
	for _, kv := range listing.KVs {
		v, err := store.Decode[T](kv)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		_, name, _ := s.keys.Split(kv.Key)
		out[name] = v
	}
	return out, nil
}

// mark is a moment: what there is, and up to where the journal goes.
type mark struct {
	at        time.Time
	revision  store.Revision
	instances map[string]store.Versioned[store.Instance]
	made      int // machines that the provider had made
}

func (s *stage) mark() mark {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), longest)
	defer cancel()
	listing, err := s.st.List(ctx, s.keys.Of(store.KindReplicas), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return mark{time.Now(), listing.Revision, records[store.Instance](s, store.KindInstances), s.countMachines().Made}
}

// count is what was done since a moment, by etcd's own records: each of these is a false positive where nothing was wrong with any
// machine.
type count struct {
	Created   int // instances that were not there
	Destroyed int // instances that are gone, or on their way
	Changed   int // instances in another phase than before
	Decisions int // entries of the journal that do something to an instance
	Judged    int // instances that the journal calls lost, dead, unhealthy or stuck
	Made      int // machines that the provider has made
}

func (c count) String() string {
	return fmt.Sprintf("created %d destroyed %d changed %d decisions %d judged %d machines %d", c.Created, c.Destroyed, c.Changed, c.Decisions, c.Judged, c.Made)
}

// since counts what was done since a moment.
func (s *stage) since(m mark) count {
	s.t.Helper()
	var c count
	now := records[store.Instance](s, store.KindInstances)
	for id, before := range m.instances {
		after, there := now[id]
		switch {
		case !there || after.Record.Phase == store.Deleting && before.Record.Phase != store.Deleting:
			c.Destroyed++
		case after.Record.Phase != before.Record.Phase:
			c.Changed++
		}
	}
	for id := range now {
		if _, there := m.instances[id]; !there {
			c.Created++
		}
	}
	judged := map[string]bool{}
	for _, e := range s.journal(m.revision) {
		if decided(e.Record) {
			c.Decisions++
		}
		if e.Record.Verdict.Failed() {
			judged[e.Record.Instance] = true
		}
	}
	c.Judged = len(judged)
	c.Made = s.countMachines().Made - m.made
	return c
}

// decided says that an entry of the journal is of something done to an instance, or for it, and not of what it was taken for.
func decided(e store.JournalEntry) bool { return e.Instance != "" && e.What != string(e.Verdict) }

func (s *stage) countMachines() swarm.Count {
	s.t.Helper()
	n, err := s.control.Count()
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// journal is what was written into the journal after a revision, in order.
func (s *stage) journal(after store.Revision) []store.Versioned[store.JournalEntry] {
	s.t.Helper()
	var out []store.Versioned[store.JournalEntry]
	for _, e := range records[store.JournalEntry](s, store.KindEvents) {
		if e.Created > after {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b store.Versioned[store.JournalEntry]) int { return cmp.Compare(a.Created, b.Created) })
	return out
}

// tellJournal writes entries for people.
func tellJournal(all []store.Versioned[store.JournalEntry]) string {
	var b strings.Builder
	for _, v := range all {
		e := v.Record
		fmt.Fprintf(&b, "%s rev %d %s %s %s: %s [%s] by %s\n", e.At.Format("15:04:05.000"), v.Created, e.Rule, cmp.Or(e.Instance, e.Group), e.What, e.Why, strings.Join(e.Evidence, "; "), e.By)
	}
	return b.String()
}

// nothingDone fails if anything was done since a moment, and tells the count.
func (s *stage) nothingDone(m mark, while string) {
	s.t.Helper()
	c := s.since(m)
	s.t.Logf("%-60s agents %d, after %s: %s", while, len(m.instances), time.Since(m.at).Round(time.Second), c)
	if c != (count{}) {
		s.t.Fatalf("%s: %s, and all of that should be 0", while, c)
	}
}

// serving are the instances whose stream is open, by the replica that has it.
func (s *stage) serving() map[string][]string {
	s.t.Helper()
	out := map[string][]string{}
	for id, a := range records[store.Alive](s, store.KindAlive) {
		if a.Record.State == store.StreamOpen {
			out[a.Record.Replica] = append(out[a.Record.Replica], id)
		}
	}
	return out
}

func (s *stage) open() int {
	n := 0
	for _, ids := range s.serving() {
		n += len(ids)
	}
	return n
}

// leader is the replica that leads; "" if none does.
func (s *stage) leader() string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), longest)
	defer cancel()
	listing, err := s.st.List(ctx, s.keys.Of(store.KindLeader), 0)
	if err != nil {
		return ""
	}
	kv, there := store.LeaderNow(listing.KVs)
	if !there {
		return ""
	}
	v, err := store.Decode[store.Leader](kv)
	if err != nil {
		s.t.Fatal(err)
	}
	return v.Record.Replica
}

// complete says whether a group has so many instances, all running with an open stream, and its leader says so too.
func (s *stage) complete(group string, size int) bool {
	s.t.Helper()
	alive, n := records[store.Alive](s, store.KindAlive), 0
	for id, in := range records[store.Instance](s, store.KindInstances) {
		switch {
		case in.Record.Group != group || in.Record.Phase == store.Deleting:
		case in.Record.Phase != store.Running || alive[id].Record.State != store.StreamOpen:
			return false
		default:
			n++
		}
	}
	st := records[store.Status](s, store.KindStatus)[group].Record
	return n == size && st.Health == 100 && st.Verdicts[store.Live] == size
}

// members are the instances of a group that are not on their way out, in order.
func (s *stage) members(group string) []string {
	s.t.Helper()
	var out []string
	for id, in := range records[store.Instance](s, store.KindInstances) {
		if in.Record.Group == group && in.Record.Phase != store.Deleting {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// mood is all that tells of unrest: while it changes, a disturbance is not over.
func (s *stage) mood() (text string, allOpen bool) {
	s.t.Helper()
	text, allOpen = s.leader(), true
	alive := records[store.Alive](s, store.KindAlive)
	for _, id := range slices.Sorted(maps.Keys(records[store.Instance](s, store.KindInstances))) {
		a := alive[id]
		allOpen = allOpen && a.Present() && a.Record.State == store.StreamOpen
		text += fmt.Sprintf(" %d", a.Modified)
	}
	replicas := records[store.Replica](s, store.KindReplicas)
	for _, id := range slices.Sorted(maps.Keys(replicas)) {
		text += fmt.Sprintf(" %s %d", id, replicas[id].Record.Disturbances)
	}
	return text, allOpen && s.leader() != ""
}
