package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// fences asks whether anyone wrote as a leader who was none (SAFE-7), in two ways that know
// nothing of each other: by etcd's own order, and by the clock, which needs no revisions.
//
// What cannot be attributed, and what was only found, counts against no replica.
func (in *inquiry) fences() {
	writes := in.transactions()
	in.byOrder(writes)
	in.byClock(writes)
}

// transaction is a replica's transaction, as the replica saw it.
type transaction struct {
	begun  history.Event
	ended  history.Event // without a commit if its replica was killed before it knew the result
	fence  store.Fence   // the fence that it compared or, if none, its replica's own
	leads  bool          // only a leader writes this
	landed *step         // its place in etcd's history; nil: not seen
}

func (w *transaction) commit() *history.Commit { return w.begun.Commit }

func (w *transaction) outcome() history.Outcome {
	if w.ended.Commit == nil {
		return history.Unknown
	}
	return w.ended.Commit.Outcome
}

// transactions returns all transactions in the order of their beginnings.
func (in *inquiry) transactions() []*transaction {
	type name struct {
		replica string
		process int
		id      uint64
	}
	var all []*transaction
	open := map[name]*transaction{}
	for _, e := range in.events {
		c := e.Commit
		if c == nil {
			continue
		}
		n := name{c.Replica, c.Process, c.ID}
		if c.Ended {
			if w := open[n]; w != nil {
				w.ended = e
				delete(open, n)
			}
			continue
		}
		w := &transaction{
			begun: e, fence: c.Fence,
			leads: c.Fence != store.Fence{} || slices.ContainsFunc(c.Keys, in.leadersOnly),
		}
		if w.fence == (store.Fence{}) {
			w.fence = c.Believed
		}
		open[n] = w
		all = append(all, w)
	}
	return all
}

// leadersOnly reports whether only a leader writes such a key.
func (in *inquiry) leadersOnly(key string) bool {
	kind, _, ok := in.keys.Split(key)
	return ok && slices.Contains([]string{
		store.KindInstances, store.KindSlots, store.KindStatus, store.KindServed,
		store.KindTurns,
	}, kind)
}

// unfenced checks whether a replica could have written as a leader without being one: every write
// of a leader compares its leadership (SAFE-7). It reports the first of each process: the rest is
// the same mistake.
func (in *inquiry) unfenced() {
	told := map[string]bool{}
	for _, w := range in.transactions() {
		c := w.commit()
		process := fmt.Sprint(c.Replica, c.Process)
		at := slices.IndexFunc(c.Keys, in.leadersOnly)
		if at < 0 || c.Fence != (store.Fence{}) || told[process] {
			continue
		}
		told[process] = true
		in.violation("SAFE-7", w.begun.At,
			fmt.Sprintf("%s (process %d) wrote %s and did not compare that it leads", c.Replica, c.Process, c.Keys[at]),
			w.begun)
	}
}

// stands reports whether such a key is a candidate's key in the election.
func (in *inquiry) stands(key string) bool {
	return strings.HasPrefix(key, in.keys.Of(store.KindLeader))
}

// byOrder sees at each revision who stood first in line for the leadership just before it.
//
// Tolerated: a key that had ended and is back with an older copy of etcd's data. Its replica has
// given it up, and it ends with its lease.
func (in *inquiry) byOrder(writes []*transaction) {
	if !slices.ContainsFunc(in.events,
		func(e history.Event) bool { return e.Change != nil && in.stands(e.Change.Key) }) {
		return // the history does not tell of elections
	}
	who := whose(writes)
	line := map[string]store.KV{} // of all who stand for election
	// keys that have left the line, and those that came back with older data
	ended, back := map[string]bool{}, map[string]bool{}
	for _, s := range in.steps {
		if s.fresh {
			clear(line)
			clear(back)
		}
		if w := who.wrote(s); !s.found && (w != nil || len(s.journal) > 0) && (w == nil || !back[w.fence.Key]) {
			in.leads(s, w, line)
		}
		for _, e := range s.changes {
			c := e.Change
			switch {
			case !in.stands(c.Key):
			case c.Deleted:
				delete(line, c.Key)
				ended[c.Key] = true
			case s.found && ended[c.Key]:
				back[c.Key] = true
			default:
				line[c.Key] = store.KV{Key: c.Key, Value: c.Value, Created: c.Created}
			}
		}
	}
}

// leads reports whether the author of a step was first in line, if only a leader takes such a step.
func (in *inquiry) leads(s *step, w *transaction, line map[string]store.KV) {
	at := slices.IndexFunc(s.changes, func(e history.Event) bool { return in.leadersOnly(e.Change.Key) })
	if at < 0 {
		return
	}
	first, _ := store.LeaderNow(slices.Collect(maps.Values(line)))
	leader := "none"
	if v, err := store.Decode[store.Leader](first); err == nil && first.Key != "" {
		leader = v.Record.Replica
	}
	evidence := []history.Event{s.changes[at]}
	var by string
	if w != nil {
		if first.Key != "" && w.fence == (store.Fence{Key: first.Key, Created: first.Created}) {
			return
		}
		by = fmt.Sprintf("%s (process %d, with %s)", w.commit().Replica, w.commit().Process, tellFence(w.fence))
		evidence = append(evidence, w.begun)
	} else {
		if by = s.journal[0].By; by == leader {
			return
		}
		evidence = append(evidence, s.journal[0].event)
	}
	in.violation("SAFE-7", s.at, fmt.Sprintf("%s wrote as leader at revision %d, when %s led (with %s)", by, s.revision,
		leader,
		tellFence(store.Fence{Key: first.Key, Created: first.Created})), evidence...)
}

func tellFence(f store.Fence) string {
	if f.Key == "" {
		return "no fence"
	}
	return fmt.Sprintf("fence %s of revision %d", f.Key[strings.LastIndex(f.Key, "/")+1:], f.Created)
}

// authors finds the author of a step.
type authors struct {
	// by a key that has a name for this transaction alone: an entry of the journal
	entry    map[string]*transaction
	revision map[store.Revision][]*transaction // which happened, by where; another line has the same numbers
	open     []*transaction                    // which may or may not have happened
}

func whose(writes []*transaction) *authors {
	a := &authors{entry: map[string]*transaction{}, revision: map[store.Revision][]*transaction{}}
	for _, w := range writes {
		for _, key := range w.commit().Keys {
			if strings.Contains(key, "/"+store.KindEvents+"/") {
				a.entry[key] = w
			}
		}
		switch w.outcome() {
		case history.Happened:
			a.revision[w.ended.Commit.At] = append(a.revision[w.ended.Commit.At], w)
		case history.Unknown:
			a.open = append(a.open, w)
		case history.Refused:
		}
	}
	return a
}

// wrote returns the transaction that a step is, if that can be known, and records its place.
func (a *authors) wrote(s *step) *transaction {
	w := a.author(s)
	if w != nil {
		w.landed = s
	}
	return w
}

func (a *authors) author(s *step) *transaction {
	for _, e := range s.changes {
		if w := a.entry[e.Change.Key]; w != nil {
			return w
		}
	}
	if s.found { // what was found at a revision may have been written by several
		return nil
	}
	for _, w := range slices.Backward(a.revision[s.revision]) {
		if w.free(s) && w.explains(s) {
			return w
		}
	}
	// Its answer was lost, or its replica was killed before: if only one transaction is possible.
	var one *transaction
	for _, w := range a.open {
		if !w.free(s) || !w.explains(s) {
			continue
		}
		if one != nil && one.fence != w.fence {
			return nil
		}
		one = w
	}
	return one
}

// free reports whether a transaction has no other place yet: each change of a step is assigned
// separately.
func (w *transaction) free(s *step) bool { return w.landed == nil || w.landed == s }

// explains reports whether a transaction can have made a step: it began before the step was seen,
// it writes everything that changed, and its journal entries, which no other transaction writes,
// are in the step. Other keys of it may be missing: deleting an absent key changes nothing.
func (w *transaction) explains(s *step) bool {
	changes := func(key string) bool {
		return slices.ContainsFunc(s.changes, func(e history.Event) bool { return e.Change.Key == key })
	}
	keys := w.commit().Keys
	return w.begun.At <= s.at &&
		!slices.ContainsFunc(s.changes, func(e history.Event) bool { return !slices.Contains(keys, e.Change.Key) }) &&
		!slices.ContainsFunc(keys, func(key string) bool {
			return strings.Contains(key, "/"+store.KindEvents+"/") && !changes(key)
		})
}

// term is the leadership under which something happened.
type term struct {
	line    int
	created store.Revision
	key     string
}

// deed is what happened under a leadership, at some time between two.
type deed struct {
	w           *transaction
	term        term
	from, until history.Time
}

// byClock checks that what happened can be put into one row, in which each thing happened between
// its begin and its end, and no leadership is older than the one before.
//
// Nothing has to be said of what has an unknown outcome and was not seen in etcd: if it did not
// happen, all others have more freedom, and it may not have happened. What was seen happened until
// then. A refusal may come at any time.
func (in *inquiry) byClock(writes []*transaction) {
	lines := map[int][]deed{}
	single := 0
	for _, s := range in.steps {
		single = max(single, s.line)
	}
	for _, w := range writes {
		if !w.leads {
			continue
		}
		d := deed{w: w, from: w.begun.At}
		switch {
		case w.outcome() == history.Happened:
			d.until = w.ended.At
		case w.landed != nil && w.outcome() == history.Unknown:
			d.until = max(w.landed.at, w.begun.At)
		default:
			continue
		}
		switch {
		case w.landed != nil:
			d.term.line = w.landed.line
		case single > 1:
			continue // in which line it happened is not known
		default:
			d.term.line = single
		}
		d.term.created, d.term.key = w.fence.Created, w.fence.Key
		lines[d.term.line] = append(lines[d.term.line], d)
	}
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		in.row(edges(lines[line]))
	}
}

// edges leaves of each leadership only what ended first and what began last. That changes no
// verdict: two leaderships contradict each other if something of the newer one ended before
// something of the older one began, and if any two do, these do. It keeps the search small, however
// long the history.
func edges(deeds []deed) []deed {
	first, last := map[term]deed{}, map[term]deed{}
	for _, d := range deeds {
		if known, there := first[d.term]; !there || d.until < known.until {
			first[d.term] = d
		}
		if known, there := last[d.term]; !there || d.from > known.from {
			last[d.term] = d
		}
	}
	var out []deed
	for _, t := range slices.SortedFunc(maps.Keys(first), func(a, b term) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.key, b.key))
	}) {
		out = append(out, first[t])
		if last[t].w != first[t].w {
			out = append(out, last[t])
		}
	}
	return out
}

// oneLeads models etcd's fences from outside: at any time one holds, and none returns once
// something has happened under a newer one.
func oneLeads() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return store.Revision(0) },
		Step: func(state, input, _ any) (bool, any) {
			newest, isRevision := state.(store.Revision)
			under, isDeed := input.(deed)
			return isRevision && isDeed && under.term.created >= newest, max(newest, under.term.created)
		},
	}
}

// row reports whether these can be put into one order.
func (in *inquiry) row(deeds []deed) {
	operations := make([]porcupine.Operation, 0, len(deeds))
	for _, d := range deeds {
		operations = append(operations, porcupine.Operation{Input: d, Call: int64(d.from), Return: int64(d.until)})
	}
	if porcupine.CheckOperations(oneLeads(), operations) {
		return
	}
	for _, old := range deeds {
		for _, d := range deeds {
			if d.term.created > old.term.created && d.until < old.from {
				in.violation("SAFE-7", old.from,
					fmt.Sprintf("%s (process %d) wrote with %s, %s after something had happened under %s",
						old.w.commit().Replica,
						old.w.commit().Process, tellFence(old.w.fence), old.from.Sub(d.until), tellFence(d.w.fence)),
					d.w.begun, old.w.begun)
				return
			}
		}
	}
	in.violation("SAFE-7", deeds[0].from,
		"what was written by leaders cannot be put into a row in which one leads at a time")
}
