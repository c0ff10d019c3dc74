package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// Report is the command report (DAY-5).
type Report struct {
	Group string `short:"g" help:"Report on this group alone, in full." placeholder:"NAME"`
	Since Ago    `help:"How far back to go, such as 24h or 7d." default:"7d" placeholder:"DURATION"`
	From  string `help:"Report on a file of leasehold events export: all of it, whatever --since says; - is standard input." placeholder:"FILE"`
}

// Run computes the report from the journal and shows it.
func (c *Report) Run(ctx context.Context, s *Session) error {
	if c.Since <= 0 {
		return failure(Usage, "leasehold report --since 7d", "--since: must be more than 0")
	}
	in, err := c.past(ctx, s)
	if err != nil {
		return err
	}
	doc := review.Of(in)
	if c.Group != "" {
		doc.Groups = slices.DeleteFunc(doc.Groups, func(g review.Group) bool { return g.Name != c.Group })
		switch {
		case len(doc.Groups) > 0:
		case c.From != "":
			return failure(NotFound, "leasehold report --from "+shellWord(c.From), "%s has no group %q", c.From, c.Group)
		default:
			if err := s.knownGroup(ctx, []string{s.flags.Shard}, c.Group); err != nil {
				return err
			}
		}
	}
	if done, err := s.records(doc); done {
		return err
	}
	return c.write(s, doc)
}

func (c *Report) past(ctx context.Context, s *Session) (review.Input, error) {
	if c.From != "" {
		content, err := s.eventFile(c.From)
		if err != nil {
			return review.Input{}, err
		}
		return content.Past, nil
	}
	now := s.env.Now()
	in, _, err := s.past(ctx, now.Add(-time.Duration(c.Since)), now)
	return in, err
}

func (c *Report) write(s *Session, doc review.Report) error {
	scr := s.screen()
	zone := s.env.Now().Location()
	if scr.Terminal || c.Group != "" {
		fmt.Fprintf(scr.W, "%s to %s\n", doc.From.In(zone).Format("2006-01-02 15:04"),
			doc.To.In(zone).Format("2006-01-02 15:04"))
	}
	if c.Group == "" {
		t := reportTable(doc)
		if err := t.Write(scr, s.wide()); err != nil {
			return err
		}
	}
	for _, g := range doc.Groups {
		if c.Group != "" {
			writeGroupReport(scr, g)
		}
	}
	if len(doc.Groups) == 0 {
		s.note("nothing was wanted in this time")
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

// reportTable has one row for each group.
func reportTable(doc review.Report) output.Table {
	t := output.Table{Columns: []output.Column{
		{Title: "GROUP"},
		{Title: "AVAILABLE", Right: true},
		{Title: "LOST", Right: true},
		{Title: "MOST-LOST-BY", Cut: true},
		{Title: "FAILURES", Right: true},
		{Title: "DETECT-P95", Right: true},
		{Title: "HEAL-P95", Right: true},
		{Title: "HEAL-WORST", Right: true},
		{Title: "WORST"},
		{Title: "MADE", Right: true},
		{Title: "WANTED", Right: true, Wide: true},
	}}
	for _, g := range doc.Groups {
		most := "-"
		if len(g.Causes) > 0 {
			most = g.Causes[0].Why
		}
		t.Add(g.Name, review.Percent(g.Available), review.Took(g.Lost.D()), most,
			fmt.Sprint(max(g.Heal.Times, g.Detect.Times)),
			tookOrDash(g.Detect, g.Detect.P95), tookOrDash(g.Heal, g.Heal.P95), tookOrDash(g.Heal, g.Heal.Worst),
			orDash(g.Heal.Instance), fmt.Sprint(g.Total()), review.Took(g.Wanted.D()))
	}
	return t
}

// writeGroupReport writes all that is known of a group.
func writeGroupReport(scr output.Screen, g review.Group) {
	fmt.Fprintf(scr.W, "%s  available %s: %s lost of %s wanted, all slots together\n", g.Name, review.Percent(g.Available),
		review.Took(g.Lost.D()), review.Took(g.Wanted.D()))
	for _, c := range g.Causes {
		fmt.Fprintf(scr.W, "  lost     %s: %s, %s\n", c.Why, review.Took(c.Lost.D()), counted(c.Times, "time", "times"))
	}
	for _, line := range []struct {
		name   string
		spread review.Spread
	}{{"detect", g.Detect}, {"replace", g.Replace}, {"heal", g.Heal}} {
		if line.spread.Times == 0 {
			fmt.Fprintf(scr.W, "  %-8s never\n", line.name)
			continue
		}
		fmt.Fprintf(scr.W, "  %-8s p50 %s, p95 %s, worst %s (%s), %s\n", line.name, review.Took(line.spread.P50.D()),
			review.Took(line.spread.P95.D()), review.Took(line.spread.Worst.D()), line.spread.Instance,
			counted(line.spread.Times, "time", "times"))
	}
	var made []string
	for _, m := range g.Made {
		made = append(made, fmt.Sprintf("%d %s", m.Count, m.Why))
	}
	if len(made) == 0 {
		made = []string{"no machine"}
	}
	fmt.Fprintf(scr.W, "  made     %s\n", strings.Join(made, ", "))
}

func tookOrDash(of review.Spread, d store.Duration) string {
	if of.Times == 0 {
		return "-"
	}
	return review.Took(d.D())
}
