package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Each order is the record that the leader understands.
//
// proves REC-16, REC-13, REC-2, REC-8, DRAIN-1, DRAIN-3, FLAP-3
func TestOrdersSayWhatIsWanted(t *testing.T) {
	for _, c := range []struct {
		args string
		want store.Request
	}{
		{"instance restart roll-3-d", store.Request{Kind: store.RequestRestart, Group: "roll", Instance: "roll-3-d"}},
		{
			"instance drain roll-3-d --confirm=roll-3-d",
			store.Request{Kind: store.RequestDrain, Group: "roll", Instance: "roll-3-d"},
		},
		{"instance drained roll-0-a", store.Request{Kind: store.RequestDrained, Group: "roll", Instance: "roll-0-a"}},
		{"instance protect roll-3-d", store.Request{
			Kind: store.RequestProtect, Group: "roll", Instance: "roll-3-d",
			Mode: store.ProtectRemoval,
		}},
		{
			"instance protect roll-3-d --from-heal",
			store.Request{Kind: store.RequestProtect, Group: "roll", Instance: "roll-3-d", Mode: store.ProtectHeal},
		},
		{
			"instance protect roll-3-d --off",
			store.Request{Kind: store.RequestProtect, Group: "roll", Instance: "roll-3-d", Mode: store.ProtectOff},
		},
		{
			"instance protect roll-3-d --for 2h --why build",
			store.Request{
				Kind: store.RequestProtect, Group: "roll", Instance: "roll-3-d", Mode: store.ProtectRemoval,
				For: store.Duration(2 * time.Hour), Why: "build",
			},
		},
		{
			"instance protect roll-3-d --from-heal --until " + noon.Add(time.Hour).Format(time.RFC3339),
			store.Request{
				Kind: store.RequestProtect, Group: "roll", Instance: "roll-3-d", Mode: store.ProtectHeal,
				For: store.Duration(time.Hour),
			},
		},
		{"instance create -g roll", store.Request{Kind: store.RequestCreate, Group: "roll"}},
		{"instance adopt stray-1", store.Request{Kind: store.RequestAdopt, Instance: "stray-1"}},
		{"instance adopt stray-1 -g roll", store.Request{Kind: store.RequestAdopt, Instance: "stray-1", Group: "roll"}},
		{"group retry flaps", store.Request{Kind: store.RequestRetry, Group: "flaps"}},
		{"evacuate a --confirm=a", store.Request{Kind: store.RequestEvacuate, Zone: "a"}},
		{"evacuate c --end", store.Request{Kind: store.RequestReturn, Zone: "c"}},
	} {
		w := newWorld(t)
		busy(w)
		w.must(strings.Fields(c.args)...)
		c.want.Schema, c.want.ID, c.want.By, c.want.At = store.Schema, "order1", "eve@desk", noon
		if all := w.allOrders(); len(all) != 1 || all[0] != c.want {
			t.Errorf("%s leaves %+v, want %+v", c.args, all, c.want)
		}
	}
}

// An order about what goes meanwhile is not left behind.
//
// proves REC-16
func TestNoOrderIsLeftForWhatIsGone(t *testing.T) {
	for _, c := range []struct {
		args string
		gone string
	}{
		{"instance restart roll-3-d", store.KindInstances + "/roll-3-d"},
		{"group retry flaps", store.KindStatus + "/flaps"},
		{"evacuate a --confirm=a", store.KindShard},
	} {
		w := newWorld(t)
		busy(w)
		w.race(func() {
			if _, err := w.st.Commit(t.Context(),
				store.Txn{Writes: []store.Write{store.Delete(w.keys.Prefix() + c.gone)}}); err != nil {
				t.Error(err)
			}
		})
		code, _, stderr := w.run(strings.Fields(c.args)...)
		if code != Conflict || !strings.Contains(stderr, "was removed in the meantime; no order was given") ||
			len(w.allOrders()) != 0 {
			t.Errorf("%s: exit %d: %s", c.args, code, stderr)
		}
	}
}

// A pending order of any kind is reported.
//
// proves REC-16
func TestPendingOrdersAreProblems(t *testing.T) {
	w := newWorld(t)
	w.serve()
	at := noon.Add(-2 * story.OrderIgnored)
	for _, r := range []store.Request{
		{ID: "1", Kind: store.RequestRestart, Group: "web", Instance: "web-0-a"},
		{ID: "2", Kind: store.RequestRetry, Group: "web"},
		{ID: "3", Kind: store.RequestEvacuate, Zone: "b"},
	} {
		r.Schema, r.By, r.At = 1, "eve", at
		w.put(store.KindRequests, r.ID, r)
	}
	out := w.must("status")
	for _, says := range []string{
		"  web-0-a  REC-16: the order \"restart\", given 2m ago by eve, is not carried out yet",
		"next: leasehold events -i web-0-a",
		"  web  REC-16: the order \"retry\"", "next: leasehold events -g web\n",
		"  zone b  REC-16: the order \"evacuate\"", "next: leasehold events\n",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is missing in\n%s", says, out)
		}
	}
}
