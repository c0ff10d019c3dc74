package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/scenario"
)

// screenWidth is the assumed width of a terminal.
const screenWidth = 80

// show prints the timeline and the result.
func (c *Simulate) show(inv *Invocation, res *scenario.Result) error {
	scr := inv.screen()
	var b strings.Builder
	for _, e := range res.Timeline {
		b.WriteString(timelineLine(scr, e))
	}
	if len(res.Timeline) > 0 {
		b.WriteString("\n")
	}
	if _, err := io.WriteString(scr.W, b.String()); err != nil {
		return err
	}
	return writeSummary(inv, res)
}

// timelineLine formats one entry: when, by which rule, about what, what happened, and why. Events
// of the scenario are highlighted.
func timelineLine(scr output.Screen, e scenario.Entry) string {
	about := e.Instance
	if about == "" {
		about = e.Group
	}
	rule := e.Rule
	if rule == "" {
		rule = map[scenario.Source]string{scenario.Happens: ">>>>", scenario.Over: "<<<<"}[e.Source]
	}
	what := output.OneLine(e.What)
	if e.Count > 1 {
		what = fmt.Sprintf("%d × %s", e.Count, what)
	}
	if e.Until != "" {
		what += " (to " + e.Until + ")"
	}
	why := output.OneLine(e.Why)
	if !scr.Terminal {
		return strings.Join([]string{e.Time, orDash(rule), orDash(about), what, why}, "\t") + "\n"
	}
	text := what
	if about != "" {
		text = about + "  " + what
	}
	if why != "" {
		text += ": " + why
	}
	head := fmt.Sprintf("%s %-8s ", e.Time, rule)
	lines := wrapped(text, screenWidth-len(head))
	for i, l := range lines {
		if i > 0 {
			l = strings.Repeat(" ", len(head)) + l
		}
		lines[i] = l
	}
	text = strings.Join(lines, "\n")
	if e.Source == scenario.Happens || e.Source == scenario.Over {
		return scr.Notice(head+text) + "\n"
	}
	return head + text + "\n"
}

// wrapped breaks a text into lines of a width, at spaces.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Split(text, " ") {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = word
			continue
		}
		if line != "" || len(lines) > 0 && word == "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
