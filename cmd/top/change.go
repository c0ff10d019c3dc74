package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
)

// The signs of a bar, as in the grid, and of lines.
const barWidth = 30

var heights = []rune("▁▂▃▄▅▆▇█")

// change shows a roll, when planned work may begin, and the instances that it leaves alone.
func (s *screen) change(v *view.Group, now time.Time) {
	if r := v.Roll; r != nil {
		s.title("roll to " + r.Template)
		if c := r.Canary; c != nil {
			s.wrapped(line{}, "  ", canaries(c), plain)
		}
		if !r.Rests.IsZero() {
			s.add(line{text: s.Notice("  rests for another " + output.Age(r.Rests, now) + ", then goes on")})
		}
		if !r.Halted && !r.Stalls.IsZero() {
			s.add(line{text: s.Dim("  without progress it is stalled in " + output.Age(r.Stalls, now) + " (ROLL-4)")})
		}
		for _, z := range r.Zones {
			at := "  "
			if z.Now {
				at = "> "
			}
			counts := fmt.Sprintf("%d done, %d under way, %d waiting", z.Done, z.Busy, z.Waits)
			if z.Failing > 0 {
				counts += ", " + s.Alarm(fmt.Sprintf("%d failing", z.Failing))
			}
			s.add(line{text: fmt.Sprintf("%s%-10s %s %s", at, output.Fit(orDash(z.Name), 10), s.rollBar(z), counts)})
		}
	}
	if len(v.Turns) > 0 {
		s.title("waiting, as intended")
		for _, b := range v.Turns {
			s.wrapped(line{}, "  ", b.What()+" ("+b.Rule+"): "+b.Why(), plain)
			if until := b.Until(); until != "" {
				s.wrapped(line{}, "    may begin: ", until, plain)
			}
		}
	}
	if len(v.Planned) > 0 {
		s.title("when planned work may begin (ROLL-6)")
		for _, p := range v.Planned {
			s.wrapped(line{}, fmt.Sprintf("  %-11s", p.Work), opening(p, now), plain)
		}
	}
	if len(v.Protects) > 0 {
		s.title("protected (REC-13)")
		for _, p := range v.Protects {
			text := p.ID
			if p.By != "" {
				text += " by " + p.By
			}
			if !p.Until.IsZero() {
				text += " for another " + output.Age(p.Until, now)
			}
			if p.Why != "" {
				text += ": " + p.Why
			}
			s.wrapped(line{}, "  ", text, plain)
		}
	}
	if n := len(v.Busy); n > 0 {
		var ids []string
		for _, b := range v.Busy[:min(n, story.MaxNamed)] {
			ids = append(ids, b.ID)
		}
		if more := n - len(ids); more > 0 {
			ids = append(ids, fmt.Sprintf("%d more", more))
		}
		s.wrapped(line{}, "  ", fmt.Sprintf("%d busy (BUSY-1): %s", n, strings.Join(ids, ", ")), plain)
	}
}

// canaries describes the progress of the first instances of a roll.
func canaries(c *view.Canary) string {
	text := fmt.Sprintf("%d of %d canaries", len(c.Slots), c.Of)
	for i, n := range c.Slots {
		sep := ", "
		if i == 0 {
			sep = " in slots "
		}
		text += sep + strconv.Itoa(n)
	}
	if c.Promoted != "" {
		return text + ", promoted: " + c.Promoted + " (ROLL-5)"
	}
	return text + ", not promoted yet (ROLL-5)"
}

// opening says when a kind of planned work may begin.
func opening(p view.Planned, now time.Time) string {
	var text string
	switch {
	case p.Open:
		text = "now"
		if len(p.Periods) > 0 && p.Periods[0].To.Before(now.Add(view.PlannedAhead)) {
			text += ", for another " + output.Age(p.Periods[0].To, now)
		}
	case p.Opens.IsZero():
		text = "not by its windows"
	default:
		text = fmt.Sprintf("%s UTC, in %s", p.Opens.UTC().Format("Mon 01-02 15:04"), output.Age(p.Opens, now))
	}
	if f := p.Freeze; f != nil {
		text += "; frozen"
		if f.By != "" {
			text += " by " + f.By
		}
		if f.Why != "" {
			text += ": " + f.Why
		}
	}
	return text
}

// rollBar draws the progress of a roll in a zone.
func (s *screen) rollBar(z view.RollZone) string {
	bar, done, drawn := "", 0, 0
	for _, p := range []struct {
		kind, sign string
		n          int
	}{{"", "█", z.Done}, {"unhealthy", "!", z.Failing}, {"starting", "+", z.Busy}, {"vacant", "·", z.Waits}} {
		done += p.n
		to := barWidth * done / max(1, z.All())
		if p.n > 0 && to == drawn && to < barWidth {
			to++ // even a small part is visible
		}
		bar += s.styled(p.kind, strings.Repeat(p.sign, max(0, to-drawn)))
		drawn = max(drawn, to)
	}
	return bar
}

// load shows the size and the load of the last hour as lines of blocks.
func (s *screen) load(v *view.Group, now time.Time) {
	if v.Scale == nil && len(v.Trend) < 2 {
		return
	}
	s.title("size and load, in the last hour at most")
	if sc := v.Scale; sc != nil {
		text := fmt.Sprintf("size %d, from %d to %d", sc.Size, sc.Min, sc.Max)
		if sc.Asks > 0 {
			text += fmt.Sprintf("; load asks for %d", sc.Asks)
		}
		if sc.Stays != "" {
			text += ": " + sc.Stays
		}
		s.wrapped(line{}, "  ", text, plain)
		if c := sc.Last; c != nil {
			s.wrapped(line{}, "  ",
				fmt.Sprintf("changed %s ago, %d → %d: %s", output.Age(now, c.At), c.From, c.To, c.Why), s.Dim)
		}
	}
	if len(v.Trend) < 2 {
		return
	}
	most := 1
	for _, m := range v.Trend {
		most = max(most, m.Size, m.Run)
	}
	if v.Scale != nil {
		most = max(most, v.Scale.Max)
	}
	last := v.Trend[len(v.Trend)-1]
	size := func(m view.Moment) (time.Time, float64) { return m.At, float64(m.Size) }
	s.add(line{text: fmt.Sprintf("  size    %s %d of at most %d", blocks(s, v.Trend, float64(most), size), last.Size,
		most)})
	if last.Told == 0 {
		return
	}
	s.add(line{text: fmt.Sprintf("  cpu     %s %.0f%%",
		blocks(s, v.Trend, 100, func(m view.Moment) (time.Time, float64) { return m.At, m.CPU }), last.CPU)})
	s.add(line{text: fmt.Sprintf("  memory  %s %.0f%%",
		blocks(s, v.Trend, 100, func(m view.Moment) (time.Time, float64) { return m.At, m.Memory }), last.Memory)})
}

// blocks draws numbers as a line of blocks, the newest last.
func blocks[T any](s *screen, trend []T, most float64, of func(T) (time.Time, float64)) string {
	width := max(10, min(60, s.Width-34))
	out := []rune(strings.Repeat(" ", width))
	last, _ := of(trend[len(trend)-1])
	for _, m := range trend {
		when, n := of(m)
		at := width - 1 - int(float64(last.Sub(when))/float64(view.TrendFor)*float64(width))
		if at >= 0 {
			out[at] = heights[max(0, min(len(heights)-1, int(n/most*float64(len(heights)))))]
		}
	}
	return string(out)
}

// axis shows the decisions of the last hour in lanes, and the bands below them.
func (s *screen) axis(v view.Axis) {
	s.title(fmt.Sprintf("time, from %s to %s UTC, a column for %s", v.From.UTC().Format("15:04"),
		v.To.UTC().Format("15:04"), output.Age(v.To, v.To.Add(-v.Step))))
	for _, l := range v.Lanes {
		most := slices.Max(l.Counts)
		if most == 0 {
			continue
		}
		row := make([]rune, len(l.Counts))
		for i, n := range l.Counts {
			row[i] = ' '
			if n > 0 {
				row[i] = heights[(len(heights)-1)*n/most]
			}
		}
		s.add(line{text: fmt.Sprintf("  %-8s %s", l.Name, string(row))})
	}
	for _, b := range v.Bands {
		row := []rune(strings.Repeat(" ", len(v.Lanes[0].Counts)))
		for _, p := range b.Periods {
			for i := range row {
				from := v.From.Add(time.Duration(i) * v.Step)
				if p.From.Before(from.Add(v.Step)) && p.To.After(from) {
					row[i] = '─'
				}
			}
		}
		text := string(row)
		if b.Name == "storm" || b.Name == "breaker" || b.Name == "hold" {
			text = s.Alarm(text)
		}
		s.add(line{text: fmt.Sprintf("  %-8s %s", b.Name, text)})
	}
}
