package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// Input says which past to play, and with which policies.
type Input struct {
	Past review.Input
	// Groups are the policies to try, Control those in force, of the same groups.
	Groups, Control []store.Group
	Settings        store.ShardSettings
	Seed            uint64
	// Progress is called at intervals with how much has been played.
	Progress func(time.Duration)
}

// Result is the outcome of a replay.
type Result struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Seed   uint64    `json:"seed"`
	Groups []Group   `json:"groups"`
	// Unknown lists, in sentences, what the journal cannot show.
	Unknown []string `json:"unknown"`
}

// Group compares one group's past with its replays. The control plays the policy in force: where it
// differs from the past, a replay is inaccurate.
type Group struct {
	Name    string     `json:"group"`
	Was     Figures    `json:"was"`
	Control Figures    `json:"control"`
	Would   Figures    `json:"would"`
	Change  Difference `json:"change"` // from Control to Would
	Error   Difference `json:"error"`  // from Was to Control: what the replay itself gets wrong
}

// Difference is by how much one course of events went otherwise than another.
type Difference struct {
	Lost        store.Duration `json:"lost"`
	Wanted      store.Duration `json:"wanted"`
	Machines    int            `json:"machines_made"`
	Replaced    int            `json:"replacements"`
	SizeChanges int            `json:"size_changes"`
}

func difference(from, to Figures) Difference {
	return Difference{
		Lost: to.Lost - from.Lost, Wanted: to.Wanted - from.Wanted, Machines: to.Machines - from.Machines,
		Replaced: to.Replaced - from.Replaced, SizeChanges: to.SizeChanges - from.SizeChanges,
	}
}

// Sentence says what the policy in question changes, in the time that instances were missing and in
// the time of all instances together. The error of the replay is named where it is as large as the
// first.
func (g Group) Sentence() string {
	d := g.Change
	if d == (Difference{}) {
		return fmt.Sprintf("%s: the same as with the policy in force.", g.Name)
	}
	var parts []string
	span := func(d store.Duration, what string) {
		if more := "more"; d != 0 {
			if d < 0 {
				d, more = -d, "less"
			}
			parts = append(parts, fmt.Sprintf("%s %s %s", review.Took(d.D()), more, what))
		}
	}
	count := func(n int, one, many string) {
		if more := "more"; n != 0 {
			if n < 0 {
				n, more = -n, "fewer"
			}
			what := many
			if n == 1 {
				what = one
			}
			parts = append(parts, fmt.Sprintf("%d %s %s", n, more, what))
		}
	}
	span(d.Lost, "lost")
	span(d.Wanted, "of instances")
	count(d.Machines, "machine made", "machines made")
	count(d.SizeChanges, "change of size", "changes of size")
	text := fmt.Sprintf("%s: with the file, %s than with the policy in force", g.Name, strings.Join(parts, ", "))
	if off := max(g.Error.Lost, -g.Error.Lost); d.Lost != 0 && off >= max(d.Lost, -d.Lost) {
		text += fmt.Sprintf("; the replay itself is off by %s lost, so the difference in lost time means little",
			review.Took(off.D()))
	}
	return text + "."
}

// Figures summarize one course of events.
type Figures struct {
	Available   float64        `json:"available_percent"`
	Wanted      store.Duration `json:"wanted"` // total time of all slots
	Lost        store.Duration `json:"lost"`   // the part of it below the size
	Causes      []review.Cause `json:"causes"`
	Machines    int            `json:"machines_made"`
	Replaced    int            `json:"replacements"` // those that replaced an existing instance
	Made        []review.Made  `json:"made"`
	SizeChanges int            `json:"size_changes"`
}

// Play plays the past twice: with the policies to try, and with those in force.
func Play(ctx context.Context, in Input) (*Result, error) {
	names, own := map[string]bool{}, map[string]bool{}
	for _, g := range in.Groups {
		names[g.Name] = true
		i := slices.IndexFunc(in.Control, func(c store.Group) bool { return c.Name == g.Name })
		own[g.Name] = i >= 0 && (in.Control[i].Scale != nil || in.Control[i].Size != g.Size)
	}
	was := review.Of(in.Past)
	in.Past.From = was.From
	t := record(in.Past, names)
	var would, control *play
	var wrong, wrongToo error
	var both sync.WaitGroup
	both.Go(func() { control, wrongToo = run(ctx, t, in.Control, nil, in.Settings, in.Seed, func(time.Duration) {}) })
	would, wrong = run(ctx, t, in.Groups, own, in.Settings, in.Seed, in.Progress)
	both.Wait()
	if err := cmp.Or(wrong, wrongToo); err != nil {
		return nil, err
	}
	out := &Result{From: t.from, To: t.to, Seed: in.Seed, Unknown: unknown(t, was, would, control)}
	reports := []review.Report{was, would.report(), control.report()}
	changes := []map[string]int{t.changes(), would.changes(), control.changes()}
	for _, g := range in.Groups {
		one := Group{Name: g.Name}
		for i, to := range []*Figures{&one.Was, &one.Would, &one.Control} {
			*to = figures(reports[i], g.Name)
			to.SizeChanges = changes[i][g.Name]
		}
		one.Change, one.Error = difference(one.Control, one.Would), difference(one.Was, one.Control)
		out.Groups = append(out.Groups, one)
	}
	return out, nil
}

// report computes the report on a replay.
func (p *play) report() review.Report {
	in := review.Input{From: p.tape.from, To: p.tape.to, Entries: p.entries}
	for _, id := range p.w.Instances() {
		in.Instances = append(in.Instances, p.w.Instance(id).Record)
	}
	return review.Of(in)
}

func figures(r review.Report, name string) Figures {
	i := slices.IndexFunc(r.Groups, func(g review.Group) bool { return g.Name == name })
	if i < 0 {
		return Figures{Available: 100, Causes: []review.Cause{}, Made: []review.Made{}}
	}
	g := r.Groups[i]
	f := Figures{
		Available: g.Available, Wanted: g.Wanted, Lost: g.Lost, Causes: g.Causes, Made: g.Made, Machines: g.Total(),
	}
	for _, m := range g.Made {
		if m.Why != review.Growth && m.Why != review.Order {
			f.Replaced += m.Count
		}
	}
	return f
}

// changes counts the recorded changes of size.
func (t *tape) changes() map[string]int {
	n, last := map[string]int{}, map[string]int{}
	for _, e := range t.events {
		if e.size == 0 {
			continue
		}
		if before := cmp.Or(last[e.group], t.first[e.group]); before != 0 && before != e.size {
			n[e.group]++
		}
		last[e.group] = e.size
	}
	return n
}

// changes counts the changes of size in the replay.
func (p *play) changes() map[string]int {
	n, last := map[string]int{}, map[string]int{}
	for i := range p.entries {
		e := &p.entries[i]
		size, ok := review.SizeOf(e)
		if !ok {
			continue
		}
		if before := last[e.Group]; before != 0 && before != size && !e.At.Before(p.tape.from) {
			n[e.Group]++
		}
		last[e.Group] = size
	}
	return n
}

// unknown says what the result cannot show.
func unknown(t *tape, was review.Report, would, control *play) []string {
	all := slices.Clone(was.Unknown)
	say := func(n int, one, many, format string) {
		if n > 0 {
			all = append(all, fmt.Sprintf(format, reason.Counted(n, one, many)))
		}
	}
	say(t.missing, "day", "days", "Of %s nothing is known: nothing happens then.")
	say(t.omitted, "failure is known as a number alone: it is", "failures are known as a number alone: they are",
		"%s not played.")
	say(t.coarse, "hour", "hours", "Of %s the load is known from a summary: its middle, with its peak for ten minutes.")
	say(t.mean, "hour", "hours", "Of %s only the mean of the load is known: the group was of fixed size then.")
	if would.unheard > 0 {
		all = append(all, fmt.Sprintf("For %s in all no load of a group with scale is recorded: its agents report "+
			"none then, so that it does not shrink.", reason.Span(would.unheard)))
	}
	for _, missed := range []struct {
		n    int
		with string
	}{{would.missed, "the groups of the file"}, {control.missed, "the control"}} {
		say(missed.n, "failure", "failures", "%s hit a slot in which nothing served with "+missed.with+": "+
			reason.Verb(missed.n, "it is", "they are")+" not played.")
	}
	return append(all,
		"What happened to a slot happens to the instance that serves in it: more instances would have had more "+
			"failures, fewer of them fewer.",
		"Changes of the template are played as good ones that need new machines. Which start failed is not known, "+
			"only how many of a day.",
		"Checks that failed until the instance was replaced pass after a restart here; whether they would have "+
			"is not known.",
		"Not played: operators' orders, load balancers, analyses, failures of etcd, of coordinators and of providers, "+
			"the other groups of the shard, and how old instances were at the beginning.",
		"Load is what all instances bore together: whether more of them would have attracted more is not known.")
}
