package gateway

import "context"

// semaphore admits as many holders as it has room for. With room for one it is a lock.
type semaphore chan struct{}

// acquire waits until there is room, or ctx ends.
func (s semaphore) acquire(ctx context.Context) error {
	if s.tryAcquire() {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryAcquire reports whether there was room at once.
func (s semaphore) tryAcquire() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s semaphore) release() { <-s }
