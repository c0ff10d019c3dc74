package judge

import (
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// said is the content of an instance's record from one revision on.
type said struct {
	by       history.Time // when it was in etcd, at the latest
	line     int
	revision store.Revision
	phase    store.Phase // "": the record is gone
	record   *store.Instance
	called   bool
	found    bool
	event    history.Event
}

// commitKey identifies the transaction that wrote a key.
type commitKey struct {
	key      string
	revision store.Revision
}

// farApart is how much later than a client knew of its transaction the watcher may have seen it, to
// count as the same one: revisions start over after a restore of etcd.
const farApart = 60 * time.Second

// establish finds out since when each record was certainly in etcd. The watcher may have seen it
// late; the replica that wrote it knew when its transaction had ended, and calls no provider
// before.
func (in *inquiry) establish() {
	ended := map[commitKey][]history.Time{} // several where etcd's history started over
	for _, w := range in.transactions() {
		in.commits = true
		if w.outcome() != history.Happened {
			continue
		}
		for _, key := range w.commit().Keys {
			k := commitKey{key, w.ended.Commit.At}
			ended[k] = append(ended[k], w.ended.At)
		}
	}
	in.said = map[string][]said{}
	who := whose(in.transactions())
	// What was seen of the lines before a step's: a transaction of an equal revision that ended
	// earlier belongs to one of them.
	var earlier, seenOfLine history.Time
	line := 0
	for _, s := range in.steps {
		if s.line != line {
			line, earlier = s.line, seenOfLine
		}
		for _, e := range s.changes {
			seenOfLine = max(seenOfLine, e.At)
		}
		s.byHand = in.commits && !s.found && len(s.journal) == 0 && who.wrote(s) == nil
		for _, t := range s.transitions {
			r := said{by: t.event.At, line: s.line, revision: s.revision, found: s.found, event: t.event}
			seen := r.by
			for _, at := range ended[commitKey{t.event.Change.Key, s.revision}] {
				if at < r.by && at > earlier && seen.Sub(at) < farApart {
					r.by = at
				}
			}
			if t.next != nil {
				r.phase, r.called, r.record = t.next.Phase, t.next.Called, t.next
			}
			in.said[t.id] = append(in.said[t.id], r)
		}
	}
}

// everSaid reports whether a record with some property was in etcd before a moment. Without the
// commits of replicas only the watcher knows, which may be late.
func (in *inquiry) everSaid(id string, at history.Time, holds func(said) bool) bool {
	if !in.commits {
		at = at.Add(in.terms.Slack)
	}
	for _, r := range in.said[id] {
		if r.by <= at && holds(r) {
			return true
		}
	}
	return false
}

// gone returns since when a record was certainly gone at a moment; false if it was not, or that is
// unknown.
func (in *inquiry) gone(id string, at history.Time) (history.Event, bool) {
	var last said
	for _, r := range in.said[id] {
		if r.event.At <= at {
			last = r
		}
	}
	return last.event, last.event.Change != nil && last.phase == ""
}
