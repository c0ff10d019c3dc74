package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// Result is the result of a scenario.
type Result struct {
	Seed     uint64        `json:"seed"`
	Length   string        `json:"length"` // how much was played
	Cut      bool          `json:"interrupted,omitempty"`
	Whole    bool          `json:"converged"` // at the end everything is as wanted
	Met      bool          `json:"met"`       // all expectations were met
	Groups   []GroupResult `json:"groups"`
	Machines MachineCount  `json:"machines"`
	Storms   int           `json:"storms"`
	Events   []EventResult `json:"events"`
	Rules    []RuleCount   `json:"rules"`
	Checks   []Check       `json:"expectations"`
	Broken   []string      `json:"impossible,omitempty"` // violations of what holds in every world
	Timeline []Entry       `json:"timeline,omitempty"`

	judgments int // of instances, in all plans together
}

// GroupResult is the result of one group.
type GroupResult struct {
	Name  string `json:"name"`
	Size  int    `json:"size"`
	Never bool   `json:"never_complete,omitempty"` // availability is 0% then
	// the most instances that were healthy at once, if the group was never complete
	Best         int     `json:"best_healthy,omitempty"`
	Availability int     `json:"worst_availability_percent"`
	Healthy      int     `json:"worst_healthy"`
	Of           int     `json:"worst_of"`
	At           string  `json:"worst_at,omitempty"`
	Serving      int     `json:"worst_serving_percent"`
	ServingAt    string  `json:"worst_serving_at,omitempty"`
	Below        float64 `json:"below_seconds"`         // total time below 100%
	Longest      float64 `json:"longest_below_seconds"` // longest time below 100%
	Storms       int     `json:"storms"`
	Whole        bool    `json:"converged"`
	// Load is set for a group with a load.
	Load       *LoadOutcome `json:"load,omitempty"`
	Blocked    []Blocked    `json:"blocked,omitempty"` // at the end
	Unfinished string       `json:"unfinished,omitempty"`
}

// Blocked is work that is due at the end but not done, with the number of instances that share the
// reason.
type Blocked struct {
	Rule  string `json:"rule"`
	What  string `json:"what"`
	Why   string `json:"why"`
	Until string `json:"until,omitempty"`
	Count int    `json:"count"`
}

// MachineCount counts machines.
type MachineCount struct {
	Created int `json:"created"`
	Removed int `json:"removed"`
	AtOnce  int `json:"at_once"`
}

// RuleCount counts the actions of a rule.
type RuleCount struct {
	Rule  string `json:"rule"`
	Count int    `json:"count"`
}

// EventResult is what an event led to, before the next one.
type EventResult struct {
	At     time.Duration `json:"-"` // since the beginning
	Time   string        `json:"at"`
	Kind   string        `json:"kind"`
	What   string        `json:"what"`
	Detail string        `json:"detail,omitempty"`
	Worst  int           `json:"worst_availability_percent"`
	// Converged is how long it took until everything was as wanted again; nil if it never was. Late
	// is the same from the end of an event that lasts, if it had not converged before.
	Converged *float64 `json:"converged_seconds"`
	Late      *float64 `json:"converged_after_end_seconds,omitempty"`

	text  text // What without the time that it lasts
	lasts time.Duration
	seen  bool
	until time.Duration // when everything was as wanted again
	open  bool          // not converged yet
}

// Check is an expectation, and whether it was met.
type Check struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

// look follows an event until everything is as wanted again. What begins before the next event is
// attributed to it.
func (e *EventResult) look(at time.Duration, latest bool, r *recorder) {
	if !latest && !e.open {
		return
	}
	whole, worst := true, 100
	for _, name := range r.names {
		whole = whole && r.groups[name].whole
		worst = min(worst, r.groups[name].healthy)
	}
	if !e.seen {
		e.seen, e.Worst, e.until = true, worst, e.At
	}
	if latest {
		e.Worst = min(e.Worst, worst)
	}
	switch {
	case !whole:
		e.open = true
	case e.open:
		e.open, e.until = false, at
	}
}

func (r *recorder) result() *Result {
	end := r.w.Elapsed()
	r.dirty = true
	r.look()
	res := &Result{
		Seed: r.sc.Seed, Length: words(end.Round(time.Second)), Cut: r.cut, Whole: true, Met: true, Storms: r.storms,
		Broken:   r.broken,
		Machines: MachineCount{Created: r.made, Removed: r.removed, AtOnce: r.atOnce}, Timeline: inOrder(r.all),
		judgments: r.judgments,
		Groups:    []GroupResult{}, Events: []EventResult{}, Rules: []RuleCount{}, Checks: []Check{},
	}
	for _, name := range r.names {
		g := r.group(name)
		res.Whole = res.Whole && g.Whole
		res.Groups = append(res.Groups, g)
	}
	for _, e := range r.events {
		res.Events = append(res.Events, e.ended())
	}
	for rule, n := range r.rules {
		res.Rules = append(res.Rules, RuleCount{rule, n})
	}
	slices.SortFunc(res.Rules, func(a, b RuleCount) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Rule, b.Rule))
	})
	r.sc.Expect.judge(res)
	return res
}

func (r *recorder) group(name string) GroupResult {
	st := r.groups[name]
	g := GroupResult{
		Name: name, Size: st.size, Availability: st.worst, Healthy: st.worstOf[0], Of: st.worstOf[1],
		Serving: st.serving,
		Below:   seconds(st.below), Longest: seconds(st.longest), Storms: st.storms, Whole: st.whole,
	}
	if !st.first {
		g.Never, g.Best, g.Availability, g.Serving, g.Of = true, st.best, 0, 0, st.size
		return r.ended(g, st)
	}
	if st.worst < 100 {
		g.At = Clock(st.worstAt)
	}
	if st.serving < 100 {
		g.ServingAt = Clock(st.servingAt)
	}
	return r.ended(g, st)
}

// ended adds what is incomplete at the end.
func (r *recorder) ended(g GroupResult, st *groupHealth) GroupResult {
	status := sim.Read[store.Status](r.w, r.w.Keys().Status(g.Name)).Record
	g.Blocked, g.Load = blockedOf(status.Blocked), loadOutcome(r.w, g.Name)
	if !st.whole {
		g.Unfinished = unfinished(status, st.size)
	}
	return g
}

// unfinished returns what is incomplete.
func unfinished(s store.Status, size int) string {
	switch {
	case s.Accepted == nil:
		return "no spec is in force"
	case s.Errored > 0:
		return fmt.Sprintf("%d of %d healthy, %d given up", s.Healthy, size, s.Errored)
	case s.Outdated > 0:
		return fmt.Sprintf("%d of %d healthy, %d outdated", s.Healthy, size, s.Outdated)
	default:
		return fmt.Sprintf("%d of %d healthy, work is under way", s.Healthy, size)
	}
}

func (e EventResult) ended() EventResult {
	if e.open {
		return e
	}
	took := seconds(e.until - e.At)
	if took < 1 {
		took = 0 // it was handled at once, and required no change
	}
	e.Converged = &took
	if end := e.At + e.lasts; e.lasts > 0 && e.until > end {
		late := seconds(e.until - end)
		e.Late = &late
	}
	return e
}

// seconds returns a duration in seconds, rounded to tenths.
func seconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Millisecond).Milliseconds()) / 1000
}

// blockedOf groups blocked work by its reason.
func blockedOf(all []store.Blocked) (out []Blocked) {
	var causes []store.Blocked
	for _, b := range all {
		cause := reason.FoldedBlocked(b)
		i := slices.Index(causes, cause)
		if i < 0 {
			causes = append(causes, cause)
			out = append(out, Blocked{Rule: b.Rule, What: b.What, Why: b.Why, Until: b.Until, Count: 1})
			continue
		}
		cause.Instance = reason.Omitted
		o := &out[i]
		o.What, o.Why, o.Until = reason.What(&cause), reason.Why(&cause), reason.Until(&cause)
		o.Count++
	}
	return out
}
