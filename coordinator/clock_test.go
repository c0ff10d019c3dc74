package coordinator

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A clock is off if all of the last notes say so: one that was late on its way proves nothing.
//
// proves DAY-3
func TestAClockThatIsOff(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ms := time.Millisecond
	for name, test := range map[string]struct {
		late []time.Duration
		want time.Duration
	}{
		"right":             {[]time.Duration{2 * ms, 5 * ms, 3 * ms}, 0},
		"not known yet":     {[]time.Duration{time.Hour, time.Hour}, 0},
		"slow notes":        {[]time.Duration{2 * time.Second, 900 * ms, 3 * time.Second}, 0},
		"ahead":             {[]time.Duration{3010 * ms, 3200 * ms, 9 * time.Second}, 3 * time.Second},
		"behind":            {[]time.Duration{-2 * time.Second, -1990 * ms, -time.Second, -1200 * ms}, -time.Second},
		"set right, mostly": {[]time.Duration{time.Hour, time.Hour, time.Hour, 4 * ms}, 0},
	} {
		w := &clock{}
		for _, late := range test.late {
			w.take(store.Served{At: at, Replica: "a"}, at.Add(late))
		}
		if got := w.Off(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
