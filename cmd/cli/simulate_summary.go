package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/scenario"
)

// writeSummary prints the result of a run: the groups, the events, the machines and rules, and last
// the deviations from the specs.
func writeSummary(inv *Invocation, res *scenario.Result) error {
	scr := inv.screen()
	parts := []func(output.Screen, *scenario.Result) error{writeGroups, writeEventResults, writeCounts, writeOutcome}
	for i, part := range parts {
		if i > 0 {
			if _, err := io.WriteString(scr.W, "\n"); err != nil {
				return err
			}
		}
		if err := part(scr, res); err != nil {
			return err
		}
	}
	return nil
}

// secondsText formats a number of seconds.
func secondsText(seconds float64) string {
	if seconds < 10 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", seconds), ".0") + "s"
	}
	return output.Span(time.Duration(seconds*float64(time.Second)) + 500*time.Millisecond)
}

func writeGroups(scr output.Screen, res *scenario.Result) error {
	t := output.Table{Columns: []output.Column{
		{Title: "GROUP"},
		{Title: "SIZE", Right: true},
		{Title: "WORST", Right: true},
		{Title: "OF", Right: true},
		{Title: "AT"},
		{Title: "BELOW", Right: true},
		{Title: "SERVING", Right: true},
		{Title: "AT THE END"},
	}}
	for _, g := range res.Groups {
		end := "as wanted"
		if !g.Whole {
			end = g.Unfinished
		}
		worst, share, serving := "-", fmt.Sprintf("%d%%", g.Availability), fmt.Sprintf("%d%%", g.Serving)
		switch {
		case g.Never:
			worst, share, serving = "-", "never", "-"
		case g.At != "":
			worst = fmt.Sprintf("%d/%d", g.Healthy, g.Of)
		}
		t.Add(g.Name, fmt.Sprint(g.Size), share, worst, orDash(g.At), secondsText(g.Below), serving, end)
	}
	return t.Write(scr, false)
}

func writeEventResults(scr output.Screen, res *scenario.Result) error {
	if len(res.Events) == 0 {
		_, err := io.WriteString(scr.W, "no events\n")
		return err
	}
	t := output.Table{Columns: []output.Column{
		{Title: "AT"},
		{Title: "WORST", Right: true},
		{Title: "AS WANTED"},
		{Title: "EVENT"},
	}}
	for _, e := range res.Events {
		took := "not again"
		switch {
		case e.Converged == nil:
		case *e.Converged == 0:
			took = "all along"
		default:
			took = "after " + secondsText(*e.Converged)
		}
		what := e.What
		if scr.Terminal {
			what = output.Fit(what, 46)
		}
		t.Add(e.Time, fmt.Sprintf("%d%%", e.Worst), took, what)
	}
	return t.Write(scr, false)
}

func writeCounts(scr output.Screen, res *scenario.Result) error {
	m := res.Machines
	rules := make([]string, len(res.Rules))
	for i, r := range res.Rules {
		rules[i] = fmt.Sprintf("%s=%d", r.Rule, r.Count)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "machines  %d created, %d removed, at most %d at once\n", m.Created, m.Removed, m.AtOnce)
	fmt.Fprintf(&b, "storms    %s\n", orNone(res.Storms))
	for _, g := range res.Groups {
		if l := g.Load; l != nil {
			below, over := secondsText(l.Below)+" above its target, ", fmt.Sprintf(", %d too many at most", l.Over)
			if l.Outside { // its need is unknown
				below, over = "", ""
			}
			fmt.Fprintf(&b, "load      %s: %s%.0f machine minutes, %s of size, %s of direction%s\n", g.Name, below,
				l.Machines, counted(l.Changes, "change", "changes"), counted(l.Turns, "change", "changes"), over)
		}
	}
	writeIndented(&b, scr, "rules     ", orDash(strings.Join(rules, ", ")))
	fmt.Fprintf(&b, "run       %s, seed %d\n", res.Length, res.Seed)
	_, err := io.WriteString(scr.W, b.String())
	return err
}

// writeIndented writes a text after a prefix, in lines that fit a terminal.
func writeIndented(b *strings.Builder, scr output.Screen, head, text string) {
	text = output.OneLine(text)
	lines := []string{text}
	if scr.Terminal {
		lines = wrapped(text, screenWidth-len([]rune(head)))
	}
	for i, l := range lines {
		if i > 0 {
			head = strings.Repeat(" ", len([]rune(head)))
		}
		b.WriteString(head + l + "\n")
	}
}

// writeOutcome prints what is blocked at the end, and which expectations were met.
func writeOutcome(scr output.Screen, res *scenario.Result) error {
	var b strings.Builder
	for _, g := range res.Groups {
		for _, w := range g.Blocked {
			text := fmt.Sprintf("%s: %s", w.What, w.Why)
			if w.Count > 1 {
				text = fmt.Sprintf("%d × %s", w.Count, text)
			}
			if w.Until != "" {
				text += "; until " + w.Until
			}
			writeIndented(&b, scr, fmt.Sprintf("blocked   %s  %s: ", g.Name, w.Rule), text)
		}
	}
	for _, k := range res.Checks {
		mark := scr.Good("met      ")
		if !k.Met {
			mark = scr.Alarm("NOT MET  ")
		}
		fmt.Fprintf(&b, "%s %s: %s, wanted %s\n", mark, k.Name, k.Got, k.Want)
	}
	_, err := io.WriteString(scr.W, b.String())
	return err
}

func orNone(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}
