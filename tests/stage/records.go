package stage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// Records returns the records of a kind in etcd, by name. A record that cannot be read fails the
// test.
func Records[T any](s *Stage, kind string) map[string]store.Versioned[T] {
	s.T.Helper()
	out, _, err := read[T](s, kind)
	if err != nil {
		s.T.Fatalf("read %s: %v", kind, err)
	}
	return out
}

// read also returns the revision.
func read[T any](s *Stage, kind string) (map[string]store.Versioned[T], store.Revision, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Longest)
	defer cancel()
	listing, err := s.Store.List(ctx, s.Keys.Of(kind), 0)
	if err != nil {
		return nil, 0, err
	}
	out := map[string]store.Versioned[T]{}
	for _, kv := range listing.KVs {
		v, err := store.Decode[T](kv)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", kv.Key, err)
		}
		_, name, _ := s.Keys.Split(kv.Key)
		out[name] = v
	}
	return out, listing.Revision, nil
}

// Mark is a moment: the instances that exist, and the journal's revision.
type Mark struct {
	at        time.Time
	Revision  store.Revision
	instances map[string]store.Versioned[store.Instance]
	made      int // machines that the provider had created
}

// Mark returns the present moment. Its instances are as of its revision: later decisions are later
// for both.
func (s *Stage) Mark() Mark {
	s.T.Helper()
	instances, revision, err := read[store.Instance](s, store.KindInstances)
	if err != nil {
		s.T.Fatal(err)
	}
	return Mark{time.Now(), revision, instances, s.CountMachines().Made}
}

// Instances returns the instances that a group had, in order.
func (m Mark) Instances(group string) (ids []string) {
	for id, in := range m.instances {
		if in.Record.Group == group && in.Record.Phase != store.Deleting {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Has reports whether an instance of this name existed.
func (m Mark) Has(instance string) bool { _, there := m.instances[instance]; return there }

// Count is what was done since a moment, by etcd's own records: each of these is a false positive
// if no machine had a fault.
type Count struct {
	Created   int // new instances
	Destroyed int // instances that are gone, or being removed
	Changed   int // instances in another phase than before
	Decisions int // entries of the journal that do something to an instance
	Judged    int // instances that the journal calls lost, dead, unhealthy or stuck
	Made      int // machines that the provider has created
}

func (c Count) String() string {
	return fmt.Sprintf("created %d destroyed %d changed %d decisions %d judged %d machines %d", c.Created, c.Destroyed,
		c.Changed, c.Decisions, c.Judged, c.Made)
}

// Since counts what was done since a moment.
func (s *Stage) Since(m Mark) Count {
	s.T.Helper()
	var c Count
	now := Records[store.Instance](s, store.KindInstances)
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
	for _, e := range s.Journal(m.Revision) {
		if Decided(e.Record) {
			c.Decisions++
		}
		if e.Record.Verdict.Failed() {
			judged[e.Record.Instance] = true
		}
	}
	c.Judged = len(judged)
	c.Made = s.CountMachines().Made - m.made
	return c
}

// Decided reports whether a journal entry is about something done to an instance, not about a
// verdict or a refused client.
func Decided(e store.JournalEntry) bool {
	return e.Instance != "" && e.What != string(e.Verdict) && !strings.HasPrefix(e.Rule, "SEC-")
}

// CountMachines asks the provider, not the coordinator.
func (s *Stage) CountMachines() swarm.Count {
	s.T.Helper()
	n, err := s.Control.Count()
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}

// Journal returns what was written into the journal after a revision, in order.
func (s *Stage) Journal(after store.Revision) []store.Versioned[store.JournalEntry] {
	s.T.Helper()
	var out []store.Versioned[store.JournalEntry]
	for _, e := range Records[store.JournalEntry](s, store.KindEvents) {
		if e.Created > after {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b store.Versioned[store.JournalEntry]) int {
		return cmp.Compare(a.Created, b.Created)
	})
	return out
}

// tellJournal prints entries for people.
func tellJournal(all []store.Versioned[store.JournalEntry]) string {
	var b strings.Builder
	for _, v := range all {
		e := v.Record
		fmt.Fprintf(&b, "%s rev %d %s %s %s: %s [%s] by %s\n", e.At.Format("15:04:05.000"), v.Created, e.Rule,
			cmp.Or(e.Instance, e.Group), e.What, e.Why, strings.Join(e.Evidence, "; "), e.By)
	}
	return b.String()
}

// TellJournal prints the journal's entries since a moment, for people.
func (s *Stage) TellJournal(since Mark) string { return tellJournal(s.Journal(since.Revision)) }

// NothingDone fails if anything was done since a moment, and tells the count.
func (s *Stage) NothingDone(m Mark, while string) {
	s.T.Helper()
	c := s.Since(m)
	s.T.Logf("%-60s agents %d, after %s: %s", while, len(m.instances), time.Since(m.at).Round(time.Second), c)
	if c != (Count{}) {
		s.T.Fatalf("%s: %s, and all of that should be 0", while, c)
	}
}

// Serving are the instances whose stream is open, by the replica that has it.
func (s *Stage) Serving() map[string][]string {
	s.T.Helper()
	out := map[string][]string{}
	for id, a := range Records[store.Alive](s, store.KindAlive) {
		if a.Record.State == store.StreamOpen {
			out[a.Record.Replica] = append(out[a.Record.Replica], id)
		}
	}
	return out
}

// Open is how many streams are open.
func (s *Stage) Open() int {
	n := 0
	for _, ids := range s.Serving() {
		n += len(ids)
	}
	return n
}

// Leader is the replica that leads; "" if none does.
func (s *Stage) Leader() string {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), Longest)
	defer cancel()
	listing, err := s.Store.List(ctx, s.Keys.Of(store.KindLeader), 0)
	if err != nil {
		return ""
	}
	kv, there := store.LeaderNow(listing.KVs)
	if !there {
		return ""
	}
	v, err := store.Decode[store.Leader](kv)
	if err != nil {
		s.T.Fatal(err)
	}
	return v.Record.Replica
}

// Complete reports whether a group has so many instances, all running with an open stream, and its
// leader says so too.
func (s *Stage) Complete(group string, size int) bool {
	s.T.Helper()
	alive, n := Records[store.Alive](s, store.KindAlive), 0
	for id, in := range Records[store.Instance](s, store.KindInstances) {
		switch {
		case in.Record.Group != group || in.Record.Phase == store.Deleting:
		case in.Record.Phase != store.Running || alive[id].Record.State != store.StreamOpen:
			return false
		default:
			n++
		}
	}
	st := Records[store.Status](s, store.KindStatus)[group].Record
	return n == size && st.Health == 100 && st.Verdicts[store.Live] == size
}

// Instances are the instances of a group that are not on their way out, in order.
func (s *Stage) Instances(group string) []string {
	s.T.Helper()
	var out []string
	for id, in := range Records[store.Instance](s, store.KindInstances) {
		if in.Record.Group == group && in.Record.Phase != store.Deleting {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// mood is all that tells of unrest: while it changes, a disturbance is not over.
func (s *Stage) mood() (text string, allOpen bool) {
	s.T.Helper()
	text, allOpen = s.Leader(), true
	alive := Records[store.Alive](s, store.KindAlive)
	for _, id := range slices.Sorted(maps.Keys(Records[store.Instance](s, store.KindInstances))) {
		a := alive[id]
		allOpen = allOpen && a.Present() && a.Record.State == store.StreamOpen
		text += fmt.Sprintf(" %d", a.Modified)
	}
	replicas := Records[store.Replica](s, store.KindReplicas)
	for _, id := range slices.Sorted(maps.Keys(replicas)) {
		text += fmt.Sprintf(" %s %d", id, replicas[id].Record.Disturbances)
	}
	return text, allOpen && s.Leader() != ""
}
