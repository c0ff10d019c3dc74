package scenario

import (
	"fmt"
	"time"
)

// coordinatorKinds are failures of coordinators and etcd.
func coordinatorKinds() []Kind {
	return []Kind{
		{
			"coordinator_dies", "", "The leader's process ends. Another replica leads once its session has expired.",
			readLeaderDies,
		},
		{"replica_dies", "", "The process of a replica that does not lead ends.", readReplicaDies},
		{"coordinator_resigns", "", "The leader steps down gracefully.", readResigns},
		{"coordinator_freezes", "for", "The leader's process freezes.", readFreezes},
		{"watch_silent", "for", "The leader's watch delivers no changes.", readBlind},
		{"wrong_clock", "by", "Another replica leads, and its clock is wrong.", readClock},
		{"etcd_away", "for", "etcd is unreachable.", readEtcd},
		{"dropped_leases", "", "etcd drops leases that are being renewed.", readDropped},
		{"lost_answers", "percent", "The leader's commits succeed, but etcd's answers are lost.", readAnswers},
	}
}

const longestTrouble = 24 * time.Hour

func readLeaderDies(f *fields) (text, time.Duration, func(*stage) string) {
	back := f.length("back", "30s", time.Second, longest, "Time until it is up again.")
	return says("the leading coordinator dies"), 0, func(st *stage) string {
		was := st.w.Leader()
		if was == "" {
			return "no leader"
		}
		st.w.KillLeader(back, 0)
		return was
	}
}

func readReplicaDies(f *fields) (text, time.Duration, func(*stage) string) {
	back := f.length("back", "30s", time.Second, longest, "Time until it is up again.")
	return says("a coordinator that does not lead dies"), 0, func(st *stage) string {
		st.w.KillReplica(back)
		return ""
	}
}

func readResigns(*fields) (text, time.Duration, func(*stage) string) {
	return says("the leader steps down"), 0, func(st *stage) string {
		was := st.w.Leader()
		st.w.Resign(0)
		return was
	}
}

func readFreezes(f *fields) (text, time.Duration, func(*stage) string) {
	d := f.length("for", "10s", time.Second, longestTrouble, "How long.")
	return says("the leader is paused"), d, func(st *stage) string {
		was := st.w.Leader()
		st.w.FreezeLeader(d, 0)
		return was
	}
}

func readBlind(f *fields) (text, time.Duration, func(*stage) string) {
	d := f.length("for", "10s", time.Second, longestTrouble, "How long.")
	relist := f.flag("relist", "Whether the leader then lists everything again, instead of reading the changes.")
	return says("the leader's watch is silent"), d, func(st *stage) string {
		was := st.w.Leader()
		st.w.BlindLeader(d, relist)
		return was
	}
}

func readClock(f *fields) (text, time.Duration, func(*stage) string) {
	by := f.length("by", "10m", -longestTrouble, longestTrouble, "How far the clock is ahead; negative: behind.")
	return says("another replica leads, whose clock is wrong by " + words(by)), 0, func(st *stage) string {
		st.w.Resign(by)
		return ""
	}
}

func readEtcd(f *fields) (text, time.Duration, func(*stage) string) {
	d := f.length("for", "30s", time.Second, longestTrouble, "How long.")
	drops := f.number("drops", 0, 0, 100_000, "How many leases have expired when it is back.")
	return says("etcd is unreachable"), d, func(st *stage) string {
		st.w.StopEtcd(d, drops)
		return ""
	}
}

func readDropped(f *fields) (text, time.Duration, func(*stage) string) {
	count := f.number("count", 1, 1, 100_000, "How many.")
	percent := f.percent("percent", "none", "Share of all, instead of count.")
	unnoticed := f.flag("unheard", "Whether gateways notice only at the next report.")
	what := fmt.Sprintf("etcd drops %d live leases", count)
	if percent > 0 {
		what = fmt.Sprintf("etcd drops %d%% of the live leases", percent)
	}
	return says(what), 0, func(st *stage) string {
		n := count
		if percent > 0 {
			n = (len(st.w.Names("alive"))*percent + 99) / 100
		}
		st.w.LoseLeases(n, unnoticed)
		return ""
	}
}

func readAnswers(f *fields) (text, time.Duration, func(*stage) string) {
	percent := f.percent("percent", "0%", "How many.")
	d := f.lasting("Then the leader receives all answers again.")
	return says(fmt.Sprintf("%d%% of etcd's answers to the leader are lost", percent)), d, func(st *stage) string {
		st.w.LoseAnswers(percent)
		st.later(d, func() { st.w.LoseAnswers(0) })
		return ""
	}
}
