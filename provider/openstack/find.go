package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// get reads one server; nil: Nova says that there is none.
func (p *Provider) get(ctx context.Context, id string) (*server, error) {
	var answer struct{ Server *server }
	err := p.patient(ctx, func(s *session) error {
		return fetch(ctx, s.compute, s.compute.ServiceURL("servers", url.PathEscape(id)), &answer)
	})
	switch {
	case gone(err):
		return nil, nil
	case err != nil:
		return nil, err
	case answer.Server == nil || answer.Server.ID != id:
		return nil, fmt.Errorf("what Nova answers for server %s is another one, or none", id)
	case answer.Server.Status == statusDeleted:
		return nil, nil
	}
	return answer.Server, nil
}

// page reads one page of servers.
func (p *Provider) page(ctx context.Context, query url.Values) (servers []*server, more bool, err error) {
	var answer struct {
		Servers *[]*server `json:"servers"`
		Links   []struct {
			Rel string `json:"rel"`
		} `json:"servers_links"`
	}
	err = p.patient(ctx, func(s *session) error {
		return fetch(ctx, s.compute, s.compute.ServiceURL("servers", "detail")+"?"+query.Encode(), &answer)
	})
	if err != nil {
		return nil, false, err
	}
	if answer.Servers == nil {
		return nil, false, errors.New("the answer has no list of servers, not even an empty one: " +
			"Nova did not answer")
	}
	for _, s := range *answer.Servers {
		if s == nil || s.ID == "" {
			return nil, false, errors.New("the list of servers has one without an ID")
		}
	}
	for _, l := range answer.Links {
		more = more || l.Rel == "next"
	}
	return *answer.Servers, more && len(*answer.Servers) > 0, nil
}

// pages reads all pages. The next one begins after the last server of the one before; if that was
// deleted meanwhile, Nova refuses the marker, and the list is an error.
func (p *Provider) pages(ctx context.Context, query url.Values) ([]*server, error) {
	var all []*server
	listed := map[string]bool{}
	for {
		servers, more, err := p.page(ctx, query)
		if err != nil {
			return nil, err
		}
		fresh := 0
		for _, s := range servers {
			if !listed[s.ID] {
				listed[s.ID] = true
				all = append(all, s)
				fresh++
			}
		}
		if !more {
			return all, nil
		}
		if fresh == 0 {
			return nil, errors.New("the list of servers goes in a circle")
		}
		query.Set("marker", servers[len(servers)-1].ID)
	}
}

// named finds an instance's servers by their name. It is one cheap request, and misses a server
// that was renamed, or that a part of Nova which is down holds: Nova leaves those out of a list
// with a filter.
func (p *Provider) named(ctx context.Context, shard, instance string) ([]*server, error) {
	all, err := p.pages(ctx, url.Values{"name": {"^" + regexp.QuoteMeta(nameOf(instance)) + "$"}})
	return p.ours(all, shard, instance), err
}

// find finds all servers of an instance: by name, or else among all that there are.
func (p *Provider) find(ctx context.Context, shard, instance string) ([]*server, error) {
	found, err := p.named(ctx, shard, instance)
	if err != nil || len(found) > 0 {
		return found, err
	}
	all, err := p.ofShard(ctx, shard)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if k := p.knownOf(s); s.hidden() && k.shard == shard && k.instance == instance {
			return nil, fmt.Errorf("the part of Nova that holds server %s is down", s.ID)
		}
	}
	return p.ours(all, shard, instance), nil
}

func (p *Provider) ours(all []*server, shard, instance string) (found []*server) {
	for _, s := range all {
		if s.isOf(shard, instance) {
			p.learn(s)
			found = append(found, s)
		}
	}
	return found
}

// learn notes what a server is, for when Nova cannot tell.
func (p *Provider) learn(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[s.ID] = s.seen()
}

func (p *Provider) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, id)
}

func (p *Provider) knownOf(s *server) seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[s.ID]
}

// List asks for all servers of the project, without a filter: with one Nova leaves out the servers
// of a part of it that is down, and says that all went well.
func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	all, err := p.ofShard(ctx, shard)
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", p.meaning(ctx, err))
	}
	machines := make([]provider.Machine, 0, len(all))
	for _, s := range all {
		machines = append(machines, p.knownOf(s).machine(s))
	}
	return machines, nil
}

// ofShard are all servers of a shard, or an error. What was seen before is gone only if Nova
// answers 404 for it, since pages after the first leave out what is in a part of Nova that is down.
func (p *Provider) ofShard(ctx context.Context, shard string) ([]*server, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	before := p.knownIDs(shard)
	all, err := p.pages(ctx, url.Values{})
	if err != nil {
		return nil, err
	}
	listed := make(map[string]bool, len(all))
	var ours []*server
	for _, s := range all {
		listed[s.ID] = true
		switch {
		case s.hidden():
			p.mu.Lock()
			k, is := p.known[s.ID]
			p.mu.Unlock()
			if !is {
				return nil, fmt.Errorf("a part of Nova is down that holds server %s: "+
					"it is unknown whether it belongs to this shard", s.ID)
			}
			if k.shard == shard {
				ours = append(ours, s)
			}
		default:
			p.learn(s)
			if s.isOf(shard, s.Metadata[tagInstance]) {
				ours = append(ours, s)
			}
		}
	}
	for _, id := range before {
		if listed[id] {
			continue
		}
		s, err := p.get(ctx, id)
		switch {
		case err != nil:
			return nil, fmt.Errorf("server %s is no longer in the list, and Nova does not say that it is gone: %w", id, err)
		case s == nil:
			p.forget(id)
		case s.hidden():
			ours = append(ours, s)
		case s.isOf(shard, s.Metadata[tagInstance]):
			p.learn(s)
			ours = append(ours, s)
		}
	}
	p.forgetStrangers(listed)
	return ours, ctx.Err()
}

func (p *Provider) knownIDs(shard string) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, k := range p.known {
		if k.shard == shard {
			ids = append(ids, id)
		}
	}
	return ids
}

// forgetStrangers drops what is not Leasehold's and not there any more.
func (p *Provider) forgetStrangers(listed map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, k := range p.known {
		if k.shard == "" && !listed[id] {
			delete(p.known, id)
		}
	}
}

const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

// await looks at a server until it is as it should be. It is nil if it is gone.
func (p *Provider) await(ctx context.Context, id string, done func(s *server) (bool, error)) (*server, error) {
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		s, err := p.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if s == nil {
			p.forget(id)
		}
		if ok, err := done(s); ok || err != nil {
			return s, err
		}
		if err := pause(ctx, wait); err != nil {
			return s, err
		}
	}
}
