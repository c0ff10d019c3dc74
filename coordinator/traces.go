package coordinator

import (
	"context"

	"github.com/leasehold/leasehold/coordinator/tracing"
)

// traceHealings sends traces of healings to an OpenTelemetry collector, if one is configured.
func (t *term) traceHealings(ctx context.Context) {
	if t.r.deps.Traces == nil {
		return
	}
	(&tracing.Follower{
		Store: t.r.deps.Store, Keys: t.r.keys, ShardID: t.shard.ID, Sender: t.r.deps.Traces, Silent: t.r.cfg.SessionTTL,
	}).Run(ctx)
}
