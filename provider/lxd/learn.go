package lxd

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Addresses and boots are not part of a List. Each needs a request per container, which costs LXD
// tens of milliseconds. LXD could add them to the List (recursion=2), but only for every container
// that it has.
const (
	askers        = 8                // how many containers are asked at the same time
	addressesOnce = 64               // how many containers a List asks for their addresses
	askAgain      = 10 * time.Minute // for an address that may have changed
	maxInVain     = 30               // of a start without an address: it may have no network
	questionsFor  = 2 * time.Second  // all questions of one List
)

// knownOf returns what earlier calls found out about a container.
func (p *Provider) knownOf(c *container) known {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[c.Name]
}

// update changes what is known about a container. When it has started again, only its address is
// kept.
func (p *Provider) update(c *container, change func(*known)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.known[c.Name]
	if k.start != c.start() {
		k = known{start: c.start(), address: k.address}
	}
	k.shard, k.instance = c.Config[tagShard], c.Config[tagInstance]
	k.group, k.zone = c.Config[tagGroup], c.Config[tagZone]
	if boot := c.boot(); boot != "" {
		k.boot = boot
	}
	change(&k)
	p.known[c.Name] = k
}

// question is what learn asks about one container.
type question struct {
	c             *container
	boot, address bool
	asked         time.Time // for its boot
}

// learn finds out about addresses, and about boots that no call of ours has begun: of containers
// that were restarted from within, by LXD, or by hand. All questions of a List together have little
// time, because the List waits for them, and with it the news of every other container. A later
// List asks what was not answered now, beginning with the container that was asked longest ago.
func (p *Provider) learn(ctx context.Context, all []*container) {
	var questions []question
	addresses := 0
	for _, c := range all {
		p.update(c, func(*known) {})
		k := p.knownOf(c)
		q := question{c: c, boot: c.boot() == "" && time.Since(k.bootAsked) >= k.bootWait(), asked: k.bootAsked}
		q.address = (time.Since(k.asked) > askAgain || k.address == "" || k.inVain > 0) && k.inVain < maxInVain &&
			addresses < addressesOnce
		if c.Status != isRunning || c.foreign() || !q.boot && !q.address {
			continue
		}
		if q.address {
			addresses++
		}
		questions = append(questions, q)
	}
	slices.SortStableFunc(questions, func(a, b question) int { return a.asked.Compare(b.asked) })
	ctx, cancel := context.WithTimeout(ctx, questionsFor)
	defer cancel()
	limit := make(chan struct{}, askers)
	var wg sync.WaitGroup
	for _, q := range questions {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if q.boot && ctx.Err() == nil {
				p.learnBoot(ctx, q.c)
			}
			if q.address && ctx.Err() == nil {
				p.learnAddress(ctx, q.c)
			}
		})
	}
	wg.Wait()
}

// bootWait is how long after the last try a boot is asked for again: longer with each failed try.
func (k known) bootWait() time.Duration {
	if k.bootInVain == 0 {
		return 0
	}
	return min(askAgain, time.Second<<min(k.bootInVain, 10))
}

// learnBoot asks for a boot and notes it in the container, so that it is known when that is down,
// unless a call for the container is under way: that will note it itself, or a later List.
func (p *Provider) learnBoot(ctx context.Context, c *container) {
	p.update(c, func(k *known) { k.bootAsked, k.bootInVain = time.Now(), k.bootInVain+1 })
	id := p.bootOf(c)
	if id == "" {
		id = p.readBoot(ctx, c)
	}
	if id == "" {
		return
	}
	p.update(c, func(k *known) { k.boot = id })
	if p.locks.Held(c.Name) {
		return
	}
	err := p.locks.With(ctx, c.Name, func() error {
		now, err := p.again(ctx, c)
		if err != nil || now.start() != c.start() || now.boot() != "" {
			return err
		}
		_, err = p.note(ctx, now, map[string]string{keyBoot: now.start() + " " + id})
		return err
	})
	if err != nil { // a later List tries again
		p.log.Debug("note a container's boot", "instance", c.Config[tagInstance], "error", err)
	}
}

// bootOf is the boot of the container's last start, as noted in it or as a List has read it.
func (p *Provider) bootOf(c *container) string {
	if boot := c.boot(); boot != "" {
		return boot
	}
	if k := p.knownOf(c); k.start == c.start() {
		return k.boot
	}
	return ""
}

func (p *Provider) learnAddress(ctx context.Context, c *container) {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	var s state
	_, err := p.client.call(ctx, request{method: http.MethodGet, path: path(c.Name) + "/state"}, &s)
	if err != nil {
		p.log.Debug("a container's address is unknown", "instance", c.Config[tagInstance], "error", err)
	}
	found := s.address()
	p.update(c, func(k *known) {
		k.asked = time.Now()
		if found == "" {
			k.inVain++
			return
		}
		k.address, k.inVain = found, 0
	})
}

// state is the part of LXD's api.InstanceState that matters here.
type state struct {
	Network map[string]struct {
		Type      string `json:"type"`
		Addresses []struct {
			Family  string `json:"family"`
			Address string `json:"address"`
			Scope   string `json:"scope"`
		} `json:"addresses"`
	} `json:"network"`
}

// address is where others reach the container, if LXD knows: IPv4 before IPv6, the first interface
// by name.
func (s state) address() string {
	var found []string
	for name, nic := range s.Network {
		for _, a := range nic.Addresses {
			ip := net.ParseIP(a.Address)
			if nic.Type != "loopback" && a.Scope == "global" && ip != nil {
				found = append(found, a.Family+" "+name+" "+ip.String())
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.SortFunc(found, cmp.Compare) // "inet" comes before "inet6"
	return found[0][strings.LastIndex(found[0], " ")+1:]
}
