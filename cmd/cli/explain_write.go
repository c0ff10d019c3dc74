package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

func (inv *Invocation) print(b *strings.Builder) error {
	_, err := io.WriteString(inv.env.Stdout, b.String())
	return err
}

// maxClaims is how many refusals under an instance's name are shown: other clients may cause any
// number.
const maxClaims = 3

// writeClaims shows who gave an instance's name without proof.
func writeClaims(b *strings.Builder, scr output.Screen, st instanceStory, now time.Time, wide bool) {
	if len(st.Claims) == 0 {
		return
	}
	text := "Refused requests under this name, which any client can give; they had no effect"
	if more := len(st.Claims) - maxClaims; more > 0 {
		text += fmt.Sprintf(" (the last %d; %d before: leasehold events -i %s)", maxClaims, more, st.Instance)
	}
	output.WriteWrapped(b, scr, "", text)
	writeStory(b, scr, st.Claims[max(0, len(st.Claims)-maxClaims):], st.Instance, now, wide)
}

// showInstanceStory shows the answer, its history, what would have prevented it, and what is
// blocked.
func (inv *Invocation) showInstanceStory(st instanceStory) error {
	if done, err := inv.records(st); done {
		return err
	}
	var b strings.Builder
	scr, now := inv.screen(), inv.env.Now()
	output.WriteWrapped(&b, scr, "", st.Answer)
	for _, line := range st.Now {
		output.WriteWrapped(&b, scr, "  ", line)
	}
	if st.Stopped != "" {
		output.WriteWrapped(&b, scr, "", st.Stopped)
	}
	writeStory(&b, scr, st.Journal, st.Instance, now, inv.wide())
	writeClaims(&b, scr, st, now, inv.wide())
	if st.Decision != nil && st.Otherwise != "" {
		output.WriteWrapped(&b, scr, "", fmt.Sprintf("%s (%s).", capital(st.Otherwise), st.Decision.Rule))
	}
	writeBlocked(&b, scr, st.Blocked)
	writeComputed(&b, scr, st.Computed, st.Revision)
	writeNextDecision(&b, scr, st.nextText, "the instance")
	output.WriteWrapped(&b, scr, "next: ", st.Remedies.String())
	return inv.print(&b)
}

// writeNextDecision shows when a coordinator decides next; "" if never, since its subject is gone.
func writeNextDecision(b *strings.Builder, scr output.Screen, text, about string) {
	if text == "" {
		output.WriteWrapped(b, scr, "", "No further action: "+about+" is gone.")
		return
	}
	output.WriteWrapped(b, scr, "Next decision: ", text)
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// The widths of the columns of a story on a terminal; the column why takes the rest.
const (
	whatColumn = 18 // in an instance's story; in a group's the instance precedes it
	groupWhat  = 28
	ruleColumn = 7
	minWhy     = 18
)

// writeStory shows the journal: when, why, what, by which rule, and at which revision. On a
// terminal long texts are wrapped; in a pipe each entry is one line, with tabs.
func writeStory(b *strings.Builder, scr output.Screen, lines []storyLine, about string, now time.Time, wide bool) {
	if !scr.Terminal {
		for _, l := range lines {
			cells := []string{
				l.At.UTC().Format(time.RFC3339), orDash(l.Instance), l.What, l.Why, orDash(l.Rule),
				fmt.Sprint(int64(l.Revision)), strings.Join(l.Evidence, "; "),
			}
			for i := range cells {
				cells[i] = output.OneLine(cells[i])
			}
			b.WriteString(strings.Join(cells, "\t") + "\n")
		}
		return
	}
	when, rev := 0, 0
	for _, l := range lines {
		when = max(when, len(story.Clock(l.At, now)))
		rev = max(rev, len(fmt.Sprint(int64(l.Revision))))
	}
	mid := whatColumn
	if about == "" {
		mid = groupWhat
	}
	tail := rev + 1 + len("rev ")
	if scr.LineWidth() < output.LineWidth {
		mid, tail = whatColumn, 0 // a narrow terminal: without the revision
	}
	why := max(minWhy, scr.LineWidth()-when-mid-ruleColumn-tail-3)
	for _, l := range lines {
		what, reason := l.What, l.Why
		if reason == "" && l.To != "" {
			what, reason = string(l.To), l.What
		}
		if l.Instance != about && l.Instance != "" {
			what = l.Instance + ": " + what
		}
		left, middle := output.Folded(output.OneLine(reason), why), output.Folded(output.OneLine(what), mid)
		for i := range max(len(left), len(middle)) {
			row := fmt.Sprintf("%-*s %s %s", when, first(i, story.Clock(l.At, now)), padded(at(left, i), why),
				padded(at(middle, i), mid))
			if i == 0 {
				row += fmt.Sprintf(" %-*s", ruleColumn, orDash(l.Rule))
				if l.Revision != 0 && tail > 0 { // a gateway's entries have no revision
					row += " " + scr.Dim(fmt.Sprintf("rev %d", l.Revision))
				}
			}
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
		if wide {
			for _, e := range l.Evidence {
				b.WriteString(strings.Repeat(" ", when+1) + scr.Dim(output.OneLine(e)) + "\n")
			}
		}
	}
}

func first(i int, text string) string {
	if i == 0 {
		return text
	}
	return ""
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// writeBlocked shows what is held, by which rule, and what would free it.
func writeBlocked(b *strings.Builder, scr output.Screen, blocked []store.Blocked) {
	if len(blocked) == 0 {
		return
	}
	b.WriteString(scr.Notice("Why not yet") + "\n")
	for _, w := range story.Merge(blocked) {
		writeHeld(b, scr, w)
	}
}

func writeHeld(b *strings.Builder, scr output.Screen, w story.Blockage) {
	output.WriteWrapped(b, scr, "  ", fmt.Sprintf("%s (%s): %s", w.What(), w.Rule, w.Why()))
	if until := w.Until(); until != "" {
		output.WriteWrapped(b, scr, "    freed when: ", until)
	}
}

// writeComputed shows the predicted plan, which is not decided yet.
func writeComputed(b *strings.Builder, scr output.Screen, c *computed, at store.Revision) {
	if c == nil {
		return
	}
	output.WriteWrapped(b, scr, "",
		fmt.Sprintf("If nothing else happens (computed from revision %d, not decided yet):", at))
	if c.Plan != "" {
		output.WriteWrapped(b, scr, "  ", c.Plan)
	}
	for _, w := range story.Merge(c.Held) {
		writeHeld(b, scr, w)
	}
}
