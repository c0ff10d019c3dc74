package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// certificates: none ends while its instance is up and in contact, and none that comes has ended
// (FILE-2).
//
// Tolerated: another trouble within the last third of its life, in which it is to be renewed, or
// just before; and an instance that is not running by its record all that time.
func (in *inquiry) certificates() {
	had := map[string]history.Event{} // the last one, by instance
	serials := map[string]bool{}      // all that were seen: an agent that starts again tells its own
	for _, e := range in.events {
		c := e.Certificate
		if c == nil || serials[c.Serial] {
			continue
		}
		serials[c.Serial] = true
		if last, is := had[c.Instance]; is {
			in.ended(last, e.At)
		}
		had[c.Instance] = e
		if c.Left <= 0 && in.calm(c.Instance, span{e.At, e.At + 1}) {
			in.violation("FILE-2", e.At, fmt.Sprintf("the certificate that came to %s had ended %s before", c.Instance,
				-c.Left), append(in.past(c.Instance, e.At), e)...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(had)) {
		in.ended(had[id], in.end())
	}
}

// ended finds out whether a certificate was on its machine for longer than it may, up to a moment.
//
// Its life is counted since it was seen first, and not by its own times: the clock of the replica
// that issued it may have been wrong.
func (in *inquiry) ended(e history.Event, until history.Time) {
	life, id := in.terms.Certificate, e.Certificate.Instance
	due, last := e.At.Add(life*2/3), e.At.Add(life+in.terms.Slack)
	if until <= last || !in.calm(id, span{due, last}) {
		return
	}
	in.violation("FILE-2", last, fmt.Sprintf("the certificate of %s lasts %s, and is there for %s while nothing kept "+
		"it from being renewed", id, life, last.Sub(e.At)), append(in.past(id, last), e)...)
}

// calm reports whether an instance was up, without a fault, running by its record, and the
// coordinators were able to serve it, throughout a time and long enough before it.
func (in *inquiry) calm(id string, w span) bool {
	w.from = w.from.Add(-in.terms.recovery())
	f := in.truth.fates[id]
	if f == nil || !slices.ContainsFunc(f.up, func(s span) bool { return s.from <= w.from && w.to <= s.to }) ||
		slices.ContainsFunc(f.harms, func(h harm) bool { return w.meets(span{h.from, h.to.Add(in.terms.recovery())}) }) {
		return false
	}
	if slices.ContainsFunc(in.truth.troubles, func(t trouble) bool {
		return !isHarmless(t.Kind) && w.meets(span{t.from, t.to.Add(in.terms.recovery())}) ||
			// A disk that has no room is retried at last after a minute.
			strings.Contains(t.Kind, "disk") && t.from < w.to
	}) {
		return false
	}
	runs := false
	for _, r := range in.said[id] {
		if r.by >= w.to {
			break
		}
		now := r.record != nil && r.phase == store.Running
		if !now && r.by > w.from {
			return false
		}
		runs = now
	}
	return runs
}

// keysElsewhere: a private key is seen nowhere but on its machine (FILE-2).
func (in *inquiry) keysElsewhere() {
	for _, e := range in.events {
		if l := e.Leaked; l != nil {
			in.violation("FILE-2", e.At, fmt.Sprintf("a private key of %s is in %s: %s", l.Instance, l.Where, l.As), e)
		}
	}
}
