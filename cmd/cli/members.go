package cli

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// membersLimit is how long etcd's members are asked, beside everything else.
const membersLimit = 3 * time.Second

// askMembers asks etcd's members how they are while the caller reads records. It delivers one
// result, nil if there is none, and then nil for ever.
func (s *Session) askMembers(ctx context.Context) <-chan *store.Members {
	result := make(chan *store.Members, 1)
	go func() {
		defer close(result)
		if s.env.Members == nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, membersLimit)
		defer cancel()
		if m, err := s.env.Members(ctx, s.connection(nil)); err == nil {
			result <- &m
		}
	}()
	return result
}

// noQuorum says which members are missing if that is why etcd carries nothing out; "" otherwise.
func (s *Session) noQuorum() string {
	m := <-s.askMembers(context.Background()) // the request's own time is up
	if m == nil {
		return ""
	}
	return story.NoQuorum(m)
}
