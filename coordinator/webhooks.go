package coordinator

import (
	"context"

	"github.com/leasehold/leasehold/coordinator/webhook"
	"github.com/leasehold/leasehold/store"
)

// sendDecisions sends the journal's entries to webhooks (WEB-3).
func (t *term) sendDecisions(ctx context.Context) {
	(&webhook.Deliverer{
		Store: t.r.deps.Store, Keys: t.r.keys, Hooks: t.r.deps.Webhooks, Log: t.log,
		Shard: webhook.Shard{Name: t.r.cfg.Shard, ID: t.shard.ID},
		Commit: func(ctx context.Context, writes []store.Write) error {
			_, err := t.commit(ctx, nil, writes)
			return err
		},
	}).Run(ctx)
}
