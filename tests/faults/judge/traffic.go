package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// traffic: who is in service at the load balancer, and when.
//
//   - An agent is told to drain after its instance has left the load balancer, or half of the
//     drain's time is over (LB-1).
//   - No machine is stopped while the load balancer sends it connections, within the time for
//     leaving (LB-1).
//   - No membership counts as confirmed that was never in service (LB-2).
//   - What must no longer be in service is out of it within a few looks at the load balancer
//     (LB-3).
//
// That every instance that should be in service is, and no other, is asked by the caller that calls
// a run quiet.
func (in *inquiry) traffic() {
	m := in.memberships()
	if len(m) == 0 {
		return
	}
	in.walk(in.steps, func(_ *world, s *step) {
		for _, t := range s.transitions {
			if s.found || s.byHand || t.old == nil || t.next == nil || in.truth.renewed(s.at, late) {
				continue
			}
			in.drainsInService(m, s, t)
			in.confirmsUnseen(m, s, t)
		}
	})
	in.stopsInService(m)
	in.servesTooLong()
}

// memberships are the times in which each instance was in service.
type memberships map[string][]span

func (in *inquiry) memberships() memberships {
	m := memberships{}
	for _, e := range in.events {
		switch {
		case e.Membership == nil:
		case e.Membership.What == history.Serves:
			end(m[e.Membership.Instance], e.At)
			m[e.Membership.Instance] = append(m[e.Membership.Instance], span{e.At, always})
		case e.Membership.What == history.Drains, e.Membership.What == history.Leaves:
			end(m[e.Membership.Instance], e.At)
		}
	}
	return m
}

// throughout reports whether an instance was in service all the time.
func (m memberships) throughout(id string, w span) bool {
	return slices.ContainsFunc(m[id], func(s span) bool { return s.from <= w.from && w.to < s.to })
}

// within reports whether it was at some moment.
func (m memberships) within(id string, w span) bool {
	return slices.ContainsFunc(m[id], func(s span) bool { return s.meets(w) })
}

func (in *inquiry) drainsInService(m memberships, s *step, t transition) {
	drain := t.next.Drain
	if drain == nil || drain.Token == "" || t.old.Drain != nil && t.old.Drain.Token != "" || len(t.next.Traffic) == 0 {
		return
	}
	draining := func(r *store.Instance) bool { return r.Phase == store.Draining }
	from, told := in.sinceWhen(t.id, s, draining), in.sinceWhen(t.id, s, turnedFromTraffic)
	if s.at.Sub(from) < drain.Timer.For.D()/2-in.terms.Slack && m.throughout(t.id, span{told, s.at}) {
		in.violation("LB-1", s.at, fmt.Sprintf("%s was told to drain %s after it was to leave, "+
			"and the load balancer sent it connections all the time",
			t.id, s.at.Sub(from).Round(1e8)), append(in.evidence(s, t.id), in.seenInService(t.id, s.at)...)...)
	}
}

// turnedFromTraffic reports whether a record wants its instance out of service.
func turnedFromTraffic(r *store.Instance) bool {
	return len(r.Traffic) > 0 && !slices.ContainsFunc(r.Traffic, func(t store.Traffic) bool { return t.State.Wanted() })
}

// sinceWhen returns since when a record that a step writes has had a property, without a break; as
// the step, if it has not had it before.
func (in *inquiry) sinceWhen(id string, s *step, has func(*store.Instance) bool) history.Time {
	since := s.at
	for _, r := range slices.Backward(in.said[id]) {
		if r.event.At > s.at {
			continue
		}
		if r.record == nil || !has(r.record) || r.line != s.line {
			break
		}
		since = r.by
	}
	return since
}

func (in *inquiry) confirmsUnseen(m memberships, s *step, t transition) {
	for _, now := range t.next.Traffic {
		i := slices.IndexFunc(t.old.Traffic, func(o store.Traffic) bool { return o.Balancer == now.Balancer })
		if now.State != store.TrafficServing || i < 0 || t.old.Traffic[i].State != store.TrafficJoining {
			continue
		}
		since := in.sinceWhen(t.id, s, func(r *store.Instance) bool {
			return slices.ContainsFunc(r.Traffic, func(o store.Traffic) bool {
				return o.Balancer == now.Balancer && o.State.Wanted()
			})
		})
		if !m.within(t.id, span{since, s.at + 1}) {
			in.violation("LB-2", s.at, fmt.Sprintf("%s counts as in service, and was not for a moment", t.id),
				append(in.evidence(s, t.id), in.seenInService(t.id, s.at)...)...)
		}
	}
}

// stopsInService: a Stop or a Delete begins after the load balancer has let its instance go.
//
// Tolerated: what is dead or has failed, for which no load balancer is waited for, and one that had
// its time.
func (in *inquiry) stopsInService(m memberships) {
	told := map[string]bool{}
	for _, e := range in.events {
		c := e.Call
		if c == nil || c.Ended || c.Method != history.Stop && c.Method != history.Delete || told[c.Instance] ||
			in.truth.renewed(e.At, late) {
			continue
		}
		from, limit := in.leaving(c.Instance, e.At)
		if limit == 0 || e.At.Sub(from) >= limit-in.terms.Slack || !m.throughout(c.Instance, span{from, e.At}) {
			continue
		}
		told[c.Instance] = true
		in.violation("LB-1", e.At, fmt.Sprintf("%s was called for %s, to which the load balancer sent connections", c.Method,
			c.Instance), append(append(in.past(c.Instance, e.At), in.seenInService(c.Instance, e.At)...), e)...)
	}
}

// leaving returns since when an instance was to leave the load balancer at a moment, and how long
// that is waited for; 0 if it need not be.
func (in *inquiry) leaving(id string, at history.Time) (from history.Time, limit time.Duration) {
	for _, r := range in.said[id] {
		if r.by > at {
			break
		}
		leaves := r.record != nil && !r.record.Dead && r.phase == store.Deleting &&
			slices.ContainsFunc(r.record.Traffic, func(t store.Traffic) bool {
				return t.State == store.TrafficLeaving && t.Timer != nil
			})
		switch {
		case !leaves:
			from, limit = 0, 0
		case limit == 0:
			from, limit = r.by, r.record.Traffic[0].Timer.For.D()
		}
	}
	return from, limit
}

// maxLooks is how often a leader may see an instance in service that should not be: what it has
// asked for may be under way while it looks.
const maxLooks = 4

// harmless are the beginnings of kinds of troubles that keep no leader from acting.
var harmless = []string{
	"balancer-", "member-added", "file-", "machine-", "agent-", "workload-", "instance-ordered", "group-edited",
	"group-scaled", "group-restarted", "zone-evacuated",
}

// servesTooLong: a pass of the leader begins with a look at the load balancer. It has a few until
// an instance that is not to be in service is out of it. That is counted in its own looks, so that
// it does not depend on how fast the run's machine is.
//
// Tolerated: looks while a trouble keeps leaders from acting or just did; those after a call that
// failed, which is tried again later; and an instance whose record is gone without a note
// (SAFE-18).
func (in *inquiry) servesTooLong() {
	type looks struct {
		by    string
		times int
	}
	seen, failed := map[string]looks{}, map[string]history.Time{}
	noted := in.notedGone()
	for _, e := range in.events {
		m := e.Membership
		if m == nil {
			continue
		}
		if m.What == history.Failed {
			failed[m.Instance] = e.At
		}
		if m.What != history.Listed {
			if m.What != history.Serves || m.Replica != "" {
				delete(seen, m.Instance)
			}
			continue
		}
		for _, id := range m.Ready {
			at, hasFailed := failed[id]
			if !in.unwanted(id, m.Began, noted) || !in.unwanted(id, e.At, noted) || hasFailed && e.At.Sub(at) < late ||
				in.truth.hampered(e.At) {
				delete(seen, id)
				continue
			}
			l := seen[id]
			if l.by != m.Replica {
				l = looks{by: m.Replica}
			}
			l.times++
			seen[id] = l
			if l.times == maxLooks+1 {
				in.violation("LB-3", e.At, fmt.Sprintf("%s has seen %d times that %s is in service, which it should not be",
					m.Replica,
					l.times, id), append(append(in.past(id, e.At), in.seenInService(id, e.At)...), in.lastSaid(id)...)...)
			}
		}
	}
}

// notedGone returns when each instance was noted as deleted on purpose.
func (in *inquiry) notedGone() map[string]history.Time {
	out := map[string]history.Time{}
	for _, e := range in.events {
		if id, is := in.goneNote(e); is {
			out[id] = e.At
		}
	}
	return out
}

// unwanted reports whether an instance should not be in service, as far as it was in etcd at a
// moment.
func (in *inquiry) unwanted(id string, at history.Time, noted map[string]history.Time) bool {
	var last said
	for _, r := range in.said[id] {
		if r.by <= at {
			last = r
		}
	}
	if last.record == nil {
		gone, is := noted[id]
		return is && gone <= at
	}
	return turnedFromTraffic(last.record)
}

// hampered reports whether leaders were kept from acting at a moment, or just before.
func (t *truth) hampered(at history.Time) bool {
	w := span{at, at + 1}
	return slices.ContainsFunc(t.troubles, func(tr trouble) bool {
		return w.meets(span{tr.from, tr.to.Add(t.terms.recovery())}) &&
			!isHarmless(tr.Kind)
	})
}

func isHarmless(trouble string) bool {
	return slices.ContainsFunc(harmless, func(kind string) bool { return strings.HasPrefix(trouble, kind) })
}

// seenInService returns the last events of an instance at the load balancer.
func (in *inquiry) seenInService(id string, at history.Time) (out []history.Event) {
	for _, e := range in.events {
		if m := e.Membership; m != nil && m.Instance == id && e.At <= at {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-maxEvents):]
}

// files: a managed file is the old one or the new one, whenever it is looked at (FILE-3).
func (in *inquiry) files() {
	for _, e := range in.events {
		if f := e.Torn; f != nil {
			in.violation("FILE-3", e.At, fmt.Sprintf("file %s of %s is half written: %s", f.Path, f.Instance, f.What),
				append(in.past(f.Instance, e.At), e)...)
		}
	}
}
