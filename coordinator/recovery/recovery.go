package recovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Shard is what is known of a shard whose records were lost.
type Shard struct {
	Groups    map[string]store.Group    // the specs in force, by name
	Instances map[string]store.Instance // the remaining records, by ID
	Strays    map[string]store.Stray    // the agents without a record, by instance
	Extras    map[string]store.Extra    // the machines without a record, by instance
	Deleted   map[string]store.Gone     // the instances that were deleted on purpose, by ID
	Sessions  map[string]store.Alive    // the agents' sessions, by instance
	// Silent: machines whose agents are silent are placed too. It is unknown what they were created
	// from, so a roll replaces them.
	Silent bool
}

// Source is the evidence that places a machine.
type Source string

// The sources, from the weakest to the strongest.
const (
	FromTags Source = "tags" // the provider's tags: the group and, in the instance's ID, the slot
	FromSeal Source = "seal" // a claim that a coordinator sealed and the agent kept
)

// Candidate is a machine without a record, and what to do with it.
type Candidate struct {
	Instance string `json:"instance"`
	Group    string `json:"group,omitempty"`
	Slot     int    `json:"slot"` // -1: unknown
	Source   Source `json:"source,omitempty"`
	Provider string `json:"provider,omitempty"` // the provider that lists the machine; "": none does
	Zone     string `json:"zone,omitempty"`
	Heard    bool   `json:"heard"` // its agent connects
	// InPlaceOf is an instance without a session that has the slot by its record, from an older
	// copy of etcd's data. The leader lets the machine take the slot if no provider lists that
	// instance's machine either.
	InPlaceOf string `json:"in_place_of,omitempty"`
	// Problem is why the machine cannot be put into its slot; "" if it can. A problem never stops
	// the machine.
	Problem string `json:"problem,omitempty"`
}

// NotListed is the problem of a machine whose agent reports while no provider lists it, or has not
// listed it yet.
const NotListed = "no provider lists its machine"

// Adoptable reports whether the machine can be put into its slot.
func (c Candidate) Adoptable() bool { return c.Problem == "" }

// Plan places the machines, ordered by group, slot and ID.
func Plan(s Shard) []Candidate {
	taken := map[string]map[int]string{} // by group and slot: the instance that has a record
	for id, i := range s.Instances {
		if i.Managed && i.Phase != store.Deleting {
			put(taken, i.Group, i.Slot, id)
		}
	}
	claims := map[string]map[int][]string{}
	byID := map[string]*Candidate{}
	for _, id := range s.ids() {
		c := s.candidate(id)
		byID[id] = &c
		if c.Problem == "" {
			if claims[c.Group] == nil {
				claims[c.Group] = map[int][]string{}
			}
			claims[c.Group][c.Slot] = append(claims[c.Group][c.Slot], id)
		}
	}
	all := make([]Candidate, 0, len(byID))
	for id, c := range byID {
		if c.Problem == "" {
			holder := taken[c.Group][c.Slot]
			if _, session := s.Sessions[holder]; holder != "" && !session && c.Heard && c.Source == FromSeal {
				c.InPlaceOf, holder = holder, ""
			}
			c.Problem = contested(id, holder, claims[c.Group][c.Slot])
		}
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		if d := strings.Compare(a.Group, b.Group); d != 0 {
			return d
		}
		if a.Slot != b.Slot {
			return a.Slot - b.Slot
		}
		return strings.Compare(a.Instance, b.Instance)
	})
	s.limit(all, taken)
	return all
}

// limit excludes machines beyond the size of their group. The number of slots counts, not their
// numbers: a group that has shrunk keeps its youngest instances, in the slots that they had.
func (s Shard) limit(all []Candidate, taken map[string]map[int]string) {
	filled := map[string]int{}
	for group, slots := range taken {
		filled[group] = len(slots)
	}
	for i := range all {
		c := &all[i]
		if c.Problem != "" || c.InPlaceOf != "" {
			continue
		}
		if size := s.Groups[c.Group].Size; filled[c.Group] >= size {
			c.Problem = fmt.Sprintf("it had slot %d, and the group has its size of %d without it", c.Slot, size)
			continue
		}
		filled[c.Group]++
	}
}

// ids returns all instances without a record that an agent or a provider names.
func (s Shard) ids() []string {
	var ids []string
	for id := range s.Strays {
		ids = append(ids, id)
	}
	for id := range s.Extras {
		if _, stray := s.Strays[id]; !stray {
			ids = append(ids, id)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		_, recorded := s.Instances[id]
		return recorded
	})
}

// candidate says where one machine belongs, regardless of others.
func (s Shard) candidate(id string) Candidate {
	stray, heard := s.Strays[id]
	extra, listed := s.Extras[id]
	c := Candidate{Instance: id, Slot: -1, Provider: extra.Provider, Zone: extra.Zone, Heard: heard}
	claim := stray.Claim
	switch {
	case claim != nil:
		c.Group, c.Slot, c.Source = claim.Group, claim.Slot, FromSeal
	case listed:
		c.Group, c.Source = extra.Group, FromTags
		if group, slot, _, ok := store.PlaceOf(id); ok && group == extra.Group {
			c.Slot = slot
		}
	}
	if _, deleted := s.Deleted[id]; deleted {
		c.Problem = "its record was deleted on purpose: it is being removed"
		return c
	}
	_, known := s.Groups[c.Group]
	switch {
	case !listed:
		c.Problem = NotListed
	case claim != nil && extra.Group != "" && claim.Group != extra.Group:
		c.Problem = fmt.Sprintf("its agent was of group %s, and its tag says %s", claim.Group, extra.Group)
	case c.Group == "":
		c.Problem = "nothing says which group it belongs to"
	case !known:
		c.Problem = "there is no group " + c.Group + ": apply its file first"
	case claim != nil && !claim.Managed:
		c.Problem = "it was made on demand, and has no slot: leasehold instance adopt " + id
	case c.Slot < 0:
		c.Problem = "nothing says which slot it had: leasehold instance adopt " + id + " --slot N"
	case !heard && !s.Silent:
		c.Problem = "its agent is silent: once it reports it can prove what it is; --silent goes by its tags"
	}
	return c
}

// contested returns the other instance that has or claims a slot; "" if there is none.
func contested(id, recorded string, claims []string) string {
	if recorded != "" {
		return recorded + " has its slot"
	}
	if len(claims) > 1 {
		others := slices.DeleteFunc(slices.Clone(claims), func(other string) bool { return other == id })
		slices.Sort(others)
		return "its slot is claimed by " + strings.Join(others, ", ") + " too"
	}
	return ""
}

func put(taken map[string]map[int]string, group string, slot int, id string) {
	if taken[group] == nil {
		taken[group] = map[int]string{}
	}
	taken[group][slot] = id
}
