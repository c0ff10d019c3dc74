package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/store"
)

// Release is the command release.
type Release struct {
	DryRun bool `help:"Show what would follow without ending the hold."`
}

// Run says what will follow, and ends the hold.
func (c *Release) Run(ctx context.Context, s *Session) error {
	shard, _, err := findRecord[store.Shard](ctx, s, s.keys().Shard())
	if err != nil {
		return err
	}
	if shard.Record.Hold != nil {
		if err := s.foreseeRelease(ctx, shard.Record); err != nil {
			return err
		}
	}
	if c.DryRun {
		s.note("nothing changed")
		return nil
	}
	return s.setHold(ctx, nil, "released", "")
}

// groupsForeseen bounds for how many groups a release is foreseen.
const groupsForeseen = 200

// foreseeRelease says what the planner would do first without the hold, deletions by name
// (SAFE-17). It cannot know what providers say.
func (s *Session) foreseeRelease(ctx context.Context, shard store.Shard) error {
	groups, _, err := s.groups(ctx, s.keys(), 0)
	if err != nil {
		return err
	}
	if len(groups) > groupsForeseen {
		s.note("the forecast covers the first %d of %d groups", groupsForeseen, len(groups))
		groups = groups[:groupsForeseen]
	}
	shard.Release(s.env.Now().UTC())
	quiet := true
	for _, g := range groups {
		listing, err := s.recordsOf(ctx, g.Name)
		if err != nil {
			return err
		}
		edit := store.Put(s.keys().Shard(), store.Encode(shard))
		made, gone := 0, []string{}
		for _, a := range foresee.New(s.keys(), g.Name, listing, []store.Write{edit}, s.env.Now()).Plan().Actions {
			switch {
			case a.To == store.Pending:
				made++
			case a.Instance != "" && (a.To == store.Deleting || a.To == store.Draining) && a.From != a.To:
				gone = append(gone, a.Instance)
			}
		}
		if made == 0 && len(gone) == 0 {
			continue
		}
		quiet = false
		slices.Sort(gone)
		text := g.Name + " after the release:"
		if made > 0 {
			text += fmt.Sprintf(" %d to be made", made)
		}
		if len(gone) > 0 {
			text += fmt.Sprintf(" %d to be removed: %s", len(gone), strings.Join(gone, ", "))
		}
		s.note("%s", text)
	}
	if quiet {
		s.note("after the release nothing is created or removed at once, according to etcd; providers' answers may add to that")
	} else {
		s.note("lost agents have time to return before they are replaced; providers' answers may add to that; to look without releasing: leasehold release --dry-run")
	}
	return nil
}
