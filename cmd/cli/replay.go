package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/replay"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// Replay is the command replay (AUTO-4).
type Replay struct {
	File  []string `short:"f" sep:"none" help:"File with the groups to try, one in each YAML document; - is standard input. May be given several times." placeholder:"FILE"`
	Since Ago      `help:"How far back to go, such as 7d or 30d." default:"30d" placeholder:"DURATION"`
	From  string   `help:"Play a file of leasehold events export: all of it, whatever --since says; - is standard input." placeholder:"FILE"`
	Seed  uint64   `help:"Seed of the random numbers." default:"1" placeholder:"N"`
}

// Run plays the past against the groups of the files, and shows what would have been beside what
// was.
func (c *Replay) Run(ctx context.Context, inv *Invocation) error {
	const help = "leasehold replay --since 30d -f web.yaml"
	switch {
	case len(c.File) == 0:
		return failure(Usage, help, "-f: give the file with the groups to try")
	case c.Since <= 0:
		return failure(Usage, help, "--since: must be more than 0")
	}
	in := replay.Input{Seed: c.Seed}
	named := Files{Files: c.File}
	files, err := inv.parseFiles(named)
	if err != nil {
		return err
	}
	entries, err := judgeFiles(named, files, nil)
	if err != nil {
		return err
	}
	for _, e := range entries {
		in.Groups = append(in.Groups, e.Group)
	}
	known, err := c.past(ctx, inv, &in)
	if err != nil {
		return err
	}
	for _, g := range in.Groups {
		i := slices.IndexFunc(known, func(k store.Group) bool { return k.Name == g.Name })
		if i < 0 {
			return failure(NotFound, "leasehold simulate -f FILE, which needs no past", "group %s has no past here", g.Name)
		}
		in.Control = append(in.Control, known[i])
	}
	defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
	shown := inv.newProgress(in.Past.To.Sub(in.Past.From))
	in.Progress = func(reached time.Duration) {
		shown.show(func() string {
			return fmt.Sprintf("%s of %s played", output.Span(reached), output.Span(in.Past.To.Sub(in.Past.From)))
		})
	}
	res, err := replay.Play(ctx, in)
	shown.end()
	if err != nil {
		if ctx.Err() != nil {
			return failure(Interrupted, "", "interrupted")
		}
		return err
	}
	if done, err := inv.records(res); done {
		return err
	}
	return c.write(inv, res)
}

// past reads what happened, and returns the groups that are in force.
func (c *Replay) past(ctx context.Context, inv *Invocation, in *replay.Input) (known []store.Group, err error) {
	if c.From != "" {
		content, err := inv.eventFile(c.From)
		if err != nil {
			return nil, err
		}
		in.Past, in.Settings = content.Past, content.Head.Settings.WithDefaults()
		return content.Groups, nil
	}
	now := inv.env.Now()
	from := now.Add(-time.Duration(c.Since))
	if in.Past, _, err = inv.past(ctx, from, now); err != nil {
		return nil, err
	}
	err = inv.appendOnly(ctx, store.KindLoads, inv.keys().LoadsFrom(from), func(kv store.KV) error {
		if l, err := store.Decode[store.Load](kv); err == nil { // an unreadable one counts as missing
			in.Past.Loads = append(in.Past.Loads, l.Record)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	shard, err := inv.readShard(ctx)
	if err != nil {
		return nil, err
	}
	in.Settings = shard.Record.Settings.WithDefaults()
	groups, _, err := inv.groups(ctx, inv.keys(), 0)
	for _, g := range groups {
		if g.Status.Record.Accepted != nil {
			known = append(known, *g.Status.Record.Accepted)
		}
	}
	return known, err
}

func (c *Replay) write(inv *Invocation, res *replay.Result) error {
	scr, zone := inv.screen(), inv.env.Now().Location()
	if scr.Terminal {
		fmt.Fprintf(scr.W, "%s to %s\n", res.From.In(zone).Format("2006-01-02 15:04"),
			res.To.In(zone).Format("2006-01-02 15:04"))
	}
	t := output.Table{Columns: []output.Column{
		{Title: "GROUP"},
		{Title: "POLICY"},
		{Title: "AVAILABLE", Right: true},
		{Title: "LOST", Right: true},
		{Title: "WANTED", Right: true, Spare: 3},
		{Title: "MADE", Right: true},
		{Title: "REPLACED", Right: true, Spare: 2},
		{Title: "SIZE-CHANGES", Right: true, Spare: 1},
	}}
	var causes strings.Builder
	for _, g := range res.Groups {
		for _, row := range []struct {
			name string
			f    replay.Figures
		}{{"as it was", g.Was}, {"control", g.Control}, {"in the file", g.Would}} {
			t.Add(g.Name, row.name, review.Percent(row.f.Available), review.Took(row.f.Lost.D()), review.Took(row.f.Wanted.D()),
				fmt.Sprint(row.f.Machines), fmt.Sprint(row.f.Replaced), fmt.Sprint(row.f.SizeChanges))
			if len(row.f.Causes) > 0 {
				fmt.Fprintf(&causes, "%s, %s: lost by %s\n", g.Name, row.name, causesText(row.f.Causes))
			}
		}
	}
	if err := t.Write(scr, inv.wide()); err != nil || !scr.Terminal {
		return err
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, g := range res.Groups {
		output.WriteWrapped(&b, scr, "", g.Sentence())
	}
	b.WriteString("\n" + causes.String() + "\n")
	output.WriteWrapped(&b, scr, "note: ", "Compare the file with the control: the policy in force, played in the "+
		"same way. The difference between the control and what was is the error of the replay itself.")
	for _, line := range res.Unknown {
		output.WriteWrapped(&b, scr, "note: ", line)
	}
	_, err := io.WriteString(scr.W, b.String())
	return err
}

func causesText(causes []review.Cause) string {
	var all []string
	for _, c := range causes {
		all = append(all, fmt.Sprintf("%s %s (%s)", c.Why, review.Took(c.Lost.D()), counted(c.Times, "time", "times")))
	}
	return strings.Join(all, ", ")
}
