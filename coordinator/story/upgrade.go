package story

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Release is the target of an upgrade.
type Release struct {
	Version string
	// Formats are what the release reads and speaks; nil if it is not this program's release: a
	// program knows only its own formats.
	Formats *Formats
}

// Upgrade lists what prevents an upgrade, and its order.
type Upgrade struct {
	To string `json:"to"`
	// Unchecked means that this program does not know what the release reads and speaks.
	Unchecked bool `json:"unchecked,omitempty"`
	// Down means that something is of a later version.
	Down bool `json:"downgrade,omitempty"`
	// Against must be resolved before the upgrade begins.
	Against []Problem `json:"against"`
	Steps   []Step    `json:"steps"`
}

// Step is one step of an upgrade.
type Step struct {
	What string `json:"what"`
	From string `json:"from,omitempty"` // versions
	How  string `json:"how"`
}

// release is a version's place among the releases.
type release struct{ major, minor, patch int }

// releaseOf reads a version: v0.9.1, or v0.9.1-4-gabc, four commits after it.
func releaseOf(version string) (r release, ok bool) {
	number, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	parts := strings.Split(number, ".")
	if len(parts) != 3 {
		return r, false
	}
	for i, into := range []*int{&r.major, &r.minor, &r.patch} {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return r, false
		}
		*into = n
	}
	return r, true
}

// apart reports whether two releases may not run side by side: neighbours differ by one minor
// number.
func (r release) apart(o release) bool {
	return r.major != o.major || max(r.minor, o.minor)-min(r.minor, o.minor) > 1
}

func (r release) before(o release) bool {
	return slices.Compare([]int{r.major, r.minor, r.patch}, []int{o.major, o.minor, o.patch}) < 0
}

// PlanUpgrade returns what prevents an upgrade of a shard to a version, and its order:
// coordinators, the leader last, then agents; for a downgrade the other way round. Hosts of
// leasehold server are upgraded together with their etcd member.
func PlanUpgrade(st *Shard, release Release, found Found, now time.Time) Upgrade {
	u := Upgrade{To: release.Version, Unchecked: release.Formats == nil, Against: []Problem{}, Steps: []Step{}}
	replicas := upgradeOrder(st)
	u.compareVersions(replicas)
	for _, v := range replicas {
		if r := v.Record; r.Version != u.To {
			u.Steps = append(u.Steps, coordinatorStep(st, r, len(replicas) > 1))
		}
	}
	if step, needed := u.agentsStep(st, replicas); needed && u.Down {
		u.Steps = append([]Step{step}, u.Steps...)
	} else if needed {
		u.Steps = append(u.Steps, step)
	}
	if release.Formats != nil {
		u.Against = append(u.Against, release.Formats.against(st, found)...)
	}
	u.Against = append(u.Against, mixedEtcd(st.Etcd, release.bringsEtcd(st))...)
	if len(u.Steps) > 0 || len(st.Replicas) == 0 {
		u.Against = append(u.Against, notNow(st, now)...)
	}
	return u
}

// leads reports whether a replica is the shard's leader.
func (st *Shard) leads(r store.Replica) bool { return st.Leads && r.ID == st.Leader.Record.Replica }

// upgradeOrder returns the shard's replicas by ID, the leader last.
func upgradeOrder(st *Shard) []store.Versioned[store.Replica] {
	replicas := slices.Clone(st.Replicas)
	slices.SortStableFunc(replicas, func(a, b store.Versioned[store.Replica]) int {
		switch {
		case st.leads(a.Record) == st.leads(b.Record):
			return strings.Compare(a.Record.ID, b.Record.ID)
		case st.leads(a.Record):
			return 1
		}
		return -1
	})
	return replicas
}

// compareVersions adds the versions of coordinators and agents that the upgrade's version does not
// go with, and sets Down.
func (u *Upgrade) compareVersions(replicas []store.Versioned[store.Replica]) {
	against := (*dayProblems)(&u.Against)
	wanted, known := releaseOf(u.To)
	if !known {
		against.addf(u.To, Advise("name a release with --to"),
			"it is no release, like v0.9.0: nothing can be said of what it goes with")
	}
	compare := func(about, version string) {
		switch is, ok := releaseOf(version); {
		case !ok:
			against.addf(about, Advise("install a release"),
				"its version %s is not a release, so its compatibility is unknown", reason.OneLine(version))
		case !known:
		case is.apart(wanted):
			against.addf(about, Advise("go by the releases between, one minor number at a time"),
				"it is of %s, and only neighbouring minor releases run side by side", version)
		default:
			u.Down = u.Down || wanted.before(is)
		}
	}
	for _, v := range replicas {
		compare(v.Record.ID, v.Record.Version)
		for _, version := range v.Record.OtherVersions {
			compare("agents of "+v.Record.ID, version)
		}
	}
}

// coordinatorStep is the upgrade of a replica. If there are several, the leader is the last.
func coordinatorStep(st *Shard, r store.Replica, several bool) Step {
	step := Step{
		What: "coordinator " + r.ID, From: r.Version,
		How: "install the package, then run this command again for the next step",
	}
	if _, isHost := memberOf(st, r); isHost {
		step.What = "host " + r.ID
		step.How = "install the package: coordinator and etcd member start again; then run this command again"
	}
	if several && st.leads(r) {
		step.How = "the leader, last: another one takes over within a second, then the same"
	}
	return step
}

// agentsStep is the upgrade of the agents that have another version; false: there are none.
func (u *Upgrade) agentsStep(st *Shard, replicas []store.Versioned[store.Replica]) (step Step, needed bool) {
	var old []string
	for _, v := range replicas {
		for _, version := range append([]string{v.Record.Version}, v.Record.OtherVersions...) {
			if version != u.To && !slices.Contains(old, version) {
				old = append(old, version)
			}
		}
	}
	if len(old) == 0 {
		return step, false
	}
	slices.Sort(old)
	step = Step{
		What: "agents", From: strings.Join(old, ", "),
		How: "install the package, a few machines at a time: workloads go on",
	}
	if !u.Down && slices.ContainsFunc(st.Groups, Known.upgradesAgents) {
		step.How = "serve the signed agent: groups with agent.version follow by themselves; elsewhere " + step.How
	}
	return step, true
}

// notNow returns what prevents an upgrade now, for any version: a condition that a restart would
// make worse.
func notNow(st *Shard, now time.Time) []Problem {
	var found dayProblems
	if len(st.Replicas) == 0 || !st.Leads {
		found.addf(st.Name, Inspect("leasehold status"), "no coordinator leads the shard")
	}
	if st.Shard.Record.Hold != nil {
		found.addf(st.Name, Run("leasehold release"), "the shard is on hold")
	}
	for _, r := range st.Replicas {
		if w := r.Record.Waits; w != nil {
			found.addf(r.Record.ID, Inspect("leasehold status"), "it decides nothing: %s", reason.OneLine(w.Why))
		}
	}
	for _, r := range down(st, now) {
		found.addf(r.ID, Advise("start it first, its log says why it ended; one that is gone for good is forgotten "+
			"after a day"), "this coordinator is down: it was seen %s ago", reason.Age(now, r.At))
	}
	if st.Etcd != nil {
		for _, m := range st.Etcd.All {
			switch {
			case m.Down != "":
				found.addf(m.Title(), Advise("start etcd there first"),
					"it does not answer: the restart of another member could lose the quorum")
			case m.Learner:
				found.addf(m.Title(), Advise("wait until it is promoted"), "it is a learner, and counts for no quorum yet")
			}
		}
	}
	if at := st.Backup.Record.At; at.IsZero() || now.Sub(at) >= 24*time.Hour {
		found.addf(st.Name, Run("leasehold backup FILE"), "there is no backup of the last day")
	}
	return found
}
