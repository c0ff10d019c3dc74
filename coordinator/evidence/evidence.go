package evidence

import (
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// Config is what evidence needs from outside. All of it must be set.
type Config struct {
	Keys         store.Keys
	Capabilities map[string]provider.Capabilities // of each configured provider
	Balancers    map[string]balancer.Capabilities // of each load balancer
	SessionTTL   time.Duration                    // see plan.Snapshot
	Seed         uint64                           // see plan.Snapshot

	Now func() time.Time
	// Jitter is a random time from 0 to the given one.
	Jitter func(most time.Duration) time.Duration

	// Wake is called when there may be something to plan, Suspect when a provider's machines should
	// be listed now (DET-3). Neither may block.
	Wake    func()
	Suspect func(provider string)
	// Validate returns why a group's provider refuses its spec, or "". It is called once for each
	// revision of a spec, does no I/O, and must not call back.
	Validate func(group string, spec store.Group) string
}

// Evidence is what a term has seen since it began.
type Evidence struct {
	cfg   Config
	zones map[string][]string // of each provider
	began time.Time

	mu        sync.Mutex
	clock     ownClock
	known     bool        // whether the records were seen at all
	gaps      []store.Gap // without a leader, before this term (SAFE-13)
	graceEnd  time.Time
	graceWhy  string
	held      bool // the shard is on hold
	instances map[string]*observed
	rooms     map[string]room              // of snapshots, by group
	slotNews  map[string]int               // counts changes of the slots of each group
	roomed    int                          // how many instances, or slots, they have room for
	timers    map[owner]map[string]running // of records, by name
	extras    map[string]plan.Extra
	tagged    map[string]map[string]bool        // the extras by the group that their tag names
	foreign   map[string]map[string]store.Extra // by provider and instance: see listForeign
	// positions of machines in the list that is being recorded: of two with one name, the last
	places map[string]int
	loads  map[string]*loads // by group
	listed map[string]bool   // providers whose machines were listed in this term
	// groups that wait for such a list, with how many instances they have: see waitsFor
	unlisted  map[string]int
	full      map[plan.Market]map[string]time.Time // see plan.Snapshot
	refusals  map[plan.Refused]refusal
	outages   map[string]outages  // by provider
	rolling   map[string]bool     // groups with a roll
	counts    map[string]int      // disturbances of other replicas
	agents    []plan.AgentVersion // as they were seen last
	noneAway  bool                // as last seen
	providers plan.Providers
	unnoted   time.Time // when a replica last had agents without a record that it could not note
	traffic   traffic
	readings  map[string]map[string]query.Reading // by group and source
	crowded   map[string]bool                     // replicas that have such agents
	specs     map[string]plan.Spec                // as read last, by group
	tallies   map[string]plan.Tally               // of groups with anything to count
	tallied   plan.Tally                          // their sum

	damage     map[string][]store.Damaged // by group, in order of key: see seeDamage
	recheck    map[string]bool            // groups whose damage may have changed
	recheckAll bool
	noticed    map[string]store.Revision // of the cache that showed the damage of a key first
	recalled   map[string]recall         // what unreadable keys said before, by key, from etcd's history
	spoiled    map[string]time.Time      // since when an alive key is unreadable
	wasStale   store.Cause               // plan.Snapshot.Stale of the last snapshot

	dirty   map[string]bool           // groups to plan; "" stands for the shard itself
	onlyDue map[string]bool           // groups of the last plan in which nothing had happened
	pass    map[string]int            // groups that a full pass has not come to yet, with how many instances they have
	course  []string                  // the order in which it comes to them
	yielded bool                      // the pass was skipped at the last call
	sharing sharing                   // of budgets
	due     agenda                    // when to plan groups unasked
	written map[string]store.Revision // our last write to them
}

// New makes the evidence of a term that has seen nothing yet.
func New(cfg Config) *Evidence {
	e := &Evidence{
		cfg: cfg, zones: map[string][]string{}, began: cfg.Now(), instances: map[string]*observed{},
		places: map[string]int{}, loads: map[string]*loads{}, rooms: map[string]room{}, slotNews: map[string]int{},
		timers: map[owner]map[string]running{},
		extras: map[string]plan.Extra{}, tagged: map[string]map[string]bool{}, listed: map[string]bool{},
		foreign:  map[string]map[string]store.Extra{},
		unlisted: map[string]int{}, full: map[plan.Market]map[string]time.Time{},
		refusals: map[plan.Refused]refusal{}, counts: map[string]int{},
		outages: map[string]outages{}, rolling: map[string]bool{},
		crowded: map[string]bool{}, traffic: newTraffic(cfg.Balancers),
		readings: map[string]map[string]query.Reading{},
		specs:    map[string]plan.Spec{}, tallies: map[string]plan.Tally{},
		damage: map[string][]store.Damaged{}, recheck: map[string]bool{}, recheckAll: true,
		noticed: map[string]store.Revision{}, recalled: map[string]recall{}, spoiled: map[string]time.Time{},
		dirty: map[string]bool{"": true}, onlyDue: map[string]bool{}, pass: map[string]int{}, due: newAgenda(),
		written: map[string]store.Revision{}, sharing: newSharing(),
	}
	for name, c := range cfg.Capabilities {
		e.zones[name] = c.Zones
	}
	return e
}

// observed is what was seen of one instance.
type observed struct {
	group        string
	provider     string
	kind         machineKind
	phase        store.Phase
	phaseStart   time.Time
	restart      string // token of the restart in the record
	born         time.Time
	healthySince time.Time
	healthyBoot  string
	report       store.Revision // of its report
	reportSeen   time.Time
	stream       store.StreamState
	streamSince  time.Time
	hasAlive     bool
	aliveGone    time.Time
	lastState    store.StreamState
	silentSince  time.Time
	site         string // where its machine is
	sighting     plan.Sighting
	place        int       // of its machine in the last List
	copiesFrom   time.Time // Lists begun before may show machines that were removed (PROV-4)
	counted      time.Time // when the last List was begun that counted in sighting.Times
	calls        plan.Calls
	failures     int           // of calls in a row
	uncertain    bool          // an abandoned Create may still take effect
	returns      time.Duration // the time that its agent may need to return; 0: it has none
	returned     time.Duration // the previous value of returns, as long as it counts
	returnsUntil time.Time

	// version grows whenever the instance's records or what was seen of it change: what a snapshot
	// showed of this version, the next one shows unchanged. Two changes that come often, and change
	// nothing else, are counted apart: new numbers in its report, and Lists.
	version, numbers, lists uint64
}

// graceSlack is how long the grace of a first disturbance also covers further ones.
const graceSlack = time.Second

// Disturb begins a grace, or lengthens it.
func (e *Evidence) Disturb(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disturb(why)
}

func (e *Evidence) disturb(why string) {
	now := e.cfg.Now()
	longest := e.longestReturn(now)
	if longest == 0 {
		return // there is no agent that could have to return
	}
	if now.Add(longest).Before(e.graceEnd) {
		return // the end that was set a moment ago is enough: disturbances come in groups
	}
	e.graceEnd, e.graceWhy = now.Add(longest+graceSlack), why
	e.markInstances()
}
