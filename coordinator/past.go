package coordinator

import (
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// knownPast is the time that is past even if this replica's clock is ahead. It goes on from what
// the previous leader knew, with the time in which leaders have worked, so that a replica whose
// clock is ahead gains nothing by leading. That leaves out the times without a leader. So what a
// clock shows is a claim, which becomes known once leaders have worked for a day and no clock has
// contradicted it: not this one by being put back, nor another replica's or the next leader's. The
// first leader of a shard, and a note of a release without such claims, are taken at their word.
type knownPast struct {
	mu      sync.Mutex
	at      time.Time     // when the next three were last moved on; zero: the last note is not read yet
	known   time.Time     // to be past
	claimed time.Time     // what a clock showed, and the time in which leaders have worked since
	even    time.Duration // that time
	ahead   time.Duration // by how much this replica's clock was ahead of claimed, at most
}

// takeUp goes on from the last note of the previous leader, or begins if there is none. This
// replica's clock shows now.
func (p *knownPast) takeUp(last store.Served, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now = now.UTC().Round(0)
	p.at, p.known = time.Now(), last.KnownPast()
	if p.known.IsZero() {
		p.known = now // no leader ever worked here
	}
	p.claimed, p.even, p.ahead = last.Claimed, last.Even.D(), 0
	p.compare(now, false)
}

// compare compares the claim with this replica's clock. A clock that is further ahead than before
// contradicts nothing: there may have been no leader, or the host has slept. That adds nothing to
// the claim either. p.mu must be held.
func (p *knownPast) compare(now time.Time, apart bool) {
	ahead := now.Sub(p.claimed)
	if p.claimed.IsZero() || apart || ahead <= p.ahead-plan.ClocksApart {
		p.claim(now)
		return
	}
	p.ahead = max(p.ahead, ahead)
}

// claim begins a new claim. p.mu must be held.
func (p *knownPast) claim(now time.Time) { p.claimed, p.even, p.ahead = now, 0, 0 }

// until returns the time that is past, by a clock that shows now. False if the last note is not
// read yet.
func (p *knownPast) until(now time.Time, apart bool) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() {
		return time.Time{}, false
	}
	now = now.UTC().Round(0)
	worked := time.Since(p.at) // which no change of the clock moves
	p.at = p.at.Add(worked)
	p.known, p.claimed, p.even = p.known.Add(worked), p.claimed.Add(worked), p.even+worked
	p.compare(now, apart)
	if p.even >= dayLong {
		if p.claimed.After(p.known) {
			p.known = p.claimed
		}
		p.claim(now)
	}
	if p.known.After(now) {
		p.known = now
	}
	return p.known.UTC(), true
}

// record returns what the next leader goes on from.
func (p *knownPast) record(now time.Time, apart bool) (known, claimed time.Time, even store.Duration) {
	known, _ = p.until(now, apart)
	p.mu.Lock()
	defer p.mu.Unlock()
	return known, p.claimed.UTC(), store.Duration(p.even)
}
