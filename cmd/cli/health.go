package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/plan"
)

// score is the health of several groups together (REC-10).
type score struct {
	Percent int    `json:"percent"`
	Status  string `json:"status"` // OK or Warning

	healthy, size int
}

// health is the score of a shard, and of each label's value in it.
type health struct {
	Shard  score            `json:"shard"`
	Labels map[string]score `json:"labels,omitempty"` // by name=value
}

// add counts a group. Healthy instances beyond its size do not compensate for missing ones of
// another group.
func (s *score) add(healthy, size int) {
	s.healthy += min(healthy, size)
	s.size += size
	s.Percent, s.Status = plan.HealthScore(s.healthy, s.size), "OK"
	if s.healthy < s.size {
		s.Status = "Warning"
	}
}

// healthOf scores the groups from their statuses.
func healthOf(groups []group) health {
	h := health{Labels: map[string]score{}}
	h.Shard.add(0, 0)
	for _, g := range groups {
		st := g.Status.Record
		if st.Accepted == nil {
			continue
		}
		h.Shard.add(st.Healthy, st.Accepted.Size)
		for name, value := range st.Accepted.Labels {
			label := name + "=" + value
			s := h.Labels[label]
			s.add(st.Healthy, st.Accepted.Size)
			h.Labels[label] = s
		}
	}
	return h
}

// line prints the scores, for -o wide.
func (h health) line() string {
	parts := []string{fmt.Sprintf("health %d%% %s", h.Shard.Percent, h.Shard.Status)}
	for _, label := range slices.Sorted(maps.Keys(h.Labels)) {
		parts = append(parts, fmt.Sprintf("%s %d%%", label, h.Labels[label].Percent))
	}
	return strings.Join(parts, "  ")
}
