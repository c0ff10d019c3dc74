package libvirt

import (
	"context"
	"maps"
	"strings"
	"time"
)

// undefined is a domain that this process has undefined on a hypervisor.
type undefined struct{ zone, pool, name string }

type machineOf struct {
	key
	at time.Time // when it was undefined
}

// volumesMayFollow is how long after that a Create that was cut off may still make a volume:
// libvirt goes on with a request whose connection is closed.
const volumesMayFollow = 10 * time.Minute

// noteUndefined remembers that this process undefines a domain. Only the volumes of such a domain
// may be deleted without it: the absence of a domain proves nothing, because a hypervisor that is
// no zone of this provider may have it, and use the same directory.
func (p *Provider) noteUndefined(h *hypervisor, d *domain) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for u, of := range p.undefined {
		if time.Since(of.at) > volumesMayFollow {
			delete(p.undefined, u)
		}
	}
	p.undefined[undefined{h.zone, d.Pool, d.Name}] = machineOf{key{d.Shard, d.Instance}, time.Now()}
}

// forgetUndefined is for a Create: the volumes that follow are its own.
func (p *Provider) forgetUndefined(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.undefined, func(_ undefined, of machineOf) bool { return of.key == k })
}

func (p *Provider) hasUndefined(u undefined) (of machineOf, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, is = p.undefined[u]
	return of, is && time.Since(of.at) <= volumesMayFollow
}

// sweep deletes what a Create that was cut off made after its domain was undefined by this process.
// Other volumes of the shard without a domain stay, and are named in the log once.
func (p *Provider) sweep(ctx context.Context, h *hypervisor, poolName, shard string) {
	strays, err := p.strays(ctx, h, poolName, shard)
	for _, name := range strays {
		domain, _ := ownerOf(name)
		u := undefined{h.zone, poolName, domain}
		of, is := p.hasUndefined(u)
		if !is {
			p.report(h, name)
			continue
		}
		err = p.locks.With(ctx, of.key, func() error {
			if _, is := p.hasUndefined(u); !is {
				return nil // it is created again
			}
			return h.use(ctx, func(l *link) error { return deleteVolume(l, poolName, name) })
		})
		if err != nil {
			break
		}
	}
	if err != nil {
		p.log.Warn("look for volumes without a domain", "zone", h.zone, "error", err)
	}
}

// strays are a shard's volumes in a pool whose domain no hypervisor of this provider has. A domain
// is defined before its volumes are made: one that is missing after the volumes were listed is gone
// from these hypervisors, or was never there.
func (p *Provider) strays(ctx context.Context, h *hypervisor, poolName, shard string) (names []string, err error) {
	err = h.use(ctx, func(l *link) error {
		pool, err := l.StoragePoolLookupByName(poolName)
		if err != nil {
			return err
		}
		volumes, _, err := l.StoragePoolListAllVolumes(pool, 1, 0)
		for _, v := range volumes {
			if _, ours := ownerOf(v.Name); ours && strings.HasPrefix(v.Name, prefixOf(shard)) {
				names = append(names, v.Name)
			}
		}
		return err
	})
	if err != nil || len(names) == 0 {
		return nil, err
	}
	defined := map[string]bool{}
	for _, h := range p.hypervisors {
		err := h.use(ctx, func(l *link) error {
			all, _, err := l.ConnectListAllDomains(1, 0)
			for _, d := range all {
				defined[d.Name] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var strays []string
	for _, name := range names {
		if domain, _ := ownerOf(name); !defined[domain] {
			strays = append(strays, name)
		}
	}
	return strays, nil
}

// report names a volume without a domain in the log, once.
func (p *Provider) report(h *hypervisor, volume string) {
	p.mu.Lock()
	again := p.reported[volume]
	p.reported[volume] = true
	p.mu.Unlock()
	if !again {
		p.log.Warn("no hypervisor of this provider has the domain of a volume, which stays: "+
			"delete it if no other hypervisor uses it", "volume", volume, "zone", h.zone)
	}
}

// ownerOf is the domain that has a volume for itself, by the volume's whole name.
func ownerOf(volume string) (domain string, ours bool) {
	for _, suffix := range suffixes {
		if domain, ours = strings.CutSuffix(volume, suffix); ours {
			return domain, true
		}
	}
	return "", false
}
