// Package turns keeps the calls of one process for one machine apart: they take turns. Calls of
// other processes are kept apart by the platform.
package turns

import (
	"context"
	"sync"
)

// Turns are the turns for machines that are named by K. The zero value is ready for use.
type Turns[K comparable] struct {
	mu    sync.Mutex
	calls map[K]*turn
}

type turn struct {
	free    chan struct{} // has a token when no call holds it
	waiting int
}

// Take runs f while no other call for the same machine runs. It fails if ctx ends before its turn
// comes.
func (t *Turns[K]) Take(ctx context.Context, name K, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	one := t.join(name)
	defer t.leave(name, one)
	select {
	case <-one.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { one.free <- struct{}{} }()
	return f()
}

// Taken reports whether a call for the machine runs or waits.
func (t *Turns[K]) Taken(name K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[name] != nil
}

func (t *Turns[K]) join(name K) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[K]*turn{}
	}
	one := t.calls[name]
	if one == nil {
		one = &turn{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		t.calls[name] = one
	}
	one.waiting++
	return one
}

func (t *Turns[K]) leave(name K, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.waiting--; one.waiting == 0 {
		delete(t.calls, name)
	}
}
