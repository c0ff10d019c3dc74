package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	// nearlyFull is the share of its quota, in percent, from which the size of etcd's database is a
	// problem.
	nearlyFull = 80
	// certificateNear is the remaining lifetime below which a certificate is a problem.
	certificateNear = 14 * 24 * time.Hour
)

// triedEtcd lists the releases of etcd that Leasehold was tested with, the newest last.
var triedEtcd = []string{"3.5", "3.6", "3.7"}

func tried(version string) bool {
	return slices.ContainsFunc(triedEtcd, func(release string) bool { return strings.HasPrefix(version, release+".") })
}

func untried(m store.Member) Problem {
	return Problem{
		About: m.Title(), Rule: "DAY-3", Remedies: Advise("install a release " + triedEtcd[len(triedEtcd)-1] + " of etcd"),
		What: fmt.Sprintf("it is of version %s, and Leasehold was tried with %s alone", m.Version,
			strings.Join(triedEtcd, ", ")),
	}
}

// EtcdProblems returns what is wrong with etcd's members (DAY-3).
func EtcdProblems(etcd *store.Members, now time.Time) []Problem {
	if etcd == nil {
		return nil
	}
	var found dayProblems
	if lost := NoQuorum(etcd); lost != "" {
		found.addf("etcd", Advise("start etcd there again; if it is gone for good: docs/damage.md"), "%s", lost)
	}
	for _, m := range etcd.All {
		if m.Down != "" {
			found.addf(m.Title(), Advise("start etcd there; if the host is gone for good, replace the member"),
				"it does not answer at %s: %.200s", m.Address, m.Down)
			continue
		}
		if m.Full {
			found.addf(m.Title(), Advise("etcdctl compact, then etcdctl defrag on each member, then etcdctl alarm disarm"),
				"it rejects writes: its space quota of %s is exhausted", bytesOf(m.Quota))
		} else if m.Quota > 0 && m.Size*100 >= m.Quota*nearlyFull {
			found.addf(m.Title(), Advise("etcdctl defrag on it; if that does not help, a larger --quota-backend-bytes"),
				"its database has %s of the %s that its quota allows, and rejects writes when that is used up",
				bytesOf(m.Size), bytesOf(m.Quota))
		}
		if m.Corrupt {
			found.addf(m.Title(), Advise("remove the member and add it again with an empty data directory"),
				"its data differs from the other members'")
		}
		if m.Learner {
			found.addf(m.Title(), Advise("etcdctl member promote, once it has caught up"),
				"it is a learner, and counts for no quorum")
		}
		if !tried(m.Version) {
			found = append(found, untried(m))
		}
		if ends := m.CertificateEnds; !ends.IsZero() && ends.Sub(now) < certificateNear {
			found.addf(m.Title(), Advise("where it was issued: leasehold pki issue NAME --host HOST --renew"),
				"its certificate ends on %s%s", Day(now, ends), Within(now, ends))
		}
	}
	if ends := etcd.CertificateEnds; !ends.IsZero() && ends.Sub(now) < certificateNear {
		about, whose := "you", "your"
		if etcd.By != "" {
			about, whose = etcd.By, "its"
		}
		found.addf(about, Advise("where it was issued: leasehold pki issue NAME --renew"),
			"%s certificate for etcd ends on %s%s", whose,
			Day(now, ends), Within(now, ends))
	}
	remote := slices.DeleteFunc(slices.Clone(etcd.All), func(m store.Member) bool { return !m.Remote })
	if slices.ContainsFunc(remote, func(m store.Member) bool { return m.Plain }) {
		found.addf("etcd", Advise("give etcd certificates: docs/cli.md#etcd-with-tls-and-roles"),
			"it is reached over a network without TLS: everyone on the way can read and change everything")
	}
	if len(remote) > 0 && etcd.NoAuthentication {
		found.addf("etcd", Run("leasehold auth init"),
			"authentication is off: everyone who reaches etcd may do everything")
	}
	return found
}

// NoQuorum returns which members prevent the others from having a quorum; "" if there is one.
func NoQuorum(etcd *store.Members) string {
	var down []string
	leaderless := false
	for _, m := range etcd.All {
		if m.Down != "" {
			down = append(down, m.Title())
		}
		leaderless = leaderless || m.NoLeader
	}
	switch {
	case !leaderless || len(down) == len(etcd.All):
		return ""
	case len(down) == 0:
		return "no quorum: all members answer, and they have no leader: they may not reach each other"
	}
	last := len(down) - 1
	who, do := down[last], "does"
	if last > 0 {
		who, do = strings.Join(down[:last], ", ")+" and "+who, "do"
	}
	return fmt.Sprintf("no quorum: %s %s not answer: %d of %d members must", who, do, len(etcd.All)/2+1, len(etcd.All))
}

func bytesOf(n int64) string {
	const mib = 1 << 20
	if n >= 10*1024*mib {
		return fmt.Sprintf("%d GiB", n/(1024*mib))
	}
	return fmt.Sprintf("%d MiB", n/mib)
}
