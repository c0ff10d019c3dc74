package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A replacement that was decided before a storm, and that etcd executes after it has begun, fails:
// the status that begins a storm takes a turn of its group. Its other statuses take none.
//
// proves SAFE-2, SAFE-4
func TestTheBeginningOfAStormTakesATurn(t *testing.T) {
	s := newStory(t)
	s.play("group type=small size=6 probe_after=0s\nsettle")
	before := s.keys.Turn(s.group)
	took := func(storm, ended bool) bool {
		record := read[store.Status](s.world, s.keys.Status(s.group)).Record
		st := record
		if st.Storm = nil; storm {
			st.Storm = &store.Storm{Since: s.now}
			if ended {
				st.Storm.Ended = "calm"
			}
		}
		d := draftWith(func(d *draft) {
			snapshot := s.snapshot()
			d.s, d.g, d.now, d.spec = &snapshot, &snapshot.Groups[0], s.now, &store.Group{}
		})
		d.status.write(&record, &st)
		d.budget.takeTurns()
		a := d.actions[0]
		_, writes := NewTurns(d.s).Txn(&a)
		return slices.ContainsFunc(writes, func(w store.Write) bool { return w.Key == before })
	}
	for _, c := range []struct{ storm, ended, takes bool }{
		{false, false, false}, {true, false, true}, {true, true, false},
	} {
		if got := took(c.storm, c.ended); got != c.takes {
			t.Errorf("storm %v, ended %v: takes a turn: %v", c.storm, c.ended, got)
		}
	}
}

// Where both members of a slot are outdated and the one that keeps it is protected, the other goes
// since it is not needed. No roll does that.
//
// proves HEAL-6
func TestAnOutdatedMemberBesideAProtectedOneIsUnneeded(t *testing.T) {
	d := draftWith(func(d *draft) {
		d.s, d.g, d.now, d.spec, d.hash = &Snapshot{}, &Group{Name: "web"}, time.Unix(1000, 0), &store.Group{}, "new"
	})
	outdated := func(id, protected string) *member {
		m := &member{Instance: &Instance{}, phase: store.Running}
		m.Record.ID, m.Record.Template, m.Record.Managed, m.Record.Protected = id, "old", true, protected
		return m
	}
	m, keep := outdated("web-0-a", ""), outdated("web-0-b", store.ProtectRemoval)
	if !d.goesBefore(m, keep) {
		t.Fatal("the one that is not protected does not go first")
	}
	if why := d.leavingFor(m, keep); why.rule != "HEAL-6" || why.cause.Other != "web-0-b" {
		t.Errorf("it leaves for %+v", why)
	}
}
