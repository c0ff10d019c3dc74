// Package observe collects live numbers that no record holds, for programs that show a shard: the
// load of groups over time, and how etcd's members are. coordinator/view derives what they show.
package observe

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// membersEvery is how often etcd's members are asked how they are.
const membersEvery = time.Minute

// Run takes note until ctx ends. By is the replica that asks; "": the reader's own command. With a
// nil ask etcd's members are not asked.
func Run(ctx context.Context, views *view.Source, by string, ask func(context.Context) (store.Members, error)) {
	var asking sync.WaitGroup
	defer asking.Wait()
	if ask != nil {
		asking.Go(func() {
			every(ctx, membersEvery, func() {
				if m, err := ask(ctx); err == nil {
					m.By = by
					views.Members(m)
				}
			})
		})
	}
	every(ctx, view.TrendEvery, func() { views.Sample(time.Now()) })
}

// every does something at once and then again and again, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
