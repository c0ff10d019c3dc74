package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
)

// Interval is the time between two readings.
type Interval time.Duration

// minInterval bounds the interval: a shorter one would only load etcd.
const minInterval = 100 * time.Millisecond

// UnmarshalText is called by kong.
func (i *Interval) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < minInterval || d > time.Hour {
		return fmt.Errorf("%s: must be a duration from %s to 1h, such as 2s", text, minInterval)
	}
	*i = Interval(d)
	return nil
}

// D returns the interval as a duration.
func (i Interval) D() time.Duration { return time.Duration(i) }

// changeKind says what a line of a watched status is about.
type changeKind string

const (
	leaderChanged changeKind = "leader"
	groupChanged  changeKind = "group"
	groupGone     changeKind = "gone"
	problemBegan  changeKind = "problem"
	problemEnded  changeKind = "solved"
	statusStale   changeKind = "stale"
	statusFresh   changeKind = "fresh"
)

// statusChange is one change of a shard's status.
type statusChange struct {
	At       time.Time      `json:"at"`
	Kind     changeKind     `json:"kind"`
	About    string         `json:"about"` // the group, the replica, or the shard
	State    string         `json:"state,omitempty"`
	Health   string         `json:"health,omitempty"`
	Run      string         `json:"run,omitempty"`
	Now      string         `json:"now,omitempty"`
	Rule     string         `json:"rule,omitempty"`
	What     string         `json:"what,omitempty"`
	Remedies story.Remedies `json:"remedies,omitempty"`
	Severe   bool           `json:"severe,omitempty"`
	mark     string         // of a group
}

// watched is the state of a watched status.
type watched struct {
	read     bool
	stale    bool
	leader   string
	rows     map[string]story.Row
	problems map[lasting]story.Problem
}

// lasting is the part of a problem that stays the same while its numbers and ages change.
type lasting struct {
	about, rule, remedies string
	topic                 reason.Topic
}

func lastingOf(p story.Problem) lasting {
	return lasting{p.About, p.Rule, p.Remedies.String(), p.Topic}
}

// watchStatus prints a line for each change of what the status shows, until ctx ends. While etcd
// does not answer, it says so once and keeps asking.
func (inv *Invocation) watchStatus(ctx context.Context, every time.Duration) error {
	if inv.flags.Output == "yaml" {
		return failure(Usage, "--output json, which writes one record in each line",
			"a watched status has no end, so it cannot be one YAML document")
	}
	var w watched
	members := inv.askMembers(ctx)
	wait := time.NewTicker(every)
	defer wait.Stop()
	for {
		state, err := inv.readState(ctx, inv.flags.Shard)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !w.read:
			return err // it was never right: a refusal, a wrong address
		case err != nil:
			if err := inv.writeChanges(w.lost(inv.env.Now(), inv.flags.Shard, err)); err != nil {
				return err
			}
		default:
			select {
			case state.Etcd = <-members:
				members = nil
			default: // not yet
			}
			now := inv.env.Now()
			if err := inv.writeChanges(w.see(&state.Shard, story.Problems(&state.Shard, now), now)); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-wait.C:
		}
	}
}

// lost records that the shard could not be read.
func (w *watched) lost(now time.Time, shard string, err error) []statusChange {
	if w.stale {
		return nil
	}
	w.stale = true
	return []statusChange{{At: now, Kind: statusStale, About: shard, What: joined(err), Severe: true}}
}

// see returns the differences from the last time.
func (w *watched) see(st *story.Shard, problems []story.Problem, now time.Time) (changes []statusChange) {
	if w.stale {
		changes = append(changes, statusChange{At: now, Kind: statusFresh, About: st.Name, What: "etcd answers again"})
	}
	leader := ""
	if st.Leads {
		leader = st.Leader.Record.Replica
	}
	if !w.read || leader != w.leader {
		c := statusChange{At: now, Kind: leaderChanged, About: leader, What: "leads"}
		if leader == "" {
			c.About, c.What, c.Severe = st.Name, "no leader", true
		}
		changes = append(changes, c)
	}
	rows := map[string]story.Row{}
	for _, g := range st.Groups {
		row := story.RowOf(g)
		row.Since = time.Time{} // passing time is no change
		rows[g.Name] = row
		if old, known := w.rows[g.Name]; known && old == row {
			continue
		}
		changes = append(changes, statusChange{
			At: now, Kind: groupChanged, About: g.Name, State: row.State, Health: row.Health, Run: row.Run, Now: row.Now,
			Severe: row.Mark == "!", mark: row.Mark,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(w.rows)) {
		if _, there := rows[name]; !there {
			changes = append(changes, statusChange{At: now, Kind: groupGone, About: name, What: "the group is gone"})
		}
	}
	found := map[lasting]story.Problem{}
	for _, p := range problems {
		key := lastingOf(p)
		found[key] = p
		if _, known := w.problems[key]; !known {
			changes = append(changes, statusChange{
				At: now, Kind: problemBegan, About: p.About, Rule: p.Rule, What: p.What, Remedies: p.Remedies, Severe: true,
			})
		}
	}
	for key, p := range w.problems {
		if _, lasts := found[key]; !lasts {
			changes = append(changes, statusChange{At: now, Kind: problemEnded, About: p.About, Rule: p.Rule, What: p.What})
		}
	}
	w.read, w.stale, w.leader, w.rows, w.problems = true, false, leader, rows, found
	return changes
}

func (inv *Invocation) writeChanges(changes []statusChange) error {
	scr := inv.screen()
	var b strings.Builder
	for _, c := range changes {
		if inv.flags.Output == "json" {
			if err := output.JSONLine(inv.env.Stdout, c); err != nil {
				return err
			}
			continue
		}
		b.WriteString(c.line(scr, inv.env.Now()) + "\n")
	}
	return inv.print(&b)
}

// line returns a change for people, or with tabs for programs.
func (c *statusChange) line(scr output.Screen, now time.Time) string {
	what := c.What
	if c.Kind == groupChanged {
		what = c.State + " " + c.Health + " " + c.Run
		if c.Now != "-" {
			what += "  " + c.Now
		}
	}
	if !scr.Terminal {
		cells := []string{
			c.At.UTC().Format(time.RFC3339), string(c.Kind), c.About, orDash(c.Rule), what, orDash(c.Remedies.String()),
		}
		for i := range cells {
			cells[i] = output.OneLine(cells[i])
		}
		return strings.Join(cells, "\t")
	}
	mark := map[changeKind]string{problemBegan: "!", statusStale: "!", problemEnded: "-", groupGone: "-"}[c.Kind]
	if c.Kind == groupChanged {
		mark = c.mark
	}
	text := fmt.Sprintf("%-1s %-12s ", mark, output.OneLine(c.About))
	if c.Kind == problemEnded {
		text += "solved: "
	}
	if c.Rule != "" {
		text += c.Rule + ": "
	}
	text += output.OneLine(what)
	switch {
	case c.Severe:
		text = scr.Alarm(text)
	case mark == "~":
		text = scr.Notice(text)
	case c.Kind == problemEnded, c.Kind == statusFresh:
		text = scr.Good(text)
	}
	if len(c.Remedies) > 0 {
		text += scr.Dim("  next: " + output.OneLine(c.Remedies.String()))
	}
	return story.Clock(c.At, now) + " " + text
}
