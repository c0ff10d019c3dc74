package scenario

import (
	"fmt"
	"strconv"
	"time"
)

// expect reads the expectations.
func (r *reading) expect(f *fields, s *Scenario) {
	m := r.mapping("expect", f.ask("expect", "", "fields",
		"Expectations; if one is not met, the exit code is 1."), "")
	percent := func(name, doc string) *int {
		n := m.percent(name, "not asked", doc)
		if !m.has(name) {
			return nil
		}
		return &n
	}
	most := func(name, doc string) *int {
		n := m.number(name, 0, 0, 10_000_000, doc)
		m.asked[len(m.asked)-1].Default = "not asked"
		if !m.has(name) {
			return nil
		}
		return &n
	}
	s.Expect.Availability = percent("worst_availability", "In no group are fewer instances healthy.")
	s.Expect.Serving = percent("worst_serving", "In no group do fewer instances run with passing "+
		"checks, whether or not their agents are heard.")
	s.Expect.Created = most("machines_created", "No more machines are created.")
	s.Expect.AtOnce = most("machines_at_once", "No more machines exist at once.")
	s.Expect.Storms = most("storms", "No more storms occur (SAFE-2).")
	s.Expect.Over = most("overshoot",
		"When a group has just grown, its size exceeds the need by no more instances (AUTO-2).")
	s.Expect.Changes = most("size_changes", "The size of no group changes more often by its load (AUTO-2).")
	s.Expect.Turns = most("size_turns", "The size of no group changes its direction more often (AUTO-2).")
	below := m.length("below_target", "not asked", 0, maxLength,
		"The instances of no group have more load than a target and its tolerance for longer (AUTO-1).")
	if m.has("below_target") {
		s.Expect.Below = &below
	}
	if d := m.length("converged_within", "not asked", time.Second, maxLength,
		"After each event, everything is as wanted within this time. For an event that lasts, "+
			"the time may also count from its end."); m.has("converged_within") {
		s.Expect.Converged = &d
	}
	s.Expect.Whole = m.flagOr("converged", true, "At the end everything is as wanted.")
	r.judgeable(m)
	m.done()
}

// judge returns which expectations were met.
func (x Expect) judge(res *Result) {
	add := func(name, want, got string, met bool) {
		res.Checks = append(res.Checks, Check{name, want, got, met})
		res.Met = res.Met && met
	}
	worst, serving, never := 100, 100, ""
	for _, g := range res.Groups {
		worst, serving = min(worst, g.Availability), min(serving, g.Serving)
		if g.Never && never == "" {
			never = fmt.Sprintf(", as %s was never complete (%d of %d at best)", g.Name, g.Best, g.Size)
		}
	}
	if x.Availability != nil {
		add("worst_availability", fmt.Sprintf("at least %d%%", *x.Availability), fmt.Sprintf("%d%%%s", worst, never),
			worst >= *x.Availability)
	}
	if x.Serving != nil {
		add("worst_serving", fmt.Sprintf("at least %d%%", *x.Serving), fmt.Sprintf("%d%%%s", serving, never),
			serving >= *x.Serving)
	}
	load := res.loadWorst()
	if x.Below != nil {
		below := time.Duration(load.Below * float64(time.Second))
		add("below_target", "at most "+words(*x.Below), words(below), below <= *x.Below)
	}
	for _, m := range []struct {
		name string
		most *int
		got  int
	}{
		{"machines_created", x.Created, res.Machines.Created},
		{"machines_at_once", x.AtOnce, res.Machines.AtOnce},
		{"storms", x.Storms, res.Storms},
		{"overshoot", x.Over, load.Over},
		{"size_changes", x.Changes, load.Changes},
		{"size_turns", x.Turns, load.Turns},
	} {
		if m.most != nil {
			add(m.name, fmt.Sprintf("at most %d", *m.most), strconv.Itoa(m.got), m.got <= *m.most)
		}
	}
	if x.Converged != nil {
		got, met := x.slowest(res.Events)
		add("converged_within", words(*x.Converged), got, met)
	}
	if x.Whole && !res.Cut {
		got := "yes"
		if !res.Whole {
			got = "no"
		}
		add("converged", "at the end", got, res.Whole)
	}
}

// slowest returns the event with the longest time to converge, and whether that is short enough.
func (x Expect) slowest(events []EventResult) (got string, met bool) {
	longest, after := -1.0, ""
	for _, e := range events {
		took := e.Converged
		if e.Late != nil {
			took = e.Late
		}
		if took == nil {
			return "not at all after " + e.Time, false
		}
		if *took > longest {
			longest, after = *took, e.Time
		}
	}
	if after == "" {
		return "no event happened", true
	}
	d := time.Duration(longest * float64(time.Second))
	return fmt.Sprintf("%s after %s", about(d), after), d <= *x.Converged
}
