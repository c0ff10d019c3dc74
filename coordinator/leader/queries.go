package leader

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
)

// queries are the external metrics that groups want, and when to ask for each next. Plans do not
// wait for answers.
type queries struct {
	of   map[string]query.Settings // by source
	asks map[query.Key]*ask
	keys []query.Key // in order
}

// ask is one metric that is wanted.
type ask struct {
	groups  map[string]bool
	running bool
	due     time.Time
}

// want records which sources a group names now.
func (l *Leader) want(group string, sources []string, now time.Time) {
	q := &l.queries
	wanted := map[query.Key]bool{}
	for _, name := range sources {
		s, known := q.of[name]
		key := s.Key(name, group)
		if !known {
			l.cfg.Evidence.Unasked(group, name)
			continue
		}
		wanted[key] = true
		a := q.asks[key]
		if a == nil {
			a = &ask{groups: map[string]bool{}, due: now}
			q.asks[key] = a
			q.keys = append(q.keys, key)
			slices.SortFunc(q.keys, func(a, b query.Key) int {
				return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Group, b.Group))
			})
		}
		if !a.groups[group] {
			a.groups[group] = true
			if !a.running {
				a.due = now // a group that wants it only now does not wait for the next turn
			}
		}
	}
	for _, key := range slices.Clone(q.keys) {
		a := q.asks[key]
		if wanted[key] || !a.groups[group] {
			continue
		}
		delete(a.groups, group)
		l.cfg.Evidence.Unwanted(group, key.Source)
		q.forget(key)
	}
}

// forget drops a metric that no group wants any more.
func (q *queries) forget(key query.Key) {
	if a := q.asks[key]; len(a.groups) == 0 && !a.running {
		delete(q.asks, key)
		q.keys = slices.DeleteFunc(q.keys, func(k query.Key) bool { return k == key })
	}
}

// beginQueries asks for the metrics that are due.
func (l *Leader) beginQueries(now time.Time) {
	for _, key := range l.queries.keys {
		if a := l.queries.asks[key]; !a.running && !a.due.After(now) {
			a.running = true
			l.do(Query{Key: key, Begun: now})
		}
	}
}

// queried handles an answer.
func (l *Leader) queried(now time.Time, e Queried) {
	a := l.queries.asks[e.Key]
	a.running = false
	if a.due = e.Begun.Add(l.queries.of[e.Key.Source].Every); a.due.Before(now) {
		a.due = now.Add(query.ShortestEvery) // it takes longer than its interval
	}
	l.cfg.Evidence.Queried(slices.Sorted(maps.Keys(a.groups)), e.Key.Source, e.Begun, e.Value, e.Err)
	l.queries.forget(e.Key)
}

// NextQuery returns when to ask for the next metric, or zero.
func (l *Leader) NextQuery() (next time.Time) {
	for _, key := range l.queries.keys {
		if a := l.queries.asks[key]; !a.running {
			next = plan.Sooner(next, a.due)
		}
	}
	return next
}
