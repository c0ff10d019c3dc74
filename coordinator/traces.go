package coordinator

import (
	"context"

	"github.com/leasehold/leasehold/coordinator/tracing"
)

// traceHealings sends how instances are healed to a collector of OpenTelemetry, if there is one.
func (t *term) traceHealings(ctx context.Context) {
	if t.r.deps.Traces == nil {
		return
	}
	(&tracing.Follower{
		Store: t.r.deps.Store, Keys: t.r.keys, ShardID: t.shard.ID, Sender: t.r.deps.Traces, Silent: t.r.cfg.SessionTTL,
	}).Run(ctx)
}
