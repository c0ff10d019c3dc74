package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/agent/protocol"
)

// proves SPOT-1, DET-1, DET-13
func TestNoticeIsReportedAtOnceAndAsLongAsItHolds(t *testing.T) {
	story(t, []string{"a"}, false, nil, func(t *testing.T, r *running) {
		r.shard.take()
		pass(interval / 2)
		r.shard.take()
		seen := time.Now()
		r.notices.says(&notice.Notice{
			Kind: "terminate", Why: "wanted back", Seen: seen,
			Ends: seen.Add(2 * time.Minute),
		})
		first := r.tells("a notice").GetNotice()
		if first.GetKind() != "terminate" || first.GetWhy() != "wanted back" || !first.GetAt().AsTime().Equal(seen) ||
			first.GetIn().AsDuration() != 2*time.Minute {
			t.Errorf("notice is %v", first)
		}
		pass(6 * interval) // when a report is due
		next := r.tells("the next report").GetNotice()
		if !next.GetAt().AsTime().Equal(seen) || next.GetIn().AsDuration() != 2*time.Minute-6*interval {
			t.Errorf("after %s the notice is %v", 6*interval, next)
		}
		pass(2 * time.Minute)
		if late := r.tells("a report after the end").GetNotice(); late.GetIn().AsDuration() <= 0 {
			t.Errorf("its time is over, and the notice is %v: as if its time were not known", late)
		}
		r.notices.says(nil)
		if report := r.tells("the notice being withdrawn"); report.GetNotice() != nil {
			t.Errorf("report is %v, want no notice", report)
		}
		r.notices.says(&notice.Notice{Kind: "maintenance", Seen: time.Now()})
		if n := r.tells("a notice without a time").GetNotice(); n.GetKind() != "maintenance" || n.GetIn() != nil {
			t.Errorf("notice is %v", n)
		}
	})
}

// proves SPOT-1
func TestWhatIsWatchedIsReportedAndOutlivesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m, dir := newShard(t, "a"), newMachine(false), t.TempDir()
		change := func(c *Config) { c.StateDir = dir }
		first := startAgent(t, s, m, change)
		pass(time.Millisecond)
		want := notice.Spec{Source: notice.File, File: "/run/notice"}
		first.want(&protocol.Wanted{Notices: &protocol.NoticeSource{Source: want.Source, File: want.File}}, 2)
		if got := first.notices.watches(); got != want {
			t.Errorf("watches %+v, want %+v", got, want)
		}
		first.cancel()
		<-first.done

		for _, r := range s.replicas {
			r.stop()
		}
		second := startAgent(t, s, m, change)
		pass(time.Millisecond)
		if got := second.notices.watches(); got != want {
			t.Errorf("without a replica the next agent watches %+v, want %+v", got, want)
		}
		s.replicas["a"].start()
		pass(time.Minute)
		second.want(&protocol.Wanted{}, 1)
		if got := second.notices.watches(); got != (notice.Spec{}) {
			t.Errorf("told to watch nothing, it watches %+v", got)
		}
		second.end()
	})
}

// proves DET-8, DRAIN-3
func TestEvacuationIsReportedAndIsTheLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a")
		r := startAgent(t, s, newMachine(true), nil)
		pass(time.Millisecond)
		s.take()
		r.evac.says(&notice.Notice{Kind: notice.Evacuating, Why: "the host is repaired", Seen: time.Now()})
		if n := r.tells("an evacuation").GetNotice(); n.GetKind() != notice.Evacuating ||
			n.GetWhy() != "the host is repaired" {
			t.Errorf("notice is %v", n)
		}
		if st := r.machine.State(); !st.Running {
			t.Errorf("workload is %+v: it is wanted until its instance has been replaced and drained", st)
		}
		seen := time.Now()
		r.notices.says(&notice.Notice{Kind: "terminate", Seen: seen, Ends: seen.Add(time.Minute)})
		if n := r.tells("a provider's notice beside it").GetNotice(); n.GetKind() != "terminate" {
			t.Errorf("notice is %v: the provider's leaves less time", n)
		}
		r.cancel()
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
		got := s.take()
		if b := got[len(got)-1].message.GetGoodbye(); b.GetKind() != protocol.Goodbye_EVACUATING ||
			b.GetMessage() != "the host is repaired" {
			t.Errorf("the last words are %v", b)
		}
		s.stop()
	})
}

// proves DET-8
func TestAnUpgradeDuringAnEvacuationIsARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a")
		r := startAgent(t, s, newMachine(true), func(c *Config) { c.Farewell = FarewellRestart })
		pass(time.Millisecond)
		r.evac.says(&notice.Notice{Kind: notice.Evacuating, Seen: time.Now()})
		s.take()
		r.cancel()
		<-r.done
		wantHeard(t, s.take(), "a goodbye RESTART")
		s.stop()
	})
}
