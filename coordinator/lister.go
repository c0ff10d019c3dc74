package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// lister lists one provider's machines: every provider_poll, and at once when there is a suspicion
// or something to confirm. However many ask, one List runs at a time, and one begins after the last
// request (DET-3, DET-12). A request often comes faster than the provider notices that a machine
// has stopped, so each requested answer is followed by a second one.
type lister struct {
	t        *term
	name     string
	provider provider.Provider
	asks     chan struct{}
	failing  bool
}

func newLister(t *term, name string, p provider.Provider) *lister {
	return &lister{t: t, name: name, provider: p, asks: make(chan struct{}, 1)}
}

func (l *lister) ask() {
	select {
	case l.asks <- struct{}{}:
	default:
	}
}

func (l *lister) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := l.poll()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.asks:
			next = min(next, asksApart)
		}
		begun := time.Now()
		pause := l.list(ctx)
		timer.Reset(max(next, pause))
		if !rest(ctx, max(pause, asksApart-time.Since(begun))) {
			return
		}
	}
}

// asksApart keeps many suspicions from causing as many Lists: the first starts one at once, and all
// within the next second share another.
const asksApart = time.Second

func (l *lister) poll() time.Duration {
	if poll := l.t.settings().ProviderPoll.D(); poll >= 100*time.Millisecond {
		return poll
	}
	return store.DefaultShardSettings().ProviderPoll.D()
}

// list lists once. It returns how long the provider asked to be left alone.
func (l *lister) list(ctx context.Context) (pause time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, l.provider.Capabilities().CallTimeout)
	defer cancel()
	begun := time.Now()
	machines, err := l.provider.List(ctx, l.t.shard.ID)
	l.t.r.deps.Meter.Called(l.name, "list", time.Since(begun), err)
	if err != nil {
		if !l.failing && ctx.Err() == nil {
			l.t.log.Error("provider does not list its machines: nothing is known of them", "provider", l.name, "error",
				err)
		}
		l.failing = true
		var throttled *provider.ThrottledError
		if errors.As(err, &throttled) {
			return throttled.After
		}
		return 0 // a failed List proves nothing
	}
	if l.failing {
		l.t.log.Info("provider lists its machines again", "provider", l.name, "machines", len(machines))
	}
	l.failing = false
	l.t.r.cache.View(func(c *cache.Content) { l.t.evidence.ListedBy(l.name, begun, machines, c) })
	return 0
}
