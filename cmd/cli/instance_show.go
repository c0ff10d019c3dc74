package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// InstanceShow is the command instance show.
type InstanceShow struct {
	Instance string `arg:"" help:"ID of the instance."`
}

// instanceDocument is one instance in JSON: its records as stored.
type instanceDocument struct {
	Instance json.RawMessage `json:"instance"`
	Revision store.Revision  `json:"revision"`
	Alive    json.RawMessage `json:"alive"`
	Report   json.RawMessage `json:"report"`
	Slot     json.RawMessage `json:"slot"`
}

// Run shows the instance.
func (c *InstanceShow) Run(ctx context.Context, inv *Invocation) error {
	v, kv, err := inv.instance(ctx, c.Instance)
	if err != nil {
		return err
	}
	doc := instanceDocument{Instance: kv.Value, Revision: kv.Modified}
	i := v.Record
	var alive store.Versioned[store.Alive]
	var rep store.Versioned[store.Report]
	var slot store.Versioned[store.Slot]
	if alive, doc.Alive, err = findRecord[store.Alive](ctx, inv, inv.keys().Alive(i.ID)); err != nil {
		return err
	}
	if rep, doc.Report, err = findRecord[store.Report](ctx, inv, inv.keys().Report(i.ID)); err != nil {
		return err
	}
	if slot, doc.Slot, err = findRecord[store.Slot](ctx, inv, inv.keys().Slot(i.Group, i.Slot)); err != nil {
		return err
	}
	if done, err := inv.records(doc); done {
		return err
	}
	now := inv.env.Now()
	scr := inv.screen()
	fmt.Fprintf(scr.W, "%s  %s for %s  group %s slot %s  created %s ago\n", i.ID, i.Phase, output.Age(now, i.Since),
		i.Group, slotOf(i), output.Age(now, i.Created))
	fmt.Fprintf(scr.W, "last: %s: %s (%s ago, on revision %d)\n", i.Last.Rule, lastDone(i.Last),
		output.Age(now, i.Last.At), i.Last.Revision)
	fmt.Fprintf(scr.W, "machine: provider %s, ref %s, zone %s, address %s, template %s\n", i.Spec.Provider,
		orDash(i.Ref), orDash(i.Zone), orDash(i.Address), i.Template)
	if i.Replaces != "" {
		fmt.Fprintf(scr.W, "replaces: %s\n", i.Replaces)
	}
	if o := i.Condemned; o != nil {
		fmt.Fprintf(scr.W, "ordered to go: %s ago by %s: %s\n", output.Age(now, o.At), output.OneLine(o.By),
			output.OneLine(o.Why))
	}
	for _, line := range story.InstanceLines(i, now) {
		fmt.Fprintln(scr.W, output.OneLine(line))
	}
	showSession(scr, alive, now)
	if err := showReport(scr, rep, now); err != nil {
		return err
	}
	showSlot(scr, slot, now)
	fmt.Fprintf(scr.W, "next: leasehold explain %s\n", i.ID)
	return nil
}

// lastDone returns the last action, and why it was taken.
func lastDone(d store.Decision) string {
	if d.What == "" {
		return output.OneLine(reason.Text(d.Cause, d.Why))
	}
	return output.OneLine(d.What + ": " + reason.Text(d.Cause, d.Why))
}

// instance reads one instance, or fails with NotFound.
func (inv *Invocation) instance(ctx context.Context, id string) (
	v store.Versioned[store.Instance], kv store.KV, err error,
) {
	if !isName(id) {
		return v, kv, inv.noInstance(ctx, id)
	}
	if kv, err = inv.find(ctx, inv.keys().Instance(id)); err != nil {
		return v, kv, err
	}
	if kv.Modified == 0 {
		return v, kv, inv.noInstance(ctx, id)
	}
	if v, err = store.Decode[store.Instance](kv); err != nil {
		return v, kv, failure(Failed, "leasehold repair "+store.KindInstances+"/"+id,
			"the record of instance %s cannot be read: %s", id, unreadable(kv.Key, err))
	}
	return v, kv, inv.checkBaseOf("the record of instance "+id, v.Modified)
}

func showSession(scr output.Screen, v store.Versioned[store.Alive], now time.Time) {
	if !v.Present() {
		fmt.Fprintln(scr.W, "agent: no session")
		return
	}
	a := v.Record
	fmt.Fprintf(scr.W, "agent: stream %s for %s at replica %s, version %s, epoch %d, lease %s\n", a.State,
		output.Age(now, a.Since), a.Replica, orDash(output.OneLine(a.Agent)), a.Epoch, a.Lease)
	if a.Why != "" {
		fmt.Fprintf(scr.W, "  %s\n", output.OneLine(a.Why))
	}
}

func showReport(scr output.Screen, v store.Versioned[store.Report], now time.Time) error {
	if !v.Present() {
		fmt.Fprintln(scr.W, "report: none")
		return nil
	}
	r := v.Record
	health := "healthy"
	if !r.Healthy {
		health = "unhealthy: " + output.OneLine(r.Why)
	}
	fmt.Fprintf(scr.W, "report: kept %s ago: %s; cpu %.0f%%, memory %.0f%%, disk %.0f%%, up %s\n",
		output.Age(now, r.Received), health, r.Host.CPUPercent, r.Host.MemoryPercent, r.Host.DiskPercent,
		output.Span(r.Uptime.D()))
	if err := showWindows(scr, r.Host.Windows); err != nil {
		return err
	}
	for _, c := range r.Checks {
		if c.Name == store.IdleCheck {
			fmt.Fprintf(scr.W, "  %s, for %s (BUSY-1)\n", story.Busy(&r), output.Age(now, c.Since))
			continue
		}
		fmt.Fprintf(scr.W, "  %s\n", checkLine(c, now))
	}
	for _, f := range r.Files {
		fmt.Fprintf(scr.W, "  %s\n", story.FileLine(f, now))
	}
	if w := r.Workload; w != nil {
		fmt.Fprintf(scr.W, "  workload ended %s ago with %d%s\n", output.Age(now, w.At), w.Code, signal(w.Signal))
		if w.Output != "" {
			fmt.Fprintf(scr.W, "  its last output: %s\n", output.OneLine(lastLine(w.Output)))
		}
	}
	return nil
}

// showWindows prints a small table of the machine's recent usage.
func showWindows(scr output.Screen, windows []store.HostWindow) error {
	if len(windows) == 0 {
		return nil
	}
	t := output.Table{Indent: "  ", Columns: []output.Column{
		{Title: "OVER"},
		{Title: "CPU", Right: true},
		{Title: "MEMORY", Right: true},
		{Title: "DISK", Right: true},
		{Title: "SENT", Right: true},
		{Title: "RECEIVED", Right: true},
	}}
	percent := func(p float64) string { return fmt.Sprintf("%.0f%%", p) }
	for _, w := range windows {
		over := output.Span(w.Span.D())
		if w.Covered < w.Span {
			over = output.Span(w.Covered.D()) + " of " + over
		}
		t.Add(over, percent(w.CPUPercent), percent(w.MemoryPercent), percent(w.DiskPercent),
			output.Bytes(w.NetworkSent), output.Bytes(w.NetworkRecv))
	}
	return t.Write(scr, true)
}

// checkLine describes the state of a check: check http:8081 for 12s FAILS 0/2: connection refused.
func checkLine(c store.CheckReport, now time.Time) string {
	why := output.OneLine(c.Why)
	line := fmt.Sprintf("check %s for %s ", story.CheckName(c), output.Age(now, c.Since))
	progress := c.Progress()
	switch {
	case !c.Healthy:
		return line + strings.TrimSpace("FAILS "+progress) + ": " + why
	case c.Pending:
		line += "is new and has not decided yet"
	default:
		line += "passes"
	}
	if progress != "" {
		line += ", but failed " + progress + ": " + why
	}
	return line
}

// lastLine returns the last line of a text: logs has the rest.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func signal(name string) string {
	if name == "" {
		return ""
	}
	return " (" + output.OneLine(name) + ")"
}

func showSlot(scr output.Screen, v store.Versioned[store.Slot], now time.Time) {
	state := story.SlotState(v.Record, now)
	if !v.Present() || len(v.Record.Failures) == 0 && state == "" {
		return
	}
	fmt.Fprintf(scr.W, "slot: %s counted\n", counted(len(v.Record.Failures), "failure", "failures"))
	for _, f := range v.Record.Failures {
		fmt.Fprintf(scr.W, "  %s ago  %s  %s  %s\n", output.Age(now, f.At), f.Instance, f.Verdict,
			output.OneLine(reason.Text(f.Cause, f.Why)))
	}
	if state != "" {
		fmt.Fprintf(scr.W, "  %s\n", state)
	}
	if g := v.Record.GiveUp; g != nil && v.Record.Errored == "" {
		fmt.Fprintf(scr.W, "  given up in %s if that goes on\n", story.Ends(*g, now))
	}
}
