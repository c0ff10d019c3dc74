package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

const (
	// servedLate is the age of the leader's last note from which it is late: three are missing.
	servedLate = 35 * time.Second
	// clockAhead is how far a note may come from the future.
	clockAhead = time.Second
	// slowWrite is how long etcd may take for a small write, at best.
	slowWrite = 300 * time.Millisecond
)

// replicaProblems are what is wrong with the replicas, as they and the leader say (DAY-3).
func replicaProblems(st *Shard, now time.Time) []Problem {
	var found []Problem
	add := func(about, next, what string, args ...any) {
		found = append(found, Problem{About: about, Rule: "DAY-3", Next: next, What: fmt.Sprintf(what, args...)})
	}
	served := st.Served.Record
	if st.Leads && st.Served.Present() {
		switch age := now.Sub(served.At); {
		case age >= servedLate:
			add(st.Leader.Record.Replica, "check the leader's host, etcd's disks, and whether the clocks agree",
				"it leads and has not noted for %s that it works, which it does every 10s", reason.Span(age))
		case age <= -clockAhead:
			add(served.Replica, "set the clocks by NTP, of this machine and of the coordinators",
				"its clock is ahead of this machine's by %s: times and ages are wrong by as much", reason.Span(-age))
		}
		if took := served.Took.D(); took >= slowWrite {
			add("etcd", "give etcd a disk of its own; etcd's metric etcd_disk_wal_fsync_duration_seconds says how slow it is",
				"it took %s at best to write one key, in the last minute", took.Round(10*time.Millisecond))
		}
	}
	for _, s := range silent(st, now) {
		found = append(found, silentProblem(st, s))
	}
	here := make([]store.Replica, 0, len(st.Replicas))
	for _, r := range st.Replicas {
		here = append(here, r.Record)
	}
	found = append(found, AuthorityProblems(here, now)...)
	for _, r := range store.SeeReplicas(served.Replicas, here, now) {
		if st.Leads && r.At.Before(now) && !present(here, r.ID) {
			add(r.ID, "start it again; one that is gone for good is forgotten after a day",
				"this coordinator is down: it was seen %s ago", reason.Age(now, r.At))
		}
	}
	for _, r := range here {
		if off := r.ClockOff.D(); off != 0 {
			which := "ahead of"
			if off < 0 {
				which = "behind"
			}
			add(r.ID, "set both clocks by NTP", "its clock is %s %s the leader's", off.Abs(), which)
		}
		if r.OtherAgents > 0 {
			add(r.ID, otherAgentsNext(st.Groups),
				"%s of another version (%.100s) than this coordinator (%s)", agentsAre(r.OtherAgents),
				reason.OneLine(strings.Join(r.OtherVersions, ", ")), r.Version)
		}
	}
	return found
}

func present(here []store.Replica, id string) bool {
	for _, r := range here {
		if r.ID == id {
			return true
		}
	}
	return false
}

func agentsAre(n int) string {
	if n == 1 {
		return "1 of its agents is"
	}
	return fmt.Sprintf("%d of its agents are", n)
}

// silent returns the providers and load balancers that do not answer the leader now.
func silent(st *Shard, now time.Time) []store.Silent {
	if served := st.Served.Record; st.Leads && now.Sub(served.At) < servedLate {
		return served.Silent
	}
	return nil
}

// silentProblem is a provider or a load balancer that does not answer the leader. For a provider
// that refuses the credentials it includes the machines that wait for that.
func silentProblem(st *Shard, s store.Silent) Problem {
	p := Problem{
		About: s.Provider, Rule: "PROV-5",
		What: "this provider does not list its machines, so nothing is known of them: " + reason.OneLine(s.Why),
		Next: correctProvider,
	}
	for _, r := range refusals(st) {
		if s.Provider != "" && r.of == (refused{name: s.Provider, credentials: s.Refused}) {
			p.What += fmt.Sprintf("; %s in %s", machinesWait(r.sum.Of.Count), FewNames(r.groups))
		}
	}
	if s.Balancer != "" {
		p.About, p.Rule = s.Balancer, "LB-3"
		p.What = "this load balancer does not answer, so nothing is known of its members: " + reason.OneLine(s.Why)
	}
	return p
}
