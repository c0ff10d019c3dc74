package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Shard is the shard itself.
type Shard struct {
	Schema  int       `json:"schema"`
	ID      string    `json:"id"` // random; every machine is tagged with it
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Hold    *Hold     `json:"hold,omitempty"`
	// Generation grows whenever a replica finds that etcd's data is older, or of another cluster,
	// than what it knows (SAFE-12). A replica that knows of a lower one learns from it that the
	// exchange was noticed and the shard held.
	Generation int           `json:"generation,omitempty"`
	Settings   ShardSettings `json:"settings"`
	// Reviewed is what an operator knew when they released a hold that was ours.
	Reviewed *Reviewed `json:"reviewed,omitempty"`
	// Evacuated are zones that are to be empty: DRAIN-3.
	Evacuated map[string]Evacuation `json:"evacuated,omitempty"`
	// Freeze is a time in which no planned work of any group begins (ROLL-6).
	Freeze *Freeze `json:"freeze,omitempty"`
	// Replaces is the ID of an empty shard in whose place this one was restored: replicas that know
	// that ID serve this shard (SAFE-15).
	Replaces string `json:"replaces,omitempty"`
}

// Evacuation is an operator's order to empty a zone.
type Evacuation struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Hold stops all creation and destruction in a shard (SAFE-12).
type Hold struct {
	By  string    `json:"by"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
	// Extras is how many machines without a record there were, if that was why.
	Extras int `json:"extras,omitempty"`
	// Damage is how many records were lost or unreadable, if that was why (SAFE-15).
	Damage int `json:"damage,omitempty"`
	// Seen is the revision of the cache in which they were counted: a release acknowledges what
	// was seen up to then.
	Seen Revision `json:"seen,omitempty"`
}

// Release ends the hold. The operator has seen the reason for it.
func (s *Shard) Release(at time.Time) {
	if h := s.Hold; h != nil && (h.Extras > 0 || h.Damage > 0) {
		r := Reviewed{Extras: h.Extras, Damage: h.Damage, Seen: h.Seen, At: at}
		if before := s.Reviewed; before != nil && h.Damage == 0 {
			r.Damage, r.Seen = before.Damage, before.Seen
		}
		if before := s.Reviewed; before != nil && h.Extras == 0 {
			r.Extras = before.Extras
		}
		s.Reviewed = &r
	}
	s.Hold = nil
}

// Reviewed records how many machines without a record an operator had seen when releasing the hold.
// Only more of them are a reason for another hold, and orphan_grace restarts for those seen.
type Reviewed struct {
	Extras int       `json:"extras"`
	At     time.Time `json:"at"`
	// Damage is how many lost or unreadable records they knew of: those that were seen up to the
	// revision Seen. The slots of lost ones may be filled again (SAFE-15).
	Damage int      `json:"damage,omitempty"`
	Seen   Revision `json:"seen,omitempty"`
}

// ShardSettings are what holds for all groups of a shard. The table Settings has their ranges.
type ShardSettings struct {
	ProviderPoll Duration `json:"provider_poll,omitzero"` // DET-12
	CreateRate   float64  `json:"create_rate,omitzero"`   // REC-3, machines per second
	CreateBurst  int      `json:"create_burst,omitzero"`
	OrphanGrace  Duration `json:"orphan_grace,omitzero"`  // REC-8
	ReconnectMin Duration `json:"reconnect_min,omitzero"` // DET-14: the agents' back-off
	ReconnectMax Duration `json:"reconnect_max,omitzero"`
	EventsKept   Duration `json:"events_kept,omitzero"`
	DaysKept     Duration `json:"days_kept,omitzero"`     // DAY-5
	EligibleAge  Duration `json:"eligible_age,omitempty"` // EXP-1, where a group does not say; 0: off
	ForcedAge    Duration `json:"forced_age,omitempty"`
	// SEC-3: how long an agent's certificate lasts; it is renewed after a third of that
	Certificate Duration `json:"certificate,omitzero"`
	// CompactAfter is how old etcd's history becomes before the leader has it compacted; 0: never,
	// nil: the default.
	CompactAfter *Duration `json:"compact_after,omitempty"`
	// CAP-1: the most instances that may exist or be intended; 0 or none: no limit
	LimitInstances  int    `json:"limit_instances,omitzero"`
	LimitByProvider Limits `json:"limit_by_provider,omitzero"`
	LimitByLabel    Limits `json:"limit_by_label,omitzero"` // by label and value of the group: team=shop
	// how many instances may be down at once in all groups that name the same budget_group (REC-18)
	BudgetGroups Limits `json:"budget_groups,omitzero"`

	// Refused is what etcd holds and cannot be used (REC-20). Each of these settings has another
	// value here: the last good one, if it is known, else its default.
	Refused []FieldError `json:"-"`
	// raw are values that are written back as they were stored: refused values, and values of
	// settings that this version does not know.
	raw map[string]json.RawMessage
}

// DefaultShardSettings returns the defaults of docs/rules.md.
func DefaultShardSettings() ShardSettings {
	hour := Duration(time.Hour)
	return ShardSettings{
		ProviderPoll: Duration(5 * time.Second),
		CreateRate:   10,
		CreateBurst:  10,
		OrphanGrace:  Duration(10 * time.Minute),
		ReconnectMin: Duration(time.Second),
		ReconnectMax: Duration(30 * time.Second),
		EventsKept:   Duration(7 * 24 * time.Hour),
		DaysKept:     Duration(90 * 24 * time.Hour),
		Certificate:  Duration(30 * 24 * time.Hour),
		CompactAfter: &hour,
	}
}

// WithDefaults fills in the defaults of settings that are not set. It validates nothing.
func (s ShardSettings) WithDefaults() ShardSettings {
	usual := DefaultShardSettings()
	for _, one := range Settings {
		if off := one.value(ShardSettings{}); one.value(s) == off && one.value(usual) != off {
			one.copy(&s, usual)
		}
	}
	if s.CompactAfter == nil {
		s.CompactAfter = usual.CompactAfter
	}
	return s
}

// Served is the value of the key served: when a leader last worked. From it the next leader
// computes for how long there was none: timers of registration do not run in that time (SAFE-13).
type Served struct {
	Schema  int       `json:"schema"`
	At      time.Time `json:"at"`
	Replica string    `json:"replica"`
	// Past is no later than At, and was past then even if that leader's clock was ahead. Zero: not
	// known.
	Past time.Time `json:"past,omitzero"`
	// Claimed was past then if a leader's clock was right at the beginning of Even, the time in
	// which leaders have worked since.
	Claimed time.Time `json:"claimed,omitzero"`
	Even    Duration  `json:"even,omitempty"`
	// Cluster and Revision are etcd's at that time: another cluster, or an older revision, is
	// another past (SAFE-12).
	Cluster  string   `json:"cluster,omitempty"`
	Revision Revision `json:"revision,omitempty"`
	// Gaps are the times in which no leader was at work, oldest first: the newest few of the last
	// day.
	Gaps []Gap `json:"gaps,omitempty"`
	// History are revisions with their least age, oldest first.
	History []Mark `json:"history,omitempty"`
	// Journal are such revisions too, further apart and from longer ago: what entries of the
	// journal are overdue.
	Journal []Mark `json:"journal,omitempty"`
	// Replicas are those that a leader saw in the last day, and that no other took the place of.
	Replicas []SeenReplica `json:"replicas,omitempty"`
	// Took is how long the quickest of the last notes took to be written: a slow disk of etcd.
	Took Duration `json:"took,omitempty"`
	// Uncompacted is why etcd's history is not compacted though it is old enough; "" if it is.
	Uncompacted string `json:"uncompacted,omitempty"`
	// KeptForRepair: it is not compacted because a record is damaged, which etcd's history can
	// restore.
	KeptForRepair bool `json:"kept_for_repair,omitempty"`
	// Silent are the providers and load balancers whose last List failed, and why.
	Silent []Silent `json:"silent,omitempty"`
	// Since is from when on the journal says what happened: before, etcd was another or had another
	// past, or the shard was still on hold for that. Zero: since the shard was created.
	Since time.Time `json:"since,omitzero"`
}

// KnownPast returns the latest time that is known to have been past when this was written. A note
// of an older release, without Past, is taken at its word.
func (s Served) KnownPast() time.Time {
	if s.Past.IsZero() || s.At.Before(s.Past) {
		return s.At
	}
	return s.Past
}

// Begins returns from when on the journal of a shard says what happened.
func (s Served) Begins(shard Shard) time.Time {
	if s.Since.After(shard.Created) {
		return s.Since
	}
	return shard.Created
}

// Silent is a provider or a load balancer that does not say what it has.
type Silent struct {
	Provider string `json:"provider,omitempty"`
	Balancer string `json:"balancer,omitempty"`
	Why      string `json:"why"`
	Refused  bool   `json:"refused,omitempty"` // it refuses the coordinator's credentials
}

// SeenReplica is a replica that was at work.
type SeenReplica struct {
	ID      string    `json:"id"`
	Address string    `json:"address,omitempty"`
	At      time.Time `json:"at"` // when it was seen last
}

// SeenFor is how long a replica that is gone is remembered.
const SeenFor = 24 * time.Hour

// SeeReplicas returns the replicas seen so far: present ones and earlier ones. A replica without a
// configured name has a new one after each start: it replaces an earlier one at the same address.
func SeeReplicas(before []SeenReplica, here []Replica, now time.Time) []SeenReplica {
	var seen []SeenReplica
	present, taken := map[string]bool{}, map[string]bool{}
	for _, r := range here {
		seen = append(seen, SeenReplica{ID: r.ID, Address: r.Address, At: now})
		present[r.ID], taken[r.Address] = true, r.Address != ""
	}
	for _, s := range before {
		if !present[s.ID] && !taken[s.Address] && now.Sub(s.At) < SeenFor {
			seen = append(seen, s)
		}
	}
	slices.SortFunc(seen, func(a, b SeenReplica) int { return strings.Compare(a.ID, b.ID) })
	return seen
}

// Mark is a revision and how old it is at least, counted by leaders' monotonic clocks while they
// were at work: no wall clock makes it older than it is.
type Mark struct {
	Revision Revision `json:"revision"`
	Age      Duration `json:"age"`
}

// Exchanged returns why the store is another one than the record was written to, or "". Fences and
// revisions of one store mean nothing in another.
func (s Served) Exchanged(v Vitals) string {
	switch cluster := v.ClusterName(); {
	case s.Cluster != "" && s.Cluster != cluster:
		return fmt.Sprintf("etcd is another cluster (%s) than when a leader was last at work (%s)", cluster, s.Cluster)
	case s.Revision > v.Revision:
		return fmt.Sprintf("etcd's revision went backwards: it is %d, and was %d when a leader was last at work",
			v.Revision, s.Revision)
	default:
		return ""
	}
}

// ClusterName returns the cluster's ID as etcd prints it.
func (v Vitals) ClusterName() string { return fmt.Sprintf("%x", v.Cluster) }

// Gap is a time in which no leader was at work.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Within returns how much of the gap lies after a time.
func (g Gap) Within(since time.Time) time.Duration {
	if g.From.After(since) {
		since = g.From
	}
	return max(0, g.To.Sub(since))
}

// Leader is the value of a replica's key in the election.
type Leader struct {
	Schema  int       `json:"schema"`
	Replica string    `json:"replica"`
	Since   time.Time `json:"since"` // when it began to lead or, until then, to stand for election
}

// ProviderCapabilities are what a provider can do, as the replica that has it says.
type ProviderCapabilities struct {
	Zones        []string       `json:"zones"`
	Consistency  Duration       `json:"consistency"`
	CallTimeout  Duration       `json:"call_timeout"`
	Boots        bool           `json:"boots,omitempty"`
	Crashes      bool           `json:"crashes,omitempty"`
	Remembers    bool           `json:"remembers,omitempty"`
	Console      bool           `json:"console,omitempty"`
	Site         string         `json:"site,omitempty"` // where its machines are, if only this replica's neighbours see them
	MaxBootstrap int            `json:"max_bootstrap,omitempty"`
	Settings     map[string]any `json:"settings,omitempty"` // the JSON Schema of a template's settings
}

// Replica is a coordinator at work, on its session's lease.
type Replica struct {
	Schema  int    `json:"schema"`
	ID      string `json:"id"`
	Address string `json:"address"` // where agents reach it
	// Page is where browsers reach its page, like https://coord-a:7421; "": it has none.
	Page    string `json:"page,omitempty"`
	Version string `json:"version"`
	// the newest version that it speaks with agents; 0: it is of release 0.1, and speaks 1
	Protocol  uint32   `json:"protocol,omitempty"`
	Providers []string `json:"providers"` // those it can use
	Balancers []string `json:"balancers,omitempty"`
	Sources   []string `json:"sources,omitempty"` // of numbers from outside
	// the authorities for workloads' certificates that it has; nil: it is older, and does not say
	Authorities map[string]AuthorityLimits `json:"authorities,omitzero"`
	// how they are now
	AuthorityStates map[string]AuthorityState `json:"authority_states,omitempty"`
	// what each of the providers can do; a replica of release 0.1 does not say
	Capabilities map[string]ProviderCapabilities `json:"capabilities,omitempty"`
	Since        time.Time                       `json:"since"`
	// where machines fetch the agent, by HTTPS; empty: not here
	Downloads string `json:"downloads,omitempty"`
	// hashes (SHA-256) of the agents that it serves there, by architecture
	Agents map[string]string `json:"agents,omitempty"`
	// and which of them are signed
	AgentReleases []AgentRelease `json:"agent_releases,omitempty"`
	SecretKeys    []string       `json:"secret_keys,omitempty"` // fingerprints of the keys with which it can read secrets
	// fingerprint of the authority that it issues agents' certificates with
	Issuer string `json:"issuer,omitempty"`
	// the authority's certificate, and with it all that it has issued
	IssuerEnds time.Time `json:"issuer_ends,omitzero"`
	Trust      string    `json:"trust,omitempty"`    // digest of the authorities it trusts, as agents report it
	Believes   []string  `json:"believes,omitempty"` // fingerprints of the authorities
	CA         string    `json:"ca,omitempty"`       // PEM of their certificates, for machines that are set up by hand
	Waits      *Waits    `json:"waits,omitempty"`    // nil: it serves the shard
	// agents without a record that it only counts, as there are too many to note below strays/
	Unnoted int `json:"unnoted,omitempty"`
	// how far its clock is ahead of the leader's, if that is a second or more
	ClockOff Duration `json:"clock_off,omitempty"`
	// its agents that are of another version than itself, and some of those versions
	OtherAgents   int      `json:"other_agents,omitempty"`
	OtherVersions []string `json:"other_versions,omitempty"`
	// how many it saw: a growing number is a disturbance to the leader too
	Disturbances int          `json:"disturbances"`
	Last         *Disturbance `json:"last_disturbance,omitempty"`
	// the parts of its host's server that ended by themselves, or the whole server
	Ended []PartEnds `json:"ended,omitempty"`
	// what it refused lately to clients that name an instance: the last refusal for each reason
	Refused []Refused `json:"refused,omitempty"`
}

// Refused is a request that a replica refused.
type Refused struct {
	Rule     string    `json:"rule"`
	What     string    `json:"what"`
	Why      string    `json:"why"`
	Detail   string    `json:"detail,omitempty"` // may come from the client
	Instance string    `json:"instance"`         // as the client says, unless Proved
	Proved   bool      `json:"proved,omitempty"` // by its certificate
	From     string    `json:"from"`
	At       time.Time `json:"at"` // to the minute: one that goes on changes the record once a minute
}

// RefusedFor is how long a refusal is shown. Agents that are refused come again sooner.
const RefusedFor = 5 * time.Minute

// MaxRefused bounds the reasons of which a replica shows the last refusal.
const MaxRefused = 5

// PartEnds says how often a part of leasehold server ended by itself and was started again, with
// less than a day from one end to the next.
type PartEnds struct {
	Part  string    `json:"part"` // member, replica, or server for both
	Times int       `json:"times"`
	Since time.Time `json:"since"` // of the first end
	Last  time.Time `json:"last"`  // and of the last one
	Why   string    `json:"why"`   // it ended then
	Next  string    `json:"next,omitempty"`
}

// EndedFor is how long ends of a part are remembered.
const EndedFor = 24 * time.Hour

// EndedAgain adds an end of a part to the ends so far.
func EndedAgain(before []PartEnds, end PartEnds) []PartEnds {
	end.Times, end.Since = 1, end.Last
	after := []PartEnds{}
	for _, e := range before {
		switch {
		case end.Last.Sub(e.Last) >= EndedFor: // forgotten
		case e.Last.Sub(end.Last) > time.Minute: // by a clock that was set back since
		case e.Part == end.Part:
			end.Times, end.Since = e.Times+1, e.Since
		default:
			after = append(after, e)
		}
	}
	after = append(after, end)
	slices.SortFunc(after, func(a, b PartEnds) int { return strings.Compare(a.Part, b.Part) })
	return after
}

// Waits means that a replica decides nothing, because etcd does not hold the shard that the replica
// knows (SAFE-15).
type Waits struct {
	Why     string   `json:"why"`
	ShardID string   `json:"shard_id,omitempty"` // of the shard that it knows; "": none
	Cluster string   `json:"cluster,omitempty"`  // in which it was
	Highest Revision `json:"highest,omitempty"`  // and the highest revision that was seen there
	// Restore: the shard that it waits for comes from a backup: none may be created.
	Restore bool `json:"restore,omitempty"`
}

// Disturbance is a time in which etcd, or the way to it, was not well (SAFE-1).
type Disturbance struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Own  bool      `json:"own,omitempty"` // the replica itself was paused: etcd is not the cause
}

// DisturbedRecordBack is what a replica says when leases were not renewed because their instances
// had no record for a while. It is no fault of etcd's.
const DisturbedRecordBack = "the record of an instance was lost, and is back"
