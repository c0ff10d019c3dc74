package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

const (
	// servedLate is the age from which the leader's last note is late: three are missing.
	servedLate = 3*store.ServedEvery + 5*time.Second
	// clockAhead is how far in the future a note may be.
	clockAhead = time.Second
	// slowWrite is the duration from which a small write to etcd counts as slow.
	slowWrite = 300 * time.Millisecond
	// endedShown is how long it is a problem that a part of a server ended, and endedOften the
	// number of ends from which it is one for as long as they are remembered.
	endedShown = time.Hour
	endedOften = 3
)

// replicaProblems returns what is wrong with the replicas, as they and the leader report it
// (DAY-3).
func replicaProblems(st *Shard, now time.Time) []Problem {
	var found dayProblems
	served := st.Served.Record
	if st.Leads && st.Served.Present() {
		switch age := now.Sub(served.At); {
		case age >= servedLate:
			found.addf(st.Leader.Record.Replica,
				Advise("check the leader's host, etcd's disks, and whether the clocks agree"),
				"it leads and has not noted for %s that it works, which it does every %s", reason.Span(age), store.ServedEvery)
		case age <= -clockAhead:
			found.addf(served.Replica, Advise("set the clocks by NTP, of this machine and of the coordinators"),
				"its clock is ahead of this machine's by %s: times and ages are wrong by as much", reason.Span(-age))
		}
		if took := served.Took.D(); took >= slowWrite {
			found.addf("etcd", Advise("give etcd a disk of its own; "+
				"etcd's metric etcd_disk_wal_fsync_duration_seconds says how slow it is"),
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
	found = append(found, refusedProblems(here, now)...)
	for _, r := range down(st, now) {
		found.addf(r.ID, Advise("start it again; one that is gone for good is forgotten after a day"),
			"this coordinator is down: it was seen %s ago", reason.Age(now, r.At))
	}
	for _, r := range here {
		if off := r.ClockOff.D(); off != 0 {
			which := "ahead of"
			if off < 0 {
				which = "behind"
			}
			found.addf(r.ID, Advise("set both clocks by NTP"), "its clock is %s %s the leader's", off.Abs(), which)
		}
		for _, e := range r.Ended {
			if p := endedProblem(r.ID, e, now); p != nil {
				found = append(found, *p)
			}
		}
		if r.OtherAgents > 0 {
			next := Advise(otherAgentsNext(st.Groups, r.Version))
			if slices.ContainsFunc(here, func(o store.Replica) bool { return o.Version != r.Version }) {
				next = Advise("the coordinators are of several versions: leasehold upgrade check, of the version that you want, " +
					"says what comes next")
			}
			found.addf(r.ID, next,
				"%s of another version (%.100s) than this coordinator (%s)", agentsAre(r.OtherAgents),
				reason.OneLine(strings.Join(r.OtherVersions, ", ")), r.Version)
		}
	}
	return found
}

// refusedProblems returns one problem for each reason for which agents are refused, at the replica
// that refused one last: an agent tries all of them.
func refusedProblems(here []store.Replica, now time.Time) []Problem {
	type refusal struct {
		store.Refused
		replica string
	}
	var last []refusal
	for _, r := range here {
		for _, f := range r.Refused {
			if now.Sub(f.At) >= store.RefusedFor+time.Minute { // it is noted to the minute
				continue
			}
			i := slices.IndexFunc(last, func(other refusal) bool { return other.What == f.What && other.Why == f.Why })
			switch {
			case i < 0:
				last = append(last, refusal{f, r.ID})
			case last[i].At.Before(f.At):
				last[i] = refusal{f, r.ID}
			}
		}
	}
	var found []Problem
	for _, f := range last {
		p := Problem{
			About: f.replica, Rule: f.Rule,
			What:     fmt.Sprintf("%s: %s", reason.OneLine(f.What), reason.OneLine(f.Why)),
			Remedies: Run("leasehold explain " + f.Instance),
		}
		who := f.Instance
		if !f.Proved {
			who = "one that calls itself " + who
		}
		p.What += fmt.Sprintf("; the last was %s, from %s, %s ago", reason.OneLine(who), reason.OneLine(f.From),
			reason.Age(now, f.At))
		if f.Detail != "" {
			p.What += fmt.Sprintf(" (%.200s)", reason.OneLine(f.Detail))
		}
		found = append(found, p)
	}
	return found
}

// endedProblem reports that a part of a server ended by itself: for an hour, or for a day if it did
// so often. It returns nil after that.
func endedProblem(host string, e store.PartEnds, now time.Time) *Problem {
	ago := now.Sub(e.Last)
	if ago < -time.Minute || ago >= store.EndedFor || e.Times < endedOften && ago >= endedShown {
		return nil
	}
	part := "its etcd member"
	switch e.Part {
	case "replica":
		part = "its replica"
	case "server":
		part = "leasehold server, with both parts,"
	}
	p := &Problem{About: host, Rule: "DAY-3", Over: ago >= endedShown}
	if p.What = part + " ended"; e.Times > 1 {
		p.What += fmt.Sprintf(" %d times since %s, last", e.Times, e.Since.UTC().Format(time.RFC3339))
	}
	p.What += fmt.Sprintf(" %s ago, and was started again: %.300s", reason.Age(now, e.Last), reason.OneLine(e.Why))
	p.Remedies = Advise("on that host: journalctl -u leasehold-server")
	if e.Next != "" {
		p.Remedies = Advise(reason.OneLine(e.Next))
	}
	return p
}

// down returns the coordinators that the leader saw and that are no longer there.
func down(st *Shard, now time.Time) (gone []store.SeenReplica) {
	if !st.Leads {
		return nil
	}
	here := make([]store.Replica, 0, len(st.Replicas))
	for _, r := range st.Replicas {
		here = append(here, r.Record)
	}
	for _, r := range store.SeeReplicas(st.Served.Record.Replicas, here, now) {
		if r.At.Before(now) { // of those that are here it is now
			gone = append(gone, r)
		}
	}
	return gone
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
// it includes what waits for its list, or for its credentials to be mended.
func silentProblem(st *Shard, s store.Silent) Problem {
	if s.Balancer != "" {
		return Problem{
			About: s.Balancer, Rule: "LB-3", Remedies: Advise(correctProvider),
			What: "this load balancer does not answer, so nothing is known of its members: " + reason.OneLine(s.Why),
		}
	}
	p := Problem{
		About: s.Provider, Rule: "PROV-5", Remedies: Advise(correctProvider),
		What: "this provider does not list its machines, so nothing is known of them: " + reason.OneLine(s.Why),
	}
	groups, _ := waitForList(st, s.Provider)
	if len(groups) > 0 {
		p.What += "; until it does, nothing is changed in " + FewNames(groups)
	}
	for _, r := range refusals(st) {
		if s.Refused && r.of == (refused{name: s.Provider, credentials: true}) {
			p.What += fmt.Sprintf("; %s in %s", machinesWait(r.sum.Of.Count), FewNames(r.groups))
			groups = append(groups, r.groups...)
		}
	}
	p.Groups = groups
	return p
}
