package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Events is the command events.
type Events struct {
	Group    string `short:"g" help:"Show only entries about this group." placeholder:"NAME"`
	Instance string `short:"i" help:"Show only entries about this instance." placeholder:"ID"`
	Since    Ago    `help:"How far back to go, such as 90s, 30m, 24h or 7d." default:"24h" placeholder:"DURATION"`
	Follow   bool   `short:"f" help:"Keep printing new entries."`
}

// Run shows the journal, the oldest first.
func (c *Events) Run(ctx context.Context, inv *Invocation) error {
	if c.Follow && inv.flags.Output == "yaml" {
		return failure(Usage, "leasehold events --follow -o json, which writes one record in each line",
			"--follow has no end, so it cannot be one YAML document")
	}
	back := time.Duration(c.Since)
	since := inv.env.Now().Add(-back)
	entries, at, err := inv.journal(ctx, since)
	if err != nil {
		return err
	}
	raw := []json.RawMessage{}
	var lines []string
	var ofGroup, ofInstance bool
	for _, kv := range entries {
		e, err := store.Decode[store.JournalEntry](kv)
		if err != nil {
			return err
		}
		ofGroup, ofInstance = ofGroup || e.Record.Group == c.Group, ofInstance || e.Record.Instance == c.Instance
		if c.concerns(e.Record) {
			raw = append(raw, asJSON(kv.Value))
			lines = append(lines, eventLine(inv.screen(), e.Record, inv.env.Now(), inv.wide()))
		}
	}
	if c.Group != "" && !ofGroup {
		if err := inv.knownGroup(ctx, []string{inv.flags.Shard}, c.Group); err != nil {
			return err
		}
	}
	if c.Instance != "" && !ofInstance {
		if err := inv.knownInstance(ctx, c.Instance, back); err != nil {
			return err
		}
	}
	if c.Follow {
		return c.follow(ctx, inv, raw, lines, at)
	}
	if done, err := inv.records(raw); done {
		return err
	}
	if len(lines) == 0 {
		inv.note("nothing happened in the last %s", output.Span(back))
	}
	_, err = io.WriteString(inv.env.Stdout, strings.Join(lines, ""))
	return err
}

// journal reads the entries since a time, and returns the revision.
func (inv *Invocation) journal(ctx context.Context, since time.Time) (
	entries []store.KV, at store.Revision, err error,
) {
	err = atOneRevision(0, func() error {
		entries = nil
		return inv.parts(ctx, inv.keys().Of(store.KindEvents), inv.keys().EventsFrom(since), 0, 0,
			func(part store.Part) bool {
				entries, at = append(entries, part.KVs...), part.Revision
				return true
			})
	})
	return entries, at, err
}

func (c *Events) concerns(e store.JournalEntry) bool {
	return (c.Group == "" || e.Group == c.Group) && (c.Instance == "" || e.Instance == c.Instance)
}

// revisionBy names the revision of a decision and the replica that made it. Entries of a gateway
// have no revision.
func revisionBy(e store.JournalEntry) string {
	if e.Revision == 0 {
		return "by " + e.By
	}
	return fmt.Sprintf("rev %d by %s", e.Revision, e.By)
}

// eventLine formats one entry: when, which rule, about what, what was decided, and why. It is one
// line, which a terminal of known width gets folded between words.
func eventLine(scr output.Screen, e store.JournalEntry, now time.Time, wide bool) string {
	about := e.Instance
	switch {
	case about == "":
		about = orDash(e.Group)
	case e.Claimed:
		about += "?"
	}
	rule, about := output.OneLine(orDash(e.Rule)), output.OneLine(about)
	if !scr.Terminal {
		return strings.Join([]string{
			e.At.UTC().Format(time.RFC3339), rule, about, output.OneLine(e.What),
			output.OneLine(reason.Text(e.Cause, e.Why)),
			fmt.Sprint(int64(e.Revision)), output.OneLine(e.By), output.OneLine(strings.Join(reason.Evidence(&e), "; ")),
		}, "\t") + "\n"
	}
	at := e.At.In(now.Location())
	when := at.Format("15:04:05")
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		when = at.Format("01-02 15:04:05")
	}
	head := fmt.Sprintf(" %-8s %-14s ", rule, about)
	what, why := output.OneLine(e.What), output.OneLine(reason.Text(e.Cause, e.Why))
	severe := func(text string) string { return scr.Severe(reason.SeverityOf(&e), text) }
	line := scr.Dim(when) + head + foldedEvent(scr.Width, len(when)+len([]rune(head)), what, why, severe)
	if wide {
		line += scr.Dim("  [" + output.OneLine(revisionBy(e)) + "]")
		for _, ev := range reason.Evidence(&e) {
			line += "\n    " + scr.Dim(output.OneLine(ev))
		}
	}
	return line + "\n"
}

// eventIndent is how far the further lines of an entry are indented: to below its rule.
const eventIndent = len("15:04:05 ")

// foldedEvent returns what was decided and why, in lines of at most width columns, of which the
// first has some already; 0: in one line. Severe is the style of what was decided.
func foldedEvent(width, taken int, what, why string, severe func(string) string) string {
	text := what
	if why != "" {
		text = what + ": " + why
	}
	if width <= 0 || taken+len([]rune(text)) <= width {
		return severe(what) + strings.TrimPrefix(text, what)
	}
	var out strings.Builder
	left, room := len(strings.Fields(what)), width-taken // words of what was decided
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case out.Len() == 0 && n <= room:
		case out.Len() > 0 && n < room:
			out.WriteByte(' ')
			room--
		default:
			out.WriteString("\n" + strings.Repeat(" ", eventIndent))
			room = width - eventIndent
		}
		if left--; left >= 0 {
			word = severe(word)
		}
		out.WriteString(word)
		room -= n
	}
	return out.String()
}
