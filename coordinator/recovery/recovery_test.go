package recovery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/recovery"
	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
	"pgregory.net/rapid"
)

func shard(size int, ids ...string) recovery.Shard {
	s := recovery.Shard{
		Groups: map[string]store.Group{"web": {Name: "web", Size: size}}, Instances: map[string]store.Instance{},
		Strays: map[string]store.Stray{}, Extras: map[string]store.Extra{}, Deleted: map[string]store.Gone{},
		Silent: true,
	}
	for _, id := range ids {
		s.Extras[id] = store.Extra{Instance: id, Group: "web", Provider: "process", Zone: "a"}
	}
	return s
}

func claim(group string, slot int) store.Stray {
	return store.Stray{Claim: &store.Claim{Group: group, Slot: slot, Managed: true}}
}

// Each machine gets its own slot back, by its agent's seal or else by the provider's tags; a
// machine that cannot be placed with certainty stays as it is.
//
// proves SAFE-17
func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		shard recovery.Shard
		edit  func(*recovery.Shard)
		want  string // instance slot source, or the problem
	}{
		"tags": {shard: shard(2, "web-0-a", "web-1-b"), want: "web-0-a 0 tags; web-1-b 1 tags"},
		"a seal beats the name": {
			shard: shard(3, "web-0-a"),
			edit:  func(s *recovery.Shard) { s.Strays["web-0-a"] = claim("web", 2) }, want: "web-0-a 2 seal",
		},
		"an agent without a seal": {
			shard: shard(1, "web-0-a"), edit: func(s *recovery.Shard) { s.Strays["web-0-a"] = store.Stray{} },
			want: "web-0-a 0 tags",
		},
		"seal and tag differ": {
			shard: shard(1, "web-0-a"), edit: func(s *recovery.Shard) { s.Strays["web-0-a"] = claim("db", 0) },
			want: "its agent was of group db, and its tag says web",
		},
		"a silent agent": {
			shard: shard(1, "web-0-a"), edit: func(s *recovery.Shard) { s.Silent = false },
			want: "its agent is silent: once it reports it can prove what it is; --silent goes by its tags",
		},
		"an agent that reports": {
			shard: shard(1, "web-0-a"), edit: func(s *recovery.Shard) {
				s.Silent, s.Strays["web-0-a"] = false,
					store.Stray{}
			}, want: "web-0-a 0 tags",
		},
		"not listed": {
			shard: shard(1), edit: func(s *recovery.Shard) { s.Strays["web-0-a"] = claim("web", 0) },
			want: "no provider lists its machine",
		},
		"claimed twice": {
			shard: shard(2, "web-0-a", "web-0-b"),
			want:  "its slot is claimed by web-0-b too; its slot is claimed by web-0-a too",
		},
		"taken": {
			shard: shard(2, "web-0-a"),
			edit: func(s *recovery.Shard) {
				s.Instances["web-0-c"] = store.Instance{Group: "web", Slot: 0, Managed: true, Phase: store.Running}
			},
			want: "web-0-c has its slot",
		},
		"taken by one without a session": {
			shard: shard(1, "web-0-a"),
			edit: func(s *recovery.Shard) {
				s.Instances["web-0-c"] = store.Instance{Group: "web", Slot: 0, Managed: true, Phase: store.Running}
				s.Strays["web-0-a"] = claim("web", 0)
			},
			want: "web-0-a 0 seal in place of web-0-c",
		},
		"taken by one with a session": {
			shard: shard(1, "web-0-a"),
			edit: func(s *recovery.Shard) {
				s.Instances["web-0-c"] = store.Instance{Group: "web", Slot: 0, Managed: true, Phase: store.Running}
				s.Strays["web-0-a"] = claim("web", 0)
				s.Sessions = map[string]store.Alive{"web-0-c": {}}
			},
			want: "web-0-c has its slot",
		},
		"taken by one that goes": {
			shard: shard(2, "web-0-a"),
			edit: func(s *recovery.Shard) {
				s.Instances["web-0-c"] = store.Instance{Group: "web", Slot: 0, Managed: true, Phase: store.Deleting}
			},
			want: "web-0-a 0 tags",
		},
		"beyond the size": {
			shard: shard(1, "web-0-a", "web-1-b"),
			want:  "web-0-a 0 tags; it had slot 1, and the group has its size of 1 without it",
		},
		"beyond the size with those that have a record": {
			shard: shard(2, "web-0-a", "web-1-b"),
			edit: func(s *recovery.Shard) {
				s.Instances["web-4-c"] = store.Instance{Group: "web", Slot: 4, Managed: true, Phase: store.Running}
			},
			want: "web-0-a 0 tags; it had slot 1, and the group has its size of 2 without it",
		},
		"a group that has shrunk": {shard: shard(2, "web-3-a", "web-5-b"), want: "web-3-a 3 tags; web-5-b 5 tags"},
		"no such group": {
			shard: shard(1, "db-0-a"),
			edit:  func(s *recovery.Shard) { s.Extras["db-0-a"] = store.Extra{Group: "db"} },
			want:  "there is no group db: apply its file first",
		},
		"no tag": {
			shard: shard(1, "x"), edit: func(s *recovery.Shard) { s.Extras["x"] = store.Extra{} },
			want: "nothing says which group it belongs to",
		},
		"a foreign name": {
			shard: shard(1, "pet"),
			want:  "nothing says which slot it had: leasehold instance adopt pet --slot N",
		},
		"on demand": {
			shard: shard(1, "web-x-a"),
			edit: func(s *recovery.Shard) {
				s.Strays["web-x-a"] = store.Stray{Claim: &store.Claim{Group: "web", Slot: -1}}
			},
			want: "it was made on demand, and has no slot: leasehold instance adopt web-x-a",
		},
		"deleted on purpose": {
			shard: shard(1, "web-0-a"),
			edit:  func(s *recovery.Shard) { s.Deleted["web-0-a"] = store.Gone{} },
			want:  "its record was deleted on purpose: it is being removed",
		},
		"recorded": {
			shard: shard(1, "web-0-a"),
			edit:  func(s *recovery.Shard) { s.Instances["web-0-a"] = store.Instance{} }, want: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.edit != nil {
				c.edit(&c.shard)
			}
			var got []string
			for _, m := range recovery.Plan(c.shard) {
				if m.Adoptable() {
					one := fmt.Sprintf("%s %d %s", m.Instance, m.Slot, m.Source)
					if m.InPlaceOf != "" {
						one += " in place of " + m.InPlaceOf
					}
					got = append(got, one)
				} else {
					got = append(got, m.Problem)
				}
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("%q, wanted %q", got, c.want)
			}
		})
	}
}

// For any mix of machines and claims, a slot gets at most one machine, none that has a record, and
// none beyond the size.
//
// proves SAFE-17
func TestPlanFillsNoSlotTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shard(rapid.IntRange(0, 4).Draw(t, "size"))
		for n := range rapid.IntRange(0, 8).Draw(t, "machines") {
			slot := rapid.IntRange(-1, 5).Draw(t, "slot")
			id := fmt.Sprintf("web-%d-%d", max(slot, 0), n)
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				s.Instances[id] = store.Instance{Group: "web", Slot: slot, Managed: slot >= 0, Phase: store.Running}
			case 1:
				s.Strays[id] = claim("web", slot)
				fallthrough
			default:
				s.Extras[id] = store.Extra{Instance: id, Group: "web", Provider: "process"}
			}
		}
		filled := map[int]string{}
		for id, i := range s.Instances {
			if i.Managed {
				filled[i.Slot] = id
			}
		}
		atMost := max(len(filled), s.Groups["web"].Size)
		for _, m := range recovery.Plan(s) {
			if _, recorded := s.Instances[m.Instance]; recorded {
				t.Fatalf("%s has a record", m.Instance)
			}
			if !m.Adoptable() {
				continue
			}
			if other := filled[m.Slot]; other != m.InPlaceOf || m.Slot < 0 {
				t.Fatalf("%+v beside %q", m, other)
			}
			filled[m.Slot] = m.Instance
		}
		if len(filled) > atMost {
			t.Fatalf("%d slots are filled at size %d", len(filled), s.Groups["web"].Size)
		}
	})
}
