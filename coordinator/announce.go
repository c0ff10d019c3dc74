package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// announce writes replicas/<id> on the session's lease.
func (r *Replica) announce(ctx context.Context, lease store.Lease, since time.Time) error {
	r.mu.Lock()
	rec := store.Replica{
		Schema: store.Schema, ID: r.cfg.ID, Address: r.cfg.Advertise, Version: r.cfg.Version, Protocol: protocol.Newest,
		Since: since, Downloads: r.cfg.AdvertiseDownloads, Agents: r.deps.Agents.Sums(),
		AgentReleases: r.deps.Agents.Releases(),
		Providers:     r.providerNames(), Balancers: r.balancerNames(), Sources: r.deps.Sources.Names(),
		Capabilities: r.capabilities,
		Authorities:  r.deps.Authorities.Limits(), AuthorityStates: r.deps.Authorities.States(),
		Disturbances: r.disturbances, Last: r.last, Waits: r.waits, Page: r.page,
	}
	if r.gateway == nil {
		rec.Address = "" // no agent is served yet
	}
	r.mu.Unlock()
	rec.Unnoted, rec.ClockOff = r.unnoted(), store.Duration(r.clock.Off())
	rec.OtherAgents, rec.OtherVersions = r.otherAgents()
	rec.Ended, rec.Refused = r.ended(), r.refused()
	if r.deps.Authority != nil {
		trust := r.deps.Authority.Trust()
		rec.Trust, rec.Issuer, rec.Believes = trust.Digest(), trust.Issuer, trust.Prints()
		rec.IssuerEnds, rec.CA = issuerEnds(trust), string(trust.PEM())
	}
	if r.deps.Secrets != nil {
		rec.SecretKeys = r.deps.Secrets.Ring().Fingerprints()
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := r.deps.Store.Commit(ctx,
		store.Txn{Writes: []store.Write{store.PutLeased(r.keys.Replica(r.cfg.ID), store.Encode(rec), lease.ID)}})
	if err != nil {
		return fmt.Errorf("announce replica: %w", err)
	}
	return nil
}

// ShowPage has the replica announce where browsers reach its page. It is called before Run.
func (r *Replica) ShowPage(origin string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.page = origin
}

func (r *Replica) unnoted() int {
	r.mu.Lock()
	gateway := r.gateway
	r.mu.Unlock()
	if gateway == nil {
		return 0
	}
	return gateway.Unnoted()
}

// otherAgents counts the agents of another version than this replica.
func (r *Replica) otherAgents() (int, []string) {
	r.mu.Lock()
	gateway := r.gateway
	r.mu.Unlock()
	if gateway == nil {
		return 0, nil
	}
	return gateway.OtherVersions(r.cfg.Version)
}

// refused returns what the gateway refused lately.
func (r *Replica) refused() []store.Refused {
	r.mu.Lock()
	gateway := r.gateway
	r.mu.Unlock()
	if gateway == nil {
		return nil
	}
	return gateway.Refusals().Recent()
}

// ended returns which parts of the host's server ended by themselves.
func (r *Replica) ended() []store.PartEnds {
	if r.deps.Ended == nil {
		return nil
	}
	return r.deps.Ended()
}

// capabilitiesOf returns what replicas/<id> says of each provider.
func capabilitiesOf(providers map[string]provider.Provider) map[string]store.ProviderCapabilities {
	out := map[string]store.ProviderCapabilities{}
	for name, p := range providers {
		c := p.Capabilities()
		_, console := p.(provider.Console)
		shown := store.ProviderCapabilities{
			Zones: c.Zones, Consistency: store.Duration(c.Consistency), CallTimeout: store.Duration(c.CallTimeout),
			Boots: c.Boots, Crashes: c.Crashes, Remembers: c.Remembers, Console: console,
			MaxBootstrap: c.MaxBootstrap, Site: c.Site,
		}
		if err := json.Unmarshal(c.Settings, &shown.Settings); err != nil {
			shown.Settings = nil // it has none
		}
		out[name] = shown
	}
	return out
}

func (r *Replica) providerNames() []string {
	names := make([]string, 0, len(r.deps.Providers))
	for name := range r.deps.Providers {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// publishTrust keeps the trusted authorities in replicas/<id> up to date: an operator who exchanges
// an authority waits for it.
func (r *Replica) publishTrust(ctx context.Context) {
	if r.deps.Authority == nil {
		return
	}
	for {
		changed := r.deps.Authority.Changed()
		r.pokePublish()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// publishAuthorities publishes changes of the authorities for workloads' certificates.
func (r *Replica) publishAuthorities(ctx context.Context) {
	for {
		changed := r.deps.Authorities.Changed() // never, if there are none
		r.pokePublish()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// ownRecord rewrites replicas/<id> when it was deleted or spoiled: otherwise agents would not learn
// of this replica, nor operators of what it waits for.
type ownRecord struct{ r *Replica }

func (w ownRecord) check(c *cache.Content) {
	_, shown := c.Replicas[w.r.cfg.ID]
	if !shown || c.Unreadable[w.r.keys.Replica(w.r.cfg.ID)] != "" {
		w.r.pokePublish()
	}
}

// Listed checks the record.
func (w ownRecord) Listed(c *cache.Content) { w.check(c) }

// Changed checks the record if it has changed.
func (w ownRecord) Changed(c *cache.Content, changes []cache.Change) {
	for _, change := range changes {
		if change.Kind == store.KindReplicas && change.Name == w.r.cfg.ID {
			w.check(c)
			return
		}
	}
}

// Interrupted is ignored: the record has not changed.
func (ownRecord) Interrupted(error) {}

// countEvery is how often agents that are not noted, of another version, or refused are counted,
// and parts of the server that ended.
const countEvery = 10 * time.Second

// keepAnnouncing publishes disturbances, the trusted authorities, a clock that is off, parts of the
// server that ended, the numbers of agents without a note or with another version, and refusals,
// with at most one write a second.
func (r *Replica) keepAnnouncing(ctx context.Context, lease store.Lease, since time.Time) {
	pause := time.NewTicker(time.Second)
	defer pause.Stop()
	count := time.NewTicker(countEvery)
	defer count.Stop()
	unnoted, others := 0, 0
	var ended []store.PartEnds
	var refused []store.Refused
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.publish:
		case <-count.C:
			now := r.unnoted()
			other, _ := r.otherAgents()
			parts, refusals := r.ended(), r.refused()
			if now == unnoted && other == others && slices.Equal(parts, ended) && slices.Equal(refusals, refused) {
				continue
			}
			unnoted, others, ended, refused = now, other, parts, refusals
		}
		if err := r.announce(ctx, lease, since); err != nil && ctx.Err() == nil {
			r.log.Debug("replica's record not written yet", "error", err)
			r.pokePublish() // it must be known: other replicas may lead
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (r *Replica) pokePublish() {
	select {
	case r.publish <- struct{}{}:
	default:
	}
}
