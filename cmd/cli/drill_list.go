package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// DrillList is the command drill list.
type DrillList struct {
	Group string `arg:"" optional:"" help:"Name of the group; with it each promise is shown."`
	Since Ago    `help:"How far back to go, such as 24h or 7d." default:"7d" placeholder:"DURATION"`
}

// listedDrill is a drill with its outcome.
type listedDrill struct {
	Group    string           `json:"group"`
	Seen     review.DrillSeen `json:"seen"`
	Promises []review.Promise `json:"promises"` // none while it is running, and if it was refused
	Outcome  review.Outcome   `json:"outcome"`
}

func (d *listedDrill) kept() string {
	switch d.Outcome {
	case review.OutcomeKept:
		return "yes"
	case review.OutcomeBroken:
		return "NO"
	case review.OutcomeOpen:
		return "-"
	default:
		return string(d.Outcome)
	}
}

// Run reads the drills from the journal and shows them.
func (c *DrillList) Run(ctx context.Context, inv *Invocation) error {
	if c.Since <= 0 {
		return failure(Usage, "leasehold drill list --since 7d", "--since: must be more than 0")
	}
	kvs, _, err := inv.journal(ctx, inv.env.Now().Add(-time.Duration(c.Since)))
	if err != nil {
		return err
	}
	of := map[string][]*store.JournalEntry{}
	for _, kv := range kvs {
		e, err := store.Decode[store.JournalEntry](kv) // status names records that cannot be read
		if err == nil && e.Record.Group != "" && (c.Group == "" || e.Record.Group == c.Group) {
			of[e.Record.Group] = append(of[e.Record.Group], &e.Record)
		}
	}
	all := []listedDrill{}
	for name, entries := range of {
		drills := review.Drills(entries)
		if len(drills) == 0 {
			continue
		}
		g, err := inv.group(ctx, name)
		if err != nil {
			inv.note("%s: its promises are no longer known: %s", name, err)
			continue
		}
		for _, seen := range drills {
			promises := []review.Promise{}
			if seen.Over() && seen.Refused == "" {
				blamed, err := inv.blamedIn(ctx, name, seen)
				if err != nil {
					return err
				}
				promises = seen.Promises(g.Spec, blamed)
			}
			all = append(all, listedDrill{name, seen, promises, seen.Outcome(promises)})
		}
	}
	slices.SortStableFunc(all, func(a, b listedDrill) int {
		return cmp.Or(b.Seen.At.Compare(a.Seen.At), cmp.Compare(a.Group, b.Group))
	})
	if len(of) == 0 && c.Group != "" {
		if err := inv.knownGroup(ctx, []string{inv.flags.Shard}, c.Group); err != nil {
			return err
		}
	}
	if done, err := inv.records(all); done {
		return err
	}
	if len(all) == 0 {
		inv.note("there was no drill in this time")
		return nil
	}
	return c.write(inv, all)
}

func (c *DrillList) write(inv *Invocation, all []listedDrill) error {
	zone := inv.env.Now().Location()
	if c.Group != "" {
		for _, d := range all {
			fmt.Fprintf(inv.screen().W, "%s  %s, by %s\n", d.Seen.At.In(zone).Format("2006-01-02 15:04:05"),
				reason.OneLine(d.Seen.Target()), reason.OneLine(d.Seen.By))
			switch d.Outcome {
			case review.OutcomeRefused:
				fmt.Fprintf(inv.screen().W, "refused: %s\n", reason.OneLine(d.Seen.Refused))
				continue
			case review.OutcomeOpen:
				fmt.Fprintln(inv.screen().W, "it goes on")
				continue
			default:
			}
			if err := inv.promiseTable(d.Promises); err != nil {
				return err
			}
		}
		return nil
	}
	t := output.Table{Columns: []output.Column{
		{Title: "AT"},
		{Title: "GROUP"},
		{Title: "TARGET", Spare: 2},
		{Title: "BY", Spare: 3},
		{Title: "FAILED", Cut: true},
		{Title: "SERVED-AFTER", Right: true, Spare: 1},
		{Title: "KEPT"},
	}}
	for _, d := range all {
		var ids []string
		served := "-"
		var longest time.Duration
		for _, i := range d.Seen.Instances {
			ids = append(ids, i.Instance)
			longest = max(longest, i.Served.Sub(i.Ended))
		}
		if d.Seen.Over() && d.Seen.Refused == "" {
			served = review.Took(longest)
		}
		t.Add(d.Seen.At.In(zone).Format("2006-01-02 15:04:05"), d.Group, reason.OneLine(d.Seen.Target()), d.Seen.By,
			orDash(someOf(ids)), served, d.kept())
	}
	return t.Write(inv.screen(), inv.wide())
}
