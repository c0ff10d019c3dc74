package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// InstanceLogs is the command instance logs (DET-19).
type InstanceLogs struct {
	Instance string `arg:"" help:"ID of the instance, which may be gone."`
}

// logsDocument is the stored output of an instance's end, in JSON: the records as stored.
type logsDocument struct {
	Instance string              `json:"instance"`
	Received *time.Time          `json:"received,omitempty"` // the report that it comes from
	Workload *store.WorkloadExit `json:"workload_exit"`
	Journal  []json.RawMessage   `json:"journal"` // entries about a failure of the instance
}

// Run shows how the workload of an instance ended, its last output, and the journal's entries about
// that.
func (c *InstanceLogs) Run(ctx context.Context, inv *Invocation) error {
	if !isName(c.Instance) {
		return inv.noInstance(ctx, c.Instance)
	}
	record, err := inv.find(ctx, inv.keys().Instance(c.Instance))
	if err != nil {
		return err
	}
	rep, _, err := findRecord[store.Report](ctx, inv, inv.keys().Report(c.Instance))
	if err != nil {
		return err
	}
	doc := logsDocument{Instance: c.Instance, Journal: []json.RawMessage{}}
	if rep.Record.Workload != nil {
		doc.Workload, doc.Received = rep.Record.Workload, &rep.Record.Received
	}
	entries, known, err := inv.ends(ctx, c.Instance)
	if err != nil {
		return err
	}
	if record.Modified == 0 && !rep.Present() && !known {
		return failure(NotFound, "leasehold instance list",
			"no instance %q, and nothing about it in the journal of the last %s", c.Instance, output.Span(farBack))
	}
	for _, e := range entries {
		doc.Journal = append(doc.Journal, e.raw)
	}
	if done, err := inv.records(doc); done {
		return err
	}
	return inv.showLogs(doc, entries, record.Modified != 0, rep.Present())
}

// ending is an entry of the journal about the end of an instance or of its workload.
type ending struct {
	store.JournalEntry
	raw json.RawMessage
}

// ends returns the journal's entries about an instance that failed, oldest first, and whether there
// is any entry about it.
func (inv *Invocation) ends(ctx context.Context, id string) (found []ending, known bool, err error) {
	entries, err := inv.mentions(ctx, id, inv.keys().EventsFrom(inv.env.Now().Add(-farBack)), "")
	if err != nil {
		return nil, false, err
	}
	for _, kv := range entries {
		e, err := store.Decode[store.JournalEntry](kv)
		if err != nil {
			return nil, false, err
		}
		if e.Record.Instance != id {
			continue
		}
		known = true
		if e.Record.Verdict.Failed() || e.Record.Workload != nil || e.Record.Console != "" {
			found = append(found, ending{e.Record, asJSON(kv.Value)})
		}
	}
	return found, known, nil
}

// showLogs shows the stored output to a person: standard output has nothing else.
func (inv *Invocation) showLogs(doc logsDocument, entries []ending, exists, reported bool) error {
	id, now := doc.Instance, inv.env.Now()
	for _, e := range entries {
		if _, err := io.WriteString(inv.env.Stderr,
			eventLine(output.Screen{Terminal: true, Colour: inv.aside().Colour}, e.JournalEntry, now, true)); err != nil {
			return err
		}
	}
	w := doc.Workload
	console := ""
	for i := len(entries) - 1; w == nil && i >= 0; i-- {
		if w = entries[i].Workload; console == "" {
			console = entries[i].Console
		}
	}
	switch {
	case w != nil && w.Output == "":
		inv.note("%s: its workload exited %s ago with %d%s, without any output", id, output.Age(now, w.At), w.Code,
			signal(w.Signal))
	case w != nil:
		inv.note("%s: its workload exited %s ago with %d%s; its last output:", id, output.Age(now, w.At), w.Code,
			signal(w.Signal))
		return writeLines(inv.screen(), w.Output)
	case console != "":
		inv.note("%s: its machine died, and how its workload exited is unknown; the end of its console:", id)
		return writeLines(inv.screen(), console)
	case exists && reported:
		inv.note("%s: no output is kept: its workload has not failed since its agent started", id)
	case exists:
		inv.note("%s: no output is kept: its agent has not reported", id)
	case len(entries) > 0:
		inv.note("%s is gone, and its workload had not exited by itself: the journal has only the output above", id)
	default:
		inv.note("%s is gone, and the journal has no failure of it: the output of an instance that was removed while "+
			"healthy is not kept; see leasehold events -i %s%s", id, id, farBackFlag)
	}
	return nil
}

// writeLines writes a text of several lines. For a terminal it removes control characters; a pipe
// gets the text unchanged.
func writeLines(scr output.Screen, text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if !scr.Terminal {
		_, err := io.WriteString(scr.W, text)
		return err
	}
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(scr.W, output.OneLine(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}
