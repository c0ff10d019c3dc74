package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

func (s *story) stopped(id string) { s.machine(id, history.WorkloadEnded) }

// deletedByHand removes a record as etcdctl does.
func (s *story) deletedByHand(id string) { s.operator(drop(s.keys.Instance(id))) }

func (s *story) goneNote(id string) write {
	return put(s.keys.Gone(s.keys.Instance(id)), store.Gone{Schema: 1, Revision: s.rev, Rule: "REC-4", Instance: id})
}

// restart takes an instance to stopping, as an operator has ordered.
func (s *story) restart(id string) {
	s.txn(s.record(id, func(r *store.Instance) { r.Condemned = &store.Condemned{By: "me"} }))
	s.step(id, store.Stopping)
}

// emptied begins another line of etcd's history, with nothing in it.
func (s *story) emptied() {
	s.line, s.rev = s.line+1, 0
	clear(s.world)
	s.operator(put(s.keys.Replica("a"), store.Replica{Schema: 1, ID: "a"}))
}

// proves SAFE-14
func TestAWorkloadIsStoppedByACondemningRecordAlone(t *testing.T) {
	for name, c := range map[string]struct {
		tell   func(s *story)
		broken []string
	}{
		"nothing has happened": {func(s *story) { s.stopped(one) }, []string{"SAFE-14"}},
		"its record was lost": {
			func(s *story) { s.deletedByHand(one); s.pass(time.Second); s.stopped(one) },
			[]string{"SAFE-14"},
		},
		"its group was lost": {
			func(s *story) { s.operator(drop(s.keys.Group("web"))); s.stopped(one) },
			[]string{"SAFE-14"},
		},
		"all of etcd was lost": {
			func(s *story) { s.emptied(); s.pass(time.Second); s.stopped(one) },
			[]string{"SAFE-14"},
		},
		"another one's note": {func(s *story) {
			s.deletedByHand(one)
			s.operator(s.goneNote("web-1-aaaaaa"))
			s.stopped(one)
		}, []string{"SAFE-14"}},
		"its agent was killed long ago": {func(s *story) {
			s.harm(one, history.Exited)
			s.over(one, history.Exited)
			s.pass(time.Minute)
			s.stopped(one)
		}, []string{"SAFE-14"}},
		"a restart long ago": {func(s *story) {
			s.restart(one)
			s.step(one, store.Starting)
			s.step(one, store.Checking)
			s.step(one, store.Running)
			s.pass(2 * time.Minute)
			s.stopped(one)
		}, []string{"SAFE-14"}},

		"its record is deleting": {
			func(s *story) { s.group("web", 1); s.step(one, store.Deleting); s.stopped(one) },
			nil,
		},
		"its record was deleting": {func(s *story) {
			s.group("web", 1)
			s.step(one, store.Deleting)
			s.emptied()
			s.stopped(one)
		}, nil},
		"a note of it": {func(s *story) {
			s.deletedByHand(one)
			s.operator(s.goneNote(one))
			s.stopped(one)
		}, nil},
		"it is restarted":         {func(s *story) { s.restart(one); s.stopped(one) }, nil},
		"its workload was killed": {func(s *story) { s.harm(one, history.Exited); s.stopped(one) }, nil},
		"it fences itself": {func(s *story) {
			s.txn(s.record(one, func(r *store.Instance) { r.Spec.Report.OnLeaseLost.Do = store.LeaseLostStop }))
			s.emptied()
			s.stopped(one)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := web(t)
			c.tell(s)
			s.broken(c.broken...)
		})
	}
}

// proves SAFE-14
func TestAMachineWithoutARecordThatIsWellIsNotRemoved(t *testing.T) {
	removed := func(before func(*story)) *story {
		s := web(t)
		r := s.world[one]
		s.deletedByHand(one)
		before(s)
		r.Phase, r.Managed = store.Deleting, false
		s.txn(put(s.keys.Instance(one), r),
			s.entry(store.JournalEntry{
				Rule: "REC-8", What: "extra machine is removed", Instance: one,
				To: store.Deleting,
			}))
		return s
	}
	removed(func(*story) {}).broken("SAFE-14")
	removed(func(s *story) { s.operator(s.goneNote(one)) }).innocent()
	removed(func(s *story) { s.harm(one, history.Cut); s.silent(one); s.pass(time.Minute) }).innocent()
}
