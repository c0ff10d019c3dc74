package coordinator

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/picture"
	"github.com/leasehold/leasehold/provider"
)

// lister lists one provider's machines, as leader.Lists schedules it.
type lister struct {
	t        *term
	name     string
	provider provider.Provider
	lists    leader.Lists
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
		at, _ := l.lists.Next()
		timer.Reset(max(0, time.Until(at)))
		select {
		case <-ctx.Done():
			return
		case <-l.asks:
			l.lists.Request()
			continue
		case <-timer.C:
		}
		l.lists.Begin(time.Now())
		err := l.list(ctx)
		l.lists.End(time.Now(), l.t.settings(), err)
	}
}

// list lists once.
func (l *lister) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.provider.Capabilities().CallTimeout)
	defer cancel()
	begun := time.Now()
	machines, err := l.provider.List(ctx, l.t.shard.ID)
	l.t.r.deps.Meter.Called(l.name, "list", time.Since(begun), err)
	if err != nil {
		if !l.failing && ctx.Err() == nil {
			l.t.log.Error("provider does not list its machines: nothing is known of them", "provider", l.name, "error", err)
		}
		l.failing = true
		return err // a failed List proves nothing
	}
	if l.failing {
		l.t.log.Info("provider lists its machines again", "provider", l.name, "machines", len(machines))
	}
	l.failing = false
	l.t.r.picture.View(func(c *picture.Content) { l.t.evidence.ListedBy(l.name, begun, machines, c) })
	return nil
}
