package cli

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// membersLimit is the time limit for asking etcd's members, beside everything else.
const membersLimit = 3 * time.Second

// askMembers asks etcd's members for their state while the caller reads records. The channel
// delivers one result, nil if there is none, and is then closed.
func (inv *Invocation) askMembers(ctx context.Context) <-chan *store.Members {
	result := make(chan *store.Members, 1)
	go func() {
		defer close(result)
		if inv.env.Members == nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, membersLimit)
		defer cancel()
		if m, err := inv.env.Members(ctx, inv.connection(nil)); err == nil {
			result <- &m
		}
	}()
	return result
}

// noQuorum says which members are missing if that is why etcd does not complete requests; ""
// otherwise.
func (inv *Invocation) noQuorum() string {
	m := <-inv.askMembers(context.Background()) // the request's own time is over
	if m == nil {
		return ""
	}
	return story.NoQuorum(m)
}
