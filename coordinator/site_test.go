package coordinator_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// sited is a provider at a site. Elsewhere nothing of its machines is seen.
type sited struct {
	*fake.Provider
	site, home string
	asked      *[]string // what was asked away from home
}

func (p *sited) Capabilities() provider.Capabilities {
	c := p.Provider.Capabilities()
	c.Site = p.site
	return c
}

func (p *sited) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	if p.site != p.home {
		return nil, nil
	}
	return p.Provider.List(ctx, shard)
}

func (p *sited) Delete(ctx context.Context, shard, instance string) error {
	if p.site != p.home {
		*p.asked = append(*p.asked, instance)
		return nil // as of a machine that is gone
	}
	return p.Provider.Delete(ctx, shard, instance)
}

// A leader on another host does not see the machines: their absence from its Lists proves nothing,
// and what it is to remove there it leaves, with the reason, until a coordinator of that host leads
// again.
//
// proves SAFE-1, SAFE-8, PROV-8
func TestALeaderOfAnotherSite(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		var asked []string
		at := func(site string) func(*coordinator.Config, *coordinator.Deps) {
			return func(_ *coordinator.Config, deps *coordinator.Deps) {
				deps.Providers = map[string]provider.Provider{"mem": &sited{w.provider, site, "here", &asked}}
			}
		}
		one := w.start("one", at("here"))
		w.leads(time.Minute, "one")
		w.apply(w.group("web", 3))
		w.until(time.Minute, "all run", func() bool { return w.settled(3) })
		ids := w.ids()
		for _, in := range w.instances() {
			if in.Record.Site != "here" {
				t.Errorf("%s is at site %q", in.Record.ID, in.Record.Site)
			}
		}
		two := w.start("two", at("elsewhere"))
		w.pass(time.Minute) // agents hear of it
		one.kill()
		w.leads(time.Minute, "two")
		w.always(10*time.Minute, "all run on", func() bool { return slices.Equal(w.ids(), ids) && w.settled(3) })

		g := w.group("web", 2)
		w.apply(g)
		deleting := func() (in store.Instance) {
			for _, v := range w.instances() {
				if v.Record.Phase == store.Deleting {
					in = v.Record
				}
			}
			return in
		}
		w.until(time.Minute, "one goes", func() bool { return deleting().ID != "" })
		w.always(10*time.Minute, "its record stays", func() bool { return deleting().ID != "" })
		if len(asked) > 0 {
			t.Errorf("a provider that does not see them was asked to delete %v", asked)
		}
		if b := w.status("web").Blocked; len(b) != 1 || !strings.Contains(b[0].Why, "site here") {
			t.Errorf("blocked: %+v", b)
		}
		w.start("three", at("here"))
		w.pass(time.Minute)
		two.kill()
		w.until(2*time.Minute, "it is gone", func() bool { return len(w.ids()) == 2 && w.settled(2) })
	})
}

// A machine that is adopted, or removed as an extra, is at the site where it was listed.
//
// proves REC-8, SAFE-8
func TestMachinesFoundAtASite(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(*store.Shard) {})
		w.setMood("old-1", mood{mute: true})
		w.extra("old-1", "web")
		w.start("one", func(_ *coordinator.Config, deps *coordinator.Deps) {
			deps.Providers = map[string]provider.Provider{"mem": &sited{w.provider, "here", "here", nil}}
		})
		w.leads(time.Second, "one")
		w.pass(20 * time.Second)
		w.apply(w.group("web", 1))
		w.request("r", store.Request{Kind: store.RequestAdopt, Instance: "old-1"})
		w.until(time.Minute, "it is adopted", func() bool {
			return slices.ContainsFunc(w.instances(), func(in store.Versioned[store.Instance]) bool {
				return in.Record.ID == "old-1" && in.Record.Site == "here"
			})
		})
	})
}
