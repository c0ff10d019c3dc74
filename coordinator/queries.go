package coordinator

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/query"
)

// query asks a source for a number, outside the leader's loop. A failure is logged once.
func (t *term) query(ctx context.Context, c leader.Query) leader.Queried {
	value, err := t.r.deps.Sources.Ask(ctx, c.Key)
	t.r.deps.Meter.Called(c.Key.Source, "query", time.Since(c.Begun), err)
	kind := query.KindOf(err)
	t.mu.Lock()
	before, failed := t.unanswered[c.Key]
	if err == nil {
		delete(t.unanswered, c.Key)
	} else {
		t.unanswered[c.Key] = kind
	}
	t.mu.Unlock()
	log := t.log.With("metric", c.Key.Source, "group", c.Key.Group)
	switch {
	case ctx.Err() != nil:
	case err != nil && (!failed || before != kind):
		log.Warn("external metric is unknown: no size shrinks that depends on it", "error", err)
	case err == nil && failed:
		log.Info("external metric is known again", "value", value)
	}
	return leader.Queried{Key: c.Key, Begun: c.Begun, Value: value, Err: err}
}
