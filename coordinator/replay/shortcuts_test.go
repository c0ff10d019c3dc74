package replay

import (
	"flag"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/tier"
)

var pastsFlag = flag.Int("pasts", tier.Pick(4, 60), "how many random pasts TestShortcutsChangeNothing plays")

// The shortcuts of a world leave every decision as it is: the same entries at the same times, and
// the same records at the same revisions. Each plan is the one that is made from nothing.
//
// proves AUTO-4
func TestShortcutsChangeNothing(t *testing.T) {
	kept, all := 0, 0
	for seed := range uint64(*pastsFlag) {
		short := playRandom(t, seed, false, func(at time.Time, s *plan.Snapshot, made *plan.Plan) {
			want := plan.Compute(*s, at)
			if diff := differ(made, &want); diff != "" {
				t.Errorf("past %d, %s: %s", seed, at, diff)
			}
			for i := range s.Groups {
				if all++; made.Judgments.Stand(i) {
					kept++
				}
			}
		})
		long := playRandom(t, seed, true, nil)
		if len(short.entries) != len(long.entries) {
			t.Errorf("past %d: %d entries, and %d without shortcuts", seed, len(short.entries), len(long.entries))
		}
		for i := range min(len(short.entries), len(long.entries)) {
			if !reflect.DeepEqual(short.entries[i], long.entries[i]) {
				t.Fatalf("past %d: entry %d is\n%+v, without shortcuts\n%+v", seed, i, short.entries[i], long.entries[i])
			}
		}
		if !slices.Equal(records(short), records(long)) {
			t.Errorf("past %d: other records than without shortcuts:\n%q\n%q", seed, records(short), records(long))
		}
	}
	if 5*kept < all {
		t.Errorf("only %d of %d plans took the shortcut", kept, all)
	}
}

func playRandom(t *testing.T, seed uint64, plain bool,
	planned func(at time.Time, s *plan.Snapshot, p *plan.Plan),
) *play {
	past, groups, settings := randomPast(seed)
	past.plain, past.planned = plain, planned
	p, err := run(t.Context(), past, groups, nil, settings, seed, func(time.Duration) {})
	if err != nil {
		t.Fatalf("past %d: %s", seed, err)
	}
	return p
}

// differ says in what two plans differ.
func differ(a, b *plan.Plan) string {
	switch {
	case !a.Wake.Equal(b.Wake) || !reflect.DeepEqual(a.Due, b.Due):
		return "it wakes at another time"
	case !reflect.DeepEqual(a.Tallies, b.Tallies) || !reflect.DeepEqual(a.Held, b.Held) ||
		!reflect.DeepEqual(a.Calls, b.Calls) || !reflect.DeepEqual(a.Watched, b.Watched):
		return "it counts, holds up or calls otherwise"
	case len(a.Actions) != len(b.Actions):
		return "it has another number of actions"
	}
	for i := range a.Actions {
		x, y := a.Actions[i], b.Actions[i]
		if x.Status != nil {
			x.Writes = slices.Clone(x.Writes)
			x.Writes[0].Value, x.Status = store.Encode(*x.Status), nil
		}
		if !reflect.DeepEqual(x, y) {
			return "an action differs: " + x.What() + ", " + y.What()
		}
	}
	for id, judgment := range b.Judgments.All() {
		if now := a.Judgments.Of(id); now.Verdict != judgment.Verdict || now.Rule != judgment.Rule {
			return id + " is judged otherwise"
		}
	}
	return ""
}

// records are the statuses of a world's groups, its instances and their reports.
func records(p *play) (all []string) {
	keys := p.w.Keys()
	for _, kind := range []string{store.KindStatus, store.KindSlots, store.KindInstances, store.KindReports} {
		for _, name := range p.w.Names(kind) {
			key := keys.Of(kind) + name
			all = append(all, key, fmt.Sprint(p.w.Revision(key)), string(p.w.Value(key)))
		}
	}
	return all
}
