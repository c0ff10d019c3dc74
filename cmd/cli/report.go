package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/review"
)

// Report is the command report (DAY-5).
type Report struct {
	Group string `short:"g" help:"Report on this group alone, in full." placeholder:"NAME"`
	Since Ago    `help:"How far back to go, such as 24h or 7d." default:"7d" placeholder:"DURATION"`
	From  string `help:"Report on a file of leasehold events export: all of it, whatever --since says; - is standard input." placeholder:"FILE"`
}

// Run computes the report from the journal and shows it.
func (c *Report) Run(ctx context.Context, inv *Invocation) error {
	if c.Since <= 0 {
		return failure(Usage, "leasehold report --since 7d", "--since: must be more than 0")
	}
	in, err := c.past(ctx, inv)
	if err != nil {
		return err
	}
	doc := review.Of(in)
	if c.Group != "" {
		doc.Groups = slices.DeleteFunc(doc.Groups, func(g review.Group) bool { return g.Name != c.Group })
		switch {
		case len(doc.Groups) > 0:
		case c.From != "":
			return failure(NotFound, "leasehold report --from "+reason.ShellWord(c.From), "%s has no group %q", c.From, c.Group)
		default:
			if err := inv.knownGroup(ctx, []string{inv.flags.Shard}, c.Group); err != nil {
				return err
			}
		}
	}
	if done, err := inv.records(doc); done {
		return err
	}
	return c.write(inv, doc)
}

func (c *Report) past(ctx context.Context, inv *Invocation) (review.Input, error) {
	if c.From != "" {
		content, err := inv.eventFile(c.From)
		if err != nil {
			return review.Input{}, err
		}
		return content.Past, nil
	}
	now := inv.env.Now()
	in, _, err := inv.past(ctx, now.Add(-time.Duration(c.Since)), now)
	return in, err
}

func (c *Report) write(inv *Invocation, doc review.Report) error {
	scr := inv.screen()
	zone := inv.env.Now().Location()
	if scr.Terminal || c.Group != "" {
		fmt.Fprintf(scr.W, "%s to %s\n", doc.From.In(zone).Format("2006-01-02 15:04"),
			doc.To.In(zone).Format("2006-01-02 15:04"))
	}
	if c.Group == "" {
		t := output.ReportTable(doc)
		if err := t.Write(scr, inv.wide()); err != nil {
			return err
		}
	}
	for _, g := range doc.Groups {
		if c.Group != "" {
			for _, l := range output.ReportLines(g) {
				fmt.Fprintln(scr.W, l.Text)
			}
		}
	}
	if len(doc.Groups) == 0 {
		inv.note("nothing was wanted in this time")
	}
	if scr.Terminal || c.Group != "" {
		var b strings.Builder
		for _, line := range doc.Unknown {
			output.WriteWrapped(&b, scr, "note: ", line)
		}
		_, err := io.WriteString(scr.W, b.String())
		return err
	}
	return nil
}
