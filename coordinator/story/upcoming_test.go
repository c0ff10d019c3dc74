package story

import (
	"testing"
	"time"
)

func TestFirstUpcomingIsTheFirstToCome(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	upcoming := []Upcoming{
		{At: noon.Add(time.Hour), What: "late"},
		{At: noon.Add(-time.Second), What: "past"},
		{At: noon.Add(time.Minute), What: "soon"},
		{At: noon, What: "now"},
	}
	if l := FirstUpcoming(upcoming, noon); l == nil || l.What != "soon" {
		t.Errorf("the next look is %v, want soon", l)
	}
	if l := FirstUpcoming(upcoming[:2], noon.Add(2*time.Hour)); l != nil {
		t.Errorf("the next look is %v, and all are past", l)
	}
}
