package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/view"
)

func (m *model) drawInstance(s *screen, at *spot, now time.Time) {
	s.command = "leasehold explain " + at.instance
	v, read := m.views.Instance(at.instance, now)
	switch {
	case !read:
		s.unread()
		return
	case !v.There && len(v.Events) == 0:
		s.add(line{text: "The shard has no record of it, and the journal in memory has no entry."})
		return
	}
	answer := v.Answer()
	if v.There {
		answer = sign(v.Unit.Kind) + " " + answer
	}
	s.wrapped(line{}, "", answer, func(text string) string { return s.styled(v.Unit.Kind, text) })
	if heir := v.Heir(); heir != "" {
		s.add(line{
			text: "  " + reason.OneLine(heir) + " was requested in its place", name: "heir",
			to: place{kind: ofInstance, group: v.Group, instance: heir},
		})
	}
	if v.Decision != nil && v.Prevented != "" {
		s.wrapped(line{}, "", strings.ToUpper(v.Prevented[:1])+v.Prevented[1:]+" ("+v.Decision.Rule+").", plain)
	}
	s.blocked(v.Blocked)
	s.upcoming(v.Upcoming, now)
	s.facts(&v, now)
	s.title("how it came to that")
	for _, e := range v.Events {
		s.entry(&e, at.instance, now)
	}
	if len(v.Events) == 0 {
		s.add(line{text: "  the journal in memory has no entry"})
	}
	if v.Claims > 0 {
		s.wrapped(line{}, "  ",
			fmt.Sprintf("%d refused requests under this name, which any client can give; they had no effect", v.Claims), s.Dim)
	}
}

// facts shows the present state.
func (s *screen) facts(v *view.Instance, now time.Time) {
	s.title("now")
	if !v.There {
		s.add(line{text: "  it has no record any more"})
		return
	}
	r := v.Record
	slot := "on demand"
	if r.Slot >= 0 {
		slot = fmt.Sprintf("slot %d", r.Slot)
	}
	s.wrapped(line{}, "  ", fmt.Sprintf("%s of %s, %s for %s, created %s ago, template %s", slot, r.Group, r.Phase,
		output.Age(now, r.Since), output.Age(now, r.Created), r.Template), plain)
	machine := []string{r.Spec.Provider}
	for _, more := range []string{r.Ref, r.Zone, r.Address} {
		if more != "" {
			machine = append(machine, more)
		}
	}
	s.wrapped(line{}, "  machine: ", strings.Join(machine, ", "), plain)
	for _, l := range v.Lines {
		s.wrapped(line{}, "  ", l, plain)
	}
	if !v.Report.Present() {
		return
	}
	host := v.Report.Record.Host
	s.add(line{text: fmt.Sprintf("  load: cpu %.0f%%  memory %.0f%%  disk %.0f%%", host.CPUPercent, host.MemoryPercent,
		host.DiskPercent)})
	if len(v.Load) < 2 {
		return
	}
	last := v.Load[len(v.Load)-1]
	s.add(line{text: fmt.Sprintf("  cpu     %s %d%%, in the last hour at most",
		blocks(s, v.Load, 100, func(l view.Load) (time.Time, float64) { return l.At, float64(l.CPU) }), last.CPU)})
}
