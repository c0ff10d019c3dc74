package story

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Formats are the formats that a release reads and speaks.
type Formats struct {
	Schema         int    // newest schema of records that it reads
	Oldest, Newest uint32 // versions of the agents' protocol
	Etcd           string // version of the etcd that leasehold server runs
}

// Found is what a release must understand to run a shard.
type Found struct {
	Newer  []Newer       // records of a newer schema than this program's
	Agents []store.Alive // the agents' sessions
}

// Newer is a record of a newer schema.
type Newer struct {
	Key    string // below the shard's prefix
	Schema int
}

// against returns what of a shard the release could not read or speak to.
func (f Formats) against(st *Shard, found Found) []Problem {
	var all dayProblems
	if n := slices.DeleteFunc(slices.Clone(found.Newer), func(n Newer) bool { return n.Schema <= f.Schema }); len(n) > 0 {
		more := ""
		if len(n) > 1 {
			more = fmt.Sprintf(", and %s newer", reason.Counted(len(n)-1, "more record is", "more records are"))
		}
		all.addf(n[0].Key, Advise("stay with the release that wrote it, or go to a newer one"),
			"it has schema %d, and this release reads up to %d%s: it would neither change nor overwrite them", n[0].Schema,
			f.Schema, more)
	}
	if old := f.tooOld(st, found.Agents); len(old) > 0 {
		all.addf("agents", Advise("upgrade them first, to a release between"),
			"%s of %s cannot speak version %d of the protocol, which this release needs: it would refuse them, and leave "+
				"their instances alone", reason.Counted(len(old), "agent", "agents"), strings.Join(versionsOf(old), ", "), f.Oldest)
	}
	for _, v := range st.Replicas {
		m, isHost := memberOf(st, v.Record)
		if !isHost || m.Version == "" {
			continue
		}
		is, ok := releaseOf(m.Version)
		will, known := releaseOf(f.Etcd)
		switch {
		case !ok || !known:
		case is.major == will.major && will.minor > is.minor+1:
			all.addf("host "+v.Record.ID, Advise("go by a release of Leasehold between"),
				"its etcd is %s, this release's is %s, and etcd takes one minor number at a time", m.Version, f.Etcd)
		case is.major != will.major || will.minor < is.minor:
			all.addf("host "+v.Record.ID, Advise("etcdctl downgrade enable, as etcd's guide says, or stay"),
				"its etcd is %s, this release's is %s, and etcd does not go back by itself", m.Version, f.Etcd)
		}
	}
	return all
}

// tooOld returns the agents that the release does not understand, as far as that is certain.
func (f Formats) tooOld(st *Shard, agents []store.Alive) (old []store.Alive) {
	speaks := map[string]uint32{} // by replica: the newest version
	for _, v := range st.Replicas {
		speaks[v.Record.ID] = max(1, v.Record.Protocol)
	}
	for _, a := range agents {
		// With a replica that speaks no newer version an agent may speak an older one than it could.
		certain := a.Goodbye == store.GoodbyeRefused || speaks[a.Replica] > protocolOf(a)
		if certain && protocolOf(a) < f.Oldest {
			old = append(old, a)
		}
	}
	return old
}

// protocolOf returns the protocol version that an agent speaks.
func protocolOf(a store.Alive) uint32 { return max(1, a.Protocol) }

func versionsOf(agents []store.Alive) (all []string) {
	for _, a := range agents {
		if version := reason.OneLine(a.Agent); !slices.Contains(all, version) {
			all = append(all, version)
		}
	}
	slices.Sort(all)
	return all
}

// memberOf returns the etcd member on a replica's host, if it is a host of leasehold server: both
// have its name.
func memberOf(st *Shard, r store.Replica) (store.Member, bool) {
	if st.Etcd == nil {
		return store.Member{}, false
	}
	i := slices.IndexFunc(st.Etcd.All, func(m store.Member) bool { return m.Name == r.ID })
	if i < 0 {
		return store.Member{}, false
	}
	return st.Etcd.All[i], true
}

// bringsEtcd reports whether etcd's members differ because hosts of leasehold server are being
// upgraded to the release: just those that have it run its etcd.
func (r Release) bringsEtcd(st *Shard) bool {
	if r.Formats == nil || st.Etcd == nil {
		return false
	}
	will, _ := releaseOf(r.Formats.Etcd)
	hosts := 0
	for _, v := range st.Replicas {
		m, isHost := memberOf(st, v.Record)
		if !isHost {
			continue
		}
		is, _ := releaseOf(m.Version)
		if has := is.major == will.major && is.minor == will.minor; has != (v.Record.Version == r.Version) {
			return false
		}
		hosts++
	}
	return hosts == len(st.Etcd.All)
}

// mixedEtcd returns an unfinished upgrade of etcd itself, unless this upgrade brings it, and
// releases of etcd that were not tested.
func mixedEtcd(etcd *store.Members, brought bool) (all []Problem) {
	if etcd == nil {
		return nil
	}
	var minors []string
	for _, m := range etcd.All {
		is, ok := releaseOf(m.Version)
		if minor := fmt.Sprintf("%d.%d", is.major, is.minor); ok && !slices.Contains(minors, minor) {
			minors = append(minors, minor)
		}
		if m.Version != "" && !tried(m.Version) {
			all = append(all, untried(m))
		}
	}
	if slices.Sort(minors); len(minors) > 1 && !brought {
		all = append(all, Problem{
			About: "etcd", Rule: "DAY-3", Remedies: Advise("bring all members to " + minors[len(minors)-1] + " first"),
			What: "its members are of " + strings.Join(minors, " and ") + ": its own upgrade has not ended",
		})
	}
	return all
}
