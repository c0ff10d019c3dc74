package foresee

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// sessionTTL is the default of replicas.
const sessionTTL = store.DefaultSessionTTL

// World is a group with its records, in virtual time.
type World struct {
	keys     store.Keys
	group    string
	now      time.Time
	revision store.Revision
	kvs      map[string]store.KV
	content  *cache.Content
	evidence *evidence.Evidence
	settings store.ShardSettings // unchanged: this leader is paced separately
	pace     time.Duration
	written  int // records written since the start
	machines map[string]*machine
	suspect  func(provider string) // lists the provider's machines
	others   []plan.Limit          // what other groups use of the limits of the shard
	down     map[string]plan.Down  // what is down in groups that share a budget with it
}

// New creates the world of a group. The listing holds the keys of the group and of the shard in
// etcd, all at one revision; edits are added as if an operator had just written them.
func New(keys store.Keys, group string, listing store.Listing, edits []store.Write, now time.Time) *World {
	w := &World{
		keys: keys, group: group, now: now, revision: listing.Revision, kvs: map[string]store.KV{},
		machines: map[string]*machine{},
	}
	for _, kv := range listing.KVs {
		w.kvs[kv.Key] = kv
	}
	if _, there := w.kvs[keys.Shard()]; !there { // the first coordinator writes it
		first := store.Shard{Schema: store.Schema, ID: "imagined", Settings: store.DefaultShardSettings()}
		edits = append([]store.Write{store.Put(keys.Shard(), store.Encode(first))}, edits...)
	}
	if len(edits) > 0 {
		w.revision++
	}
	for _, e := range edits {
		w.set(e)
	}
	w.content = cache.FromListing(keys, w.listing())
	w.settings = w.content.Shard.Record.Settings
	w.suspect = func(string) {}
	w.evidence = evidence.New(evidence.Config{
		Keys: keys, Capabilities: w.capabilities(), SessionTTL: sessionTTL, Now: func() time.Time { return w.now },
		Jitter: jitter,
		Wake:   func() {}, Suspect: func(name string) { w.suspect(name) }, Validate: w.validate,
	})
	w.evidence.Listed(w.content)
	return w
}

// jitter is constant, so that a prediction is reproducible.
func jitter(most time.Duration) time.Duration { return most / 2 }

// Beside adds what all groups use of the limits of the shard, this one included (CAP-1).
func (w *World) Beside(all []plan.Limit) {
	own := evidence.Limits(w.content)
	for i := range all {
		for _, o := range own {
			if o.Name == all[i].Name {
				all[i].Used, all[i].Vacant = all[i].Used-o.Used, all[i].Vacant-o.Vacant
			}
		}
	}
	w.others = all
}

// Sharing adds what is down in other groups that share a budget with it (REC-18).
func (w *World) Sharing(down map[string]plan.Down) { w.down = down }

// Plan returns what the planner decides on the present records.
func (w *World) Plan() plan.Plan {
	s := w.evidence.Snapshot(w.content, []string{w.group})
	return w.plan(&s)
}

// plan makes a plan of a snapshot.
func (w *World) plan(s *plan.Snapshot) plan.Plan {
	s.GraceEnd, s.GraceWhy, s.DownElsewhere = time.Time{}, "", w.down
	for i := range s.Limits {
		for _, o := range w.others {
			if o.Name == s.Limits[i].Name {
				s.Limits[i].Used, s.Limits[i].Vacant = s.Limits[i].Used+o.Used, s.Limits[i].Vacant+o.Vacant
			}
		}
	}
	for i := range s.Groups { // "" if no group is named
		g := &s.Groups[i]
		if !waits(g.Status.Record) {
			g.Unlisted = "" // the leader has listed the machines, unless its status says that it waits for a list
		}
		g.Spec.Group.LoadBalancers = nil // their answers are unknown, and assumed to be immediate
		for j := range g.Instances {
			g.Instances[j].Record.Traffic, g.Instances[j].MemberCalls = nil, nil
		}
	}
	return plan.Compute(*s, w.now)
}

// waits reports whether the leader does nothing in the group because records may be lost (SAFE-15).
func waits(s store.Status) bool {
	return slices.ContainsFunc(s.Blocked, func(b store.Blocked) bool {
		return reason.OfGroup(&b) && reason.TopicOf(&b) == reason.TopicDamage
	})
}

// Spec returns the group's spec in force, with the edits; false if it has no usable spec.
func (w *World) Spec() (store.Group, bool) {
	if w.group == "" {
		return store.Group{}, false
	}
	s := w.evidence.Snapshot(w.content, []string{w.group}).Groups[0]
	switch {
	case s.Spec.Problem == "" && max(s.Spec.Modified, s.Spec.StaticModified) > 0:
		return s.Spec.Group, true
	case s.Status.Record.Accepted != nil:
		return *s.Status.Record.Accepted, true
	default:
		return store.Group{}, false
	}
}

// Refused returns why the group's spec cannot be in force; "" if it can, as far as etcd shows.
func (w *World) Refused() string {
	spec := w.evidence.Snapshot(w.content, []string{w.group}).Groups[0].Spec
	if max(spec.Modified, spec.StaticModified) == 0 {
		return ""
	}
	return spec.Problem
}

// validate returns the coordinators' objections to a spec. Only they ask the provider: known here
// are the leader's verdict on this very spec, and which providers the coordinators have.
func (w *World) validate(name string, g store.Group) string {
	revision := max(w.content.Groups[name].Modified, w.content.Static[name].Modified)
	if bad := w.content.Status[name].Record.Invalid; bad != nil && bad.Revision == revision {
		return bad.Why
	}
	return strings.Join(HadBy(slices.Collect(maps.Values(w.content.Replicas))).Lacks(&g), "; ")
}

// Foreign returns what the authorities of running coordinators will not certify for a group.
func (w *World) Foreign(g *store.Group) []string {
	return HadBy(slices.Collect(maps.Values(w.content.Replicas))).Foreign(g)
}

// CreateRate returns how many machines the shard creates per second.
func (w *World) CreateRate() float64 { return w.settings.CreateRate }

// set makes one write at the present revision.
func (w *World) set(e store.Write) store.Event {
	old, there := w.kvs[e.Key]
	kv := store.KV{Key: e.Key, Value: e.Value, Created: old.Created, Modified: w.revision}
	if !there {
		kv.Created = w.revision
	}
	if e.Delete {
		delete(w.kvs, e.Key)
	} else {
		w.kvs[e.Key] = kv
	}
	return store.Event{KV: kv, Deleted: e.Delete}
}

// write makes several writes as one transaction.
func (w *World) write(writes ...store.Write) {
	w.revision++
	w.written += len(writes)
	var changes []cache.Change
	for _, e := range writes {
		if change, ok := w.content.Apply(w.keys, w.set(e)); ok {
			changes = append(changes, change)
		}
	}
	w.content.Revision = w.revision
	w.evidence.Changed(w.content, changes)
}

func (w *World) listing() store.Listing {
	l := store.Listing{Revision: w.revision}
	for _, kv := range w.kvs {
		l.KVs = append(l.KVs, kv)
	}
	return l
}

// capabilities returns the providers' capabilities, as far as etcd shows them. Their zones are not
// in etcd: the zones in which the group has instances take their place, or one without a name.
func (w *World) capabilities() map[string]provider.Capabilities {
	all := map[string]provider.Capabilities{}
	content := w.content
	for _, in := range content.Instances {
		c := all[in.Record.Spec.Provider]
		c.Zones = with(c.Zones, in.Record.Zone)
		if site := in.Record.Site; c.Site == "" || site != "" && site < c.Site { // the same one in each prediction
			c.Site = site // its Lists show these machines: without it no removal would be seen
		}
		all[in.Record.Spec.Provider] = c
	}
	wanted, err := store.ReadInForce(w.value(w.keys.Static(w.group)), w.value(w.keys.Group(w.group)))
	if err == nil && len(all[wanted.Provider].Zones) == 0 {
		all[wanted.Provider] = provider.Capabilities{Zones: []string{""}}
	}
	if st := content.Status[w.group].Record.Accepted; st != nil && len(all[st.Provider].Zones) == 0 {
		all[st.Provider] = provider.Capabilities{Zones: []string{""}}
	}
	return all
}

func (w *World) value(key string) []byte {
	if kv, there := w.kvs[key]; there {
		return kv.Value
	}
	return nil
}

// with returns a sorted list with one more element, unless it is in it already.
func with(list []string, one string) []string {
	for i, s := range list {
		switch {
		case s == one:
			return list
		case s > one:
			return append(list[:i:i], append([]string{one}, list[i:]...)...)
		}
	}
	return append(list, one)
}
