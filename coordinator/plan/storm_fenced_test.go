package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// sights are what is seen of the three machines of a group that have powered themselves off: that
// the provider calls them down, and that their streams or their leases have ended.
var sights = []string{"down 0", "down 1", "down 2", "silent 0", "silent 1", "silent 2"}

// orderings are all orders of what is seen.
func orderings(left []string) [][]string {
	if len(left) == 0 {
		return [][]string{nil}
	}
	var out [][]string
	for i, first := range left {
		for _, rest := range orderings(slices.Delete(slices.Clone(left), i, i+1)) {
			out = append(out, append([]string{first}, rest...))
		}
	}
	return out
}

// Three machines power themselves off, and what there is to see of that comes in some order.
// Whichever it is, and whenever a new leader takes over, the last that is seen makes it a storm: it
// is not replaced, though two may have been by then. Once something is seen of all three, none is.
//
// proves SAFE-9, SAFE-2
func TestMachinesThatPowerOffAreAStormInWhateverOrderTheyAreSeen(t *testing.T) {
	// before which sight one takes over; -1: none does
	leaders := map[string][]int{"stream lost": {-1, 2, 4, 6}, "lease ended": {-1, 3}}
	for how, at := range leaders {
		for _, order := range orderings(sights) {
			for _, leader := range at {
				if !inTurn(order) {
					continue
				}
				if problem := powerOff(t, how, order, leader); problem != "" {
					t.Fatalf("%s, seen %v, leader %d: %s", how, order, leader, problem)
				}
			}
		}
	}
}

// inTurn reports whether the machines are first seen in the order of their slots. Other orders
// differ from these by the slots' numbers alone.
func inTurn(order []string) bool {
	var first []string
	for _, sight := range order {
		if slot := sight[len(sight)-1:]; !slices.Contains(first, slot) {
			first = append(first, slot)
		}
	}
	return slices.IsSorted(first)
}

// powerOff plays one order, with a new leader before the sight of a number, and says what was
// wrong.
func powerOff(t *testing.T, how string, order []string, leader int) (problem string) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) {
		g.Size, g.Report.OnLeaseLost = 3, store.LeaseLost{Do: store.LeaseLostPowerOff}
	})
	second := func() {
		w.pass(time.Second)
		w.step()
	}
	for range 8 {
		second()
	}
	var ids []string
	for _, v := range w.instances() {
		if v.Record.Phase == store.Running {
			ids = append(ids, v.Record.ID)
		}
	}
	if len(ids) != 3 {
		t.Fatalf("%d of 3 run at first", len(ids))
	}
	seen := map[string]bool{}
	w.told = func(a Action) {
		if slices.Contains(ids, a.Instance) && a.To == store.Deleting && len(seen) == 3 && problem == "" {
			problem = "all three are known to be in trouble, and " + a.Instance + " is replaced: " + a.Why
		}
	}
	for i, sight := range order {
		if i == leader {
			w.leaderChange()
		}
		id := ids[sight[len(sight)-1]-'0']
		seen[id] = true
		switch {
		case w.machines[id] == nil: // it has been replaced
		case strings.HasPrefix(sight, "down"):
			w.machines[id].down = true
		case how == "stream lost":
			w.silence(id, true)
		default:
			w.agents[id].silentFrom = w.now
			w.drop(w.keys.Alive(id))
		}
		second()
	}
	if leader == len(order) {
		w.leaderChange()
	}
	for range 8 {
		second()
	}
	storm := read[store.Status](w, w.keys.Status(w.group)).Record.Storm
	left := 0
	for _, id := range ids {
		if w.instance(id).Record.Phase == store.Running {
			left++
		}
	}
	if problem == "" && (storm == nil || left == 0) {
		problem = fmt.Sprintf("storm %+v, %d of the three are left", storm, left)
	}
	return problem
}
