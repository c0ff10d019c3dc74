package plan

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Planned work begins only in the windows of a group and outside of freezes (ROLL-6). This applies
// to each instance: work that has begun on an instance is completed, and the next instance waits.

// ClocksApart is by how much the replicas' clocks may differ for a window to open (SAFE-13).
const ClocksApart = 30 * time.Second

// windows says when planned work may begin.
type windows struct {
	*draft
	shut map[string]*blocker // by kind of planned work: see blocker
}

// blocker returns why planned work of a kind may not begin now; nil if it may.
func (d *windows) blocker(kind string) *blocker {
	c, known := d.shut[kind]
	if !known {
		if d.shut == nil {
			d.shut = map[string]*blocker{}
		}
		c = d.whyClosed(kind)
		d.shut[kind] = c
	}
	return c
}

func (d *windows) whyClosed(kind string) *blocker {
	freezes := []*store.Freeze{d.s.Shard.Record.Freeze, d.spec.Frozen()}
	for _, f := range freezes {
		if f.At(d.now) {
			of := store.BlockedFacts{Opens: d.spec.Begins(kind, d.now, freezes...).UTC(), Name: f.By, Text: f.Why}
			d.wake(f.To)
			return blocked("ROLL-6", store.BlockedByFreeze, of)
		}
	}
	if len(d.spec.Windows) == 0 {
		return nil
	}
	if d.s.ClocksApart >= ClocksApart {
		d.wake(d.now.Add(ClocksApart))
		return blocked("ROLL-6", store.BlockedByClocks, store.BlockedFacts{For: store.Duration(d.s.ClocksApart)})
	}
	if d.spec.Opens(kind, d.now).Equal(d.now) {
		return nil
	}
	of := store.BlockedFacts{Opens: d.spec.Begins(kind, d.now, freezes...).UTC()}
	d.wake(of.Opens)
	return blocked("ROLL-6", store.BlockedByWindow, of)
}

// rollClosed returns why the roll may not begin with an instance now; nil if it may. A rollback to
// a good template waits for no window.
func (d *roll) rollClosed() *blocker {
	if d.toGood() {
		return nil
	}
	return d.windows.blocker(store.PlannedRoll)
}

// rollRests reports whether a window or a freeze explains why the roll makes no progress.
func (d *roll) rollRests() bool { return d.count.strange > 0 && d.rollClosed() != nil }

// inWindow removes the members with which a roll may not begin now. It may begin with a failed
// member that only the change can heal, and with a member that has the template and is relaunched
// by an operator's order.
func (d *roll) inWindow(list []*member) []*member {
	c := d.rollClosed()
	if c == nil {
		return list
	}
	held := false
	list = slices.DeleteFunc(list, func(m *member) bool {
		waits := m.Record.Template != d.hash && !d.neverHealed(m)
		held = held || waits
		return waits
	})
	if held {
		d.waits(task{work: store.WorkRoll}, c)
	}
	return list
}

// needsNoWindow reports whether a surplus slot may go at any time: nothing in it works, or its
// members have to go anyway.
func needsNoWindow(c *candidate) bool {
	return !slices.ContainsFunc(c.members, func(m *member) bool { return !m.unwanted() && m.phase.Registered() })
}
