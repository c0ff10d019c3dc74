// Package keylock has one lock per key. With it, the calls of one process for one machine run one
// after the other. The platform keeps calls of other processes apart.
package keylock

import (
	"context"
	"sync"
)

// Locks are the locks of the keys of type K. The zero value is ready for use. Nothing is kept for
// keys that no call uses.
type Locks[K comparable] struct {
	mu   sync.Mutex
	used map[K]*lock
}

type lock struct {
	free  chan struct{} // has a token when no call holds it
	users int           // calls that hold it or wait for it
}

// With runs f while it holds a key's lock. It fails if ctx ends before the lock is free.
func (l *Locks[K]) With(ctx context.Context, key K, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	one := l.use(key)
	defer l.leave(key, one)
	select {
	case <-one.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { one.free <- struct{}{} }()
	return f()
}

// Held reports whether a call holds a key's lock or waits for it.
func (l *Locks[K]) Held(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used[key] != nil
}

func (l *Locks[K]) use(key K) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == nil {
		l.used = map[K]*lock{}
	}
	one := l.used[key]
	if one == nil {
		one = &lock{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		l.used[key] = one
	}
	one.users++
	return one
}

func (l *Locks[K]) leave(key K, one *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(l.used, key)
	}
}
