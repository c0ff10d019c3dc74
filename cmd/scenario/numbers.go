package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// series is a number from outside over time: it goes from one value to another in a straight line,
// and stays there.
type series struct {
	known       bool
	from, to    float64
	begun, over time.Duration
	fails       int // so many events have it fail now
}

// at returns its value at a time since the beginning.
func (s *series) at(clock time.Duration) float64 {
	if clock >= s.begun+s.over {
		return s.to
	}
	return s.from + (s.to-s.from)*float64(clock-s.begun)/float64(s.over)
}

// become changes the value. The first value has no line that leads to it.
func (s *series) become(value float64, clock, over time.Duration) {
	if !s.known {
		over = 0
	}
	*s = series{known: true, from: s.at(clock), to: value, begun: clock, over: over, fails: s.fails}
}

func (s *series) ask(w *sim.World) (float64, error) {
	switch {
	case s.fails > 0:
		return 0, errors.New("it does not answer")
	case !s.known:
		return 0, errors.New("the scenario gives it no value yet")
	}
	return s.at(w.Elapsed()), nil
}

// sources returns the sources that the world asks: all that a group of the scenario names.
func (st *stage) sources() map[string]sim.Source {
	st.numbers = map[string]*series{}
	all := map[string]sim.Source{}
	for _, name := range st.sc.sources {
		st.numbers[name] = &series{}
		numbers := st.numbers[name]
		all[name] = func(w *sim.World, _ string) (float64, error) { return numbers.ask(w) }
	}
	return all
}

// follow measures the size of each group that follows a number from outside.
func (st *stage) follow(groups []store.Group) {
	for i := range groups {
		if followsNumbers(&groups[i]) {
			st.w.Follow(groups[i].Name)
		}
	}
}

func followsNumbers(g *store.Group) bool {
	return g.Scale != nil && slices.ContainsFunc(g.Scale.Targets, func(t store.ScaleTarget) bool { return t.From != "" })
}

// judgeable refuses expectations of what instances need where a group follows a number from
// outside: a scenario does not say how many instances such a number needs.
func (r *reading) judgeable(m *fields) {
	i := slices.IndexFunc(r.groups, func(g store.Group) bool { return followsNumbers(&g) })
	if i < 0 {
		return
	}
	for _, name := range []string{"below_target", "overshoot"} {
		if m.has(name) {
			m.Wrong(m.keys[name], yamlfile.Join(m.path, name), "cannot be judged: %s follows a number from outside, "+
				"and a scenario does not say how many instances that needs: expect size_changes or size_turns", r.groups[i].Name)
		}
	}
}

// sourceField reads the source that an event is about.
func (f *fields) sourceField() string {
	const allowed = "a source that a group of the scenario names with from"
	name := f.text("from", allowed, "Of this source.")
	switch {
	case !f.has("from"):
		f.missing("from", allowed)
	case name != "" && !slices.Contains(f.sources, name):
		f.refuse("from", f.value["from"], allowed)
	}
	return name
}

// decimal reads a number that need not be whole.
func (f *fields) decimal(name string, low, high float64, doc string) float64 {
	allowed := fmt.Sprintf("a number, %v to %v", low, high)
	n := f.ask(name, "", allowed, doc)
	if n == nil {
		f.missing(name, allowed)
		return 0
	}
	v, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || !(v >= low && v <= high) {
		f.refuse(name, n, allowed)
		return 0
	}
	return v
}

func readNumber(f *fields) (text, time.Duration, func(*stage) string) {
	source := f.sourceField()
	value := f.decimal("value", -1e12, 1e12, "What it becomes.")
	over := f.length("over", "0s", 0, longest, "How long it takes to become that, in a straight line.")
	what := fmt.Sprintf("%s becomes %s", source, strconv.FormatFloat(value, 'f', -1, 64))
	if over > 0 {
		what += " within " + words(over)
	}
	return says(what), 0, func(st *stage) string {
		st.numbers[source].become(value, st.w.Elapsed(), over)
		return ""
	}
}

func readNoNumber(f *fields) (text, time.Duration, func(*stage) string) {
	source := f.sourceField()
	d := f.lasting("Then it answers again.")
	return says(source + " does not answer"), d, func(st *stage) string {
		s := st.numbers[source]
		s.fails++
		st.later(d, func() { s.fails-- })
		return ""
	}
}
