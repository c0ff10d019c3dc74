package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// GroupHistory is the command group history.
type GroupHistory struct {
	Group string `arg:"" help:"Name of the group."`
}

// Run shows the specs that were in force, the newest first. As JSON they are as the leader stores
// them.
func (c *GroupHistory) Run(ctx context.Context, inv *Invocation) error {
	g, err := inv.group(ctx, c.Group)
	if err != nil {
		return err
	}
	st := g.Status.Record
	past := st.History
	if past == nil {
		past = []store.PastSpec{}
	}
	if done, err := inv.records(past); done {
		return err
	}
	if len(past) == 0 {
		inv.note("no spec of %s has been in force yet, according to its leader", c.Group)
		return nil
	}
	t := output.Table{Columns: []output.Column{
		{Title: "REVISION", Right: true},
		{Title: "WHEN"},
		{Title: "TEMPLATE"},
		{Title: "SIZE", Right: true},
		{Title: "GOOD"},
		{Title: "IN-FORCE"},
		{Title: "AGE", Spare: 1},
	}}
	now, scr := inv.env.Now(), inv.screen()
	for _, p := range past {
		when := p.At.UTC().Format(time.RFC3339)
		if scr.Terminal {
			when = p.At.In(now.Location()).Format("2006-01-02T15:04:05")
		}
		t.Add(fmt.Sprint(int64(p.Revision)), when, p.Template, fmt.Sprint(p.Size), yesOrDash(p.Good),
			yesOrDash(p.Revision == st.AcceptedRevision), output.Age(now, p.At))
	}
	return t.Write(scr, inv.wide())
}

func yesOrDash(yes bool) string {
	if yes {
		return "yes"
	}
	return "-"
}
