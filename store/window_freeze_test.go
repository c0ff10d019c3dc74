package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A freeze begins with its first moment and is over at its end. One without a beginning has begun.
//
// proves ROLL-6
func TestWhenAFreezeIsInForce(t *testing.T) {
	from, to := time.Date(2026, 12, 20, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 27, 0, 0, 0, 0, time.UTC)
	begun := (&store.Group{Freeze: store.FreezeSpec{To: "2026-12-27T01:00:00+01:00", Why: "sale"}}).Frozen()
	both := (&store.Group{Freeze: store.FreezeSpec{From: "2026-12-20T00:00:00Z", To: "2026-12-27T00:00:00Z"}}).Frozen()
	if begun == nil || begun.Why != "sale" || both == nil || both.Why != "" {
		t.Fatalf("freezes are %+v and %+v", begun, both)
	}
	if f := (&store.Group{}).Frozen(); f != nil {
		t.Errorf("a group without a freeze has %+v", f)
	}
	for _, test := range []struct {
		at          time.Time
		begun, both bool
	}{
		{from.Add(-1), true, false},
		{from, true, true},
		{to.Add(-1), true, true},
		{to, false, false},
		{to.Add(1), false, false},
	} {
		if begun.At(test.at) != test.begun || both.At(test.at) != test.both || (*store.Freeze)(nil).At(test.at) {
			t.Errorf("%s: in force is %t and %t", test.at, begun.At(test.at), both.At(test.at))
		}
	}
}

// Work begins when a window is open and no freeze is in force. What no window allows never begins,
// and a freeze, which may have no beginning, does not change that with its end.
//
// proves ROLL-6
func TestWhenWorkBeginsAfterAFreeze(t *testing.T) {
	at := func(hours int) time.Time { return time.Date(2026, 3, 2, hours, 0, 0, 0, time.UTC) }
	for name, test := range map[string]struct {
		allow []string
		until int // of the freeze; it has begun
		want  time.Time
	}{
		"it ends in the window":               {nil, 16, at(16)},
		"it ends after the window":            {nil, 20, at(24 + 14)},
		"it ends when the window opens":       {nil, 24 + 14, at(24 + 14)},
		"it has ended":                        {nil, 10, at(15)},
		"no window allows it":                 {[]string{store.PlannedExpiry}, 16, time.Time{}},
		"no window allows it, and it is over": {[]string{store.PlannedExpiry}, 10, time.Time{}},
	} {
		g := store.Group{Windows: []store.Window{{From: "14:00", For: store.Duration(4 * time.Hour), Allow: test.allow}}}
		if got := g.Begins(store.PlannedRoll, at(15), &store.Freeze{To: at(test.until)}); !got.Equal(test.want) {
			t.Errorf("%s: begins %s, want %s", name, got, test.want)
		}
	}
}

// Only windows that allow a kind of work are open for it.
//
// proves ROLL-6
func TestOpenForWhatIsAllowed(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	g := store.Group{Windows: []store.Window{
		{From: "14:00", For: store.Duration(time.Hour), Allow: []string{store.PlannedExpiry}},
		{From: "16:00", For: store.Duration(time.Hour)},
	}}
	for kind, want := range map[string][]int{store.PlannedExpiry: {2, 4}, store.PlannedRoll: {4}} {
		var periods []store.Period
		for _, h := range want {
			from := noon.Add(time.Duration(h) * time.Hour)
			periods = append(periods, store.Period{From: from, To: from.Add(time.Hour)})
		}
		if got := g.OpenBetween(kind, noon, noon.Add(12*time.Hour)); !slices.Equal(got, periods) {
			t.Errorf("%s: open %v, want %v", kind, got, periods)
		}
	}
}

// Open times are in order, joined where they touch, and none of them is empty.
//
// proves ROLL-6
func TestOpenTimesAreInOrder(t *testing.T) {
	at := func(hours int) time.Time { return time.Date(2026, 3, 2, hours, 0, 0, 0, time.UTC) }
	for name, test := range map[string]struct {
		opens      []int    // windows of two hours each
		from, to   int      // what is asked for
		begin, end int      // of a freeze, if it ends
		want       [][2]int // from and to of each
	}{
		"out of order":               {opens: []int{18, 14}, from: 12, to: 22, want: [][2]int{{14, 16}, {18, 20}}},
		"windows that touch":         {opens: []int{14, 16}, from: 12, to: 22, want: [][2]int{{14, 18}}},
		"it opens at the end":        {opens: []int{14}, from: 12, to: 14},
		"it closes at the beginning": {opens: []int{14}, from: 16, to: 20},
		"frozen at first":            {[]int{14}, 12, 22, 14, 15, [][2]int{{15, 16}}},
		"frozen at last":             {[]int{14}, 12, 22, 15, 16, [][2]int{{14, 15}}},
		"frozen, and longer":         {[]int{14}, 12, 22, 13, 17, nil},
	} {
		var g store.Group
		for _, hour := range test.opens {
			g.Windows = append(g.Windows, store.Window{From: at(hour).Format("15:04"), For: store.Duration(2 * time.Hour)})
		}
		var want []store.Period
		for _, p := range test.want {
			want = append(want, store.Period{From: at(p[0]), To: at(p[1])})
		}
		var freezes []*store.Freeze
		if test.end > 0 {
			freezes = append(freezes, &store.Freeze{From: at(test.begin), To: at(test.end)})
		}
		if got := g.OpenBetween(store.PlannedRoll, at(test.from), at(test.to), freezes...); !slices.Equal(got, want) {
			t.Errorf("%s: open %v, want %v", name, got, want)
		}
	}
}

// A window that another release wrote and this one cannot read never opens. It hides none of the
// others, wherever it stands in the list.
//
// proves ROLL-6
func TestWindowsThatCannotBeRead(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	good := store.Window{From: "14:00", For: store.Duration(time.Hour)}
	for name, bad := range map[string]store.Window{
		"a zone that is not known": {From: "14:00", For: good.For, TimeZone: "Nowhere/Else"},
		"no time of day":           {From: "24:00", For: good.For},
		"no length":                {From: "14:00"},
	} {
		g := store.Group{Windows: []store.Window{bad}}
		opens, open := g.Opens(store.PlannedRoll, now), g.OpenBetween(store.PlannedRoll, now, now.Add(24*time.Hour))
		if !opens.IsZero() || len(open) > 0 {
			t.Errorf("%s: it opens %s, and is open %v", name, opens, open)
		}
		for _, all := range [][]store.Window{{bad, good}, {good, bad}} {
			g.Windows = all
			if opens := g.Opens(store.PlannedRoll, now); !opens.Equal(now.Add(2 * time.Hour)) {
				t.Errorf("%s, beside a good one: opens %s", name, opens)
			}
		}
	}
}

// A window of a whole week is open until it opens again.
//
// proves ROLL-6
func TestAWindowOfAWeek(t *testing.T) {
	w := store.Window{Days: []string{"mon"}, From: "12:00", For: store.Duration(7 * 24 * time.Hour)}
	g := store.Group{Windows: []store.Window{w}}
	monday := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for after := time.Duration(0); after <= 8*24*time.Hour; after += time.Hour {
		if at := monday.Add(after); !g.Opens(store.PlannedRoll, at).Equal(at) {
			t.Errorf("%s after it opened, it opens %s", after, g.Opens(store.PlannedRoll, at))
		}
	}
}

// Every kind of planned work can be allowed by name, and a group is warned of each that none of its
// windows allows. A drill is no such work: it is left out without a window.
//
// proves ROLL-6, DAY-6
func TestKindsOfPlannedWork(t *testing.T) {
	kinds := []string{"roll", "expiry", "rebalance", "scale_down"}
	g := web()
	g.Windows = []store.Window{{From: "14:00", For: store.Duration(time.Hour), Allow: []string{"drill"}}}
	if w := g.Warnings(); len(w) != 1 || !strings.Contains(w[0], "no window allows "+strings.Join(kinds, ", ")+":") {
		t.Errorf("warnings %q", w)
	}
	for _, kind := range append(kinds, "drill") {
		g.Windows[0].Allow = []string{kind}
		if got := refusalOf(g); got != "" {
			t.Errorf("%s is refused: %s", kind, got)
		}
	}
}

// An instance past its forced age waits for a window for a day, or as long as its group says.
//
// proves ROLL-6
func TestGraceOfForcedAge(t *testing.T) {
	for want, e := range map[time.Duration]store.ExpirySpec{
		24 * time.Hour: {},
		0:              {ForcedGrace: new(store.Duration(0))},
		time.Hour:      {ForcedGrace: new(store.Duration(time.Hour))},
	} {
		if got := e.Grace(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
