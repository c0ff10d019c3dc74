package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// GroupShow is the command group show.
type GroupShow struct {
	Group string `arg:"" help:"Name of the group."`
}

// groupDocument is one group in JSON: its records as stored.
type groupDocument struct {
	Group    json.RawMessage `json:"group"`
	Revision store.Revision  `json:"revision"` // for group apply --if-revision
	Status   json.RawMessage `json:"status"`
}

// Run shows the group.
func (c *GroupShow) Run(ctx context.Context, s *Session) error {
	g, err := s.group(ctx, c.Group)
	if err != nil {
		return err
	}
	if done, err := s.records(groupDocument{Group: asJSON(g.Stored.Value), Revision: g.Stored.Modified, Status: g.Raw}); done {
		return err
	}
	leaders, err := s.list(ctx, s.keys().Of(store.KindLeader), 0)
	if err != nil {
		return err
	}
	scr, v := s.screen(), viewOf(g)
	fmt.Fprintf(scr.W, "%s  %s  %s healthy  %s running  for %s\n", g.Name, v.state, v.health, v.run, output.Age(s.env.Now(), v.since))
	fmt.Fprintf(scr.W, "now: %s\n", v.now)
	switch {
	case g.Stored.Modified == 0:
		fmt.Fprintln(scr.W, "spec: none in groups/")
	case g.Bad == nil:
		fmt.Fprintf(scr.W, "spec: revision %d, template %s%s\n", g.Stored.Modified, g.Spec.InstanceSpec().TemplateHash(), inForceNow(g))
		text, err := groupfile.Write(g.Spec)
		if err != nil {
			return err
		}
		fmt.Fprintf(scr.W, "%s\n", indented(text))
	default:
		fmt.Fprintf(scr.W, "spec: revision %d, which cannot be used%s\n", g.Stored.Modified, inForceNow(g))
	}
	leads := len(leaders.KVs) > 0
	found := groupProblems(g, leads)
	if !leads {
		found = append(found, problem{What: "no coordinator is at work: nothing is done for this group", About: s.flags.Shard, Next: "leasehold status"})
	}
	return writeProblems(scr, found)
}

// inForceNow says whether the spec in groups/ is the one that the leader goes by.
func inForceNow(g group) string {
	switch at := g.Status.Record.AcceptedRevision; {
	case at == 0:
		return "; none is in force yet"
	case at == g.Stored.Modified:
		return ", in force"
	default:
		return fmt.Sprintf("; that of revision %d is in force", at)
	}
}

// indented shifts a text to the right, without its last line break.
func indented(text []byte) string {
	var out []byte
	for i, b := range text {
		if i == 0 || text[i-1] == '\n' {
			out = append(out, "  "...)
		}
		if b != '\n' || i != len(text)-1 {
			out = append(out, b)
		}
	}
	return string(out)
}
