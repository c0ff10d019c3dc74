package gateway

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// wanted is the wanted state to send to an agent. Only the newest counts, so no version waits in a
// queue or is dropped.
type wanted struct {
	mu     sync.Mutex
	record store.Revision // revision of the instance's record that it comes from
	group  string
	now    *protocol.Wanted
	sent   *protocol.Wanted // without the values of secrets, and without the claim
	claim  claimed
	files  fileWants
	offer  *store.AgentUpgrade // the record's; it is in now while a replica serves it
	drill  *store.Instance     // revision of the record that now's drill is from; nil: no drill
}

// want updates the wanted state from an instance's record. An older record than the known one is
// ignored: the cache may be behind what the session has read. A drill that may not begin now is
// left out.
func (s *session) want(i store.Versioned[store.Instance], noDrill bool) {
	w := &s.wanted
	w.mu.Lock()
	defer w.mu.Unlock()
	if i.Modified <= w.record {
		return
	}
	w.record, w.group = i.Modified, i.Record.Group
	s.wantFiles(i.Record)
	now := wantedBy(i.Record)
	w.drill = nil
	if now.Drill = drillFor(i.Record, s.epoch, time.Now()); noDrill {
		now.Drill = nil
	}
	if now.Drill != nil {
		rec := i.Record
		w.drill = &rec
	}
	w.offer = i.Record.Upgrade
	now.Upgrade = s.g.upgradeFor(w.offer)
	news := w.claim.take(s.g.cfg.ShardID, i.Record) && s.g.deps.Authority != nil
	if proto.Equal(now, w.sent) {
		w.now = w.sent
	} else {
		w.now, news = now, true
	}
	if news {
		s.notify(topicWanted)
	}
}

// releasesChanged sends the agent its offer again: the record of an offer may arrive before the
// records of the replicas that serve it.
func (s *session) releasesChanged() {
	w := &s.wanted
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.offer == nil || w.now == nil {
		return
	}
	offered := s.g.upgradeFor(w.offer)
	if proto.Equal(offered, w.now.GetUpgrade()) {
		return
	}
	w.now = proto.CloneOf(w.now) // it may be in use by a send
	w.now.Upgrade = offered
	s.notify(topicWanted)
}

// forgetRevision lets a record take effect that has come back after it was missing. In an etcd that
// lost its data, its revision is lower than the lost one's, so it would otherwise be ignored as
// old.
func (s *session) forgetRevision(back store.Revision) {
	w := &s.wanted
	w.mu.Lock()
	defer w.mu.Unlock()
	if back < w.record {
		w.record = 0
	}
}

// sendWanted sends the wanted state, unless it was sent before. s.mu must be held.
func (s *session) sendWanted() error {
	w := &s.wanted
	s.endLateDrill()
	w.mu.Lock()
	group, now, due, offer := w.group, w.now, s.claimDue(), w.offer
	w.mu.Unlock()
	if now == nil {
		return nil
	}
	full, bare := s.filled(group, now)
	if due == nil && proto.Equal(bare, w.sent) {
		return nil
	}
	full = withTimeLeft(full, offer, time.Now())
	if due != nil {
		full = s.withClaim(full, due)
	}
	w.mu.Lock()
	w.sent = bare
	w.mu.Unlock()
	return s.stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Wanted{Wanted: full}})
}

// endLateDrill removes a drill from the message if it may not begin any longer: the message may
// have waited, and a hold or a pause may have begun since (DAY-6).
func (s *session) endLateDrill() {
	w := &s.wanted
	w.mu.Lock()
	rec, now := w.drill, w.now
	w.mu.Unlock()
	if rec == nil || now.GetDrill() == nil {
		return
	}
	begins := drillFor(*rec, s.epoch, time.Now()) != nil
	if begins && s.g.deps.Cache.View(func(c *cache.Content) { begins = !s.g.drillWaits(c, *rec) }) && begins {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == now { // otherwise a newer record has arrived
		w.now = proto.CloneOf(now)
		w.now.Drill = nil
	}
}

// drillWaits reports whether no drill of an instance may begin now, by the cache: the shard is on
// hold, or its group is paused or unknown (DAY-6, SAFE-12).
func (g *Gateway) drillWaits(c *cache.Content, rec store.Instance) bool {
	if !rec.Drilled(time.Now()) {
		return false
	}
	group, err := store.ReadInForce(c.Static[rec.Group].Value, c.Groups[rec.Group].Value)
	return c.Shard.Record.Hold != nil || err != nil || group.Paused
}

// wantedBy returns what a record wants of the instance's agent.
func wantedBy(i store.Instance) *protocol.Wanted {
	w := &protocol.Wanted{Lifecycle: i.Spec.Lifecycle}
	if i.Config != "" { // otherwise it is unknown what the machine was created from, and it stays as it is (REC-8)
		w.ConfigHash, w.Run, w.Vars, w.Checks = i.Config, i.Spec.Workload.Run, i.Spec.Vars, checkSpecs(i.Spec.AllChecks())
		w.Secrets = secretsWanted(i.Spec.Secrets)
		w.Files = len(i.Spec.Files) > 0
	}
	w.RestartToken = i.RestartWanted()
	if l := i.Spec.Report.OnLeaseLost; l.Fences() {
		w.OnLeaseLost = &protocol.LeaseLost{Action: l.Do, Run: l.Run}
	}
	if n := i.Spec.Notices; n.Watched() {
		w.Notices = &protocol.NoticeSource{Source: n.Source, File: n.File, Endpoint: n.Endpoint}
	}
	// a lost instance may return (DET-15)
	if d := i.Drain; i.Phase == store.Draining && d != nil && d.Token != "" && !d.Lost {
		w.Drain = &protocol.Drain{Token: d.Token, Hook: i.Spec.Drain.Hook, Timeout: durationpb.New(d.Timer.For.D())}
	}
	return w
}

// drillFor returns the failure that an agent must cause (DAY-6). It is sent soon after the order,
// and on one stream only: an agent that reconnects, to any replica, does not fail again.
func drillFor(i store.Instance, epoch uint64, now time.Time) *protocol.Drill {
	d := i.Drill
	if !i.Drilled(now) || d.Kind == store.DrillMachine || d.Epoch != epoch || i.Phase != store.Running ||
		now.After(d.At.Add(store.DrillTold)) {
		return nil
	}
	return &protocol.Drill{Token: d.Request, Kind: string(d.Kind)}
}
