package network

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// link is one connection over a way, with a half for each side.
type link struct {
	n        *Network
	from, to string
	ctx      context.Context // ends with the link
	end      context.CancelFunc

	mu     sync.Mutex
	opener net.Conn
	target net.Conn // nil until it is reached
}

func newLink(n *Network, opener net.Conn, from, to string) *link {
	l := &link{n: n, from: from, to: to, opener: opener}
	l.ctx, l.end = context.WithCancel(n.ctx)
	return l
}

// lead runs a link from beginning to end.
func (l *link) lead(address string) {
	defer l.n.forget(l)
	defer l.close()
	if !l.reach(address) {
		l.reset()
		return
	}
	there := &lane{link: l, from: l.from, to: l.to, src: l.opener, dst: l.target, done: make(chan struct{})}
	back := &lane{
		link: l, from: l.to, to: l.from, src: l.target, dst: l.opener, done: make(chan struct{}),
		other: there,
	}
	there.other = back
	var both sync.WaitGroup
	both.Go(there.carry)
	both.Go(back.carry)
	both.Wait()
}

// reach connects to the target, once the rules allow it. It reports whether it did.
func (l *link) reach(address string) bool {
	rules := l.n.book.Load()
	if !l.pause(rules.terms(l.from, l.to).trip() + rules.terms(l.to, l.from).trip()) {
		return false
	}
	waited, ok := l.await(func(b *book) bool {
		return !b.terms(l.from, l.to).silent && !b.terms(l.to, l.from).silent
	})
	// A side that gave up during the silence never appears.
	if !ok || waited && hungUp(l.opener) {
		return false
	}
	target, err := (&net.Dialer{KeepAlive: -1}).DialContext(l.ctx, "tcp", address)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		cut(target)
		return false
	}
	l.target = target
	return true
}

// await waits for rules under which something may continue. It reports whether it waited, and
// whether such rules came before the link ended.
func (l *link) await(free func(*book) bool) (waited, ok bool) {
	for {
		rules := l.n.book.Load()
		if free(rules) {
			return waited, true
		}
		if !waited {
			waited = true
			l.n.held.Add(1)
			defer l.n.held.Add(-1)
		}
		select {
		case <-rules.turned:
		case <-l.ctx.Done():
			return waited, false
		}
	}
}

// audible waits until one side's data can reach the other, and reports whether that happened.
func (l *link) audible(from, to string) bool {
	_, ok := l.await(func(b *book) bool { return !b.terms(from, to).silent })
	return ok
}

// pause waits, and reports whether the link still exists.
func (l *link) pause(d time.Duration) bool {
	if d <= 0 {
		return l.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// reset ends the link at once, with an RST for both sides. It may be repeated.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	cut(l.opener)
	if l.target != nil {
		cut(l.target)
	}
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	_ = l.opener.Close()
	if l.target != nil {
		_ = l.target.Close()
	}
}

// cut closes a connection with an RST.
func cut(c net.Conn) {
	if c, ok := c.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}

// hungUp reports whether the other side of a connection has closed its sending side.
func hungUp(c net.Conn) bool {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	gone := true
	err = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_, err := unix.Poll(look, 0)
		gone = err == nil && look[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return err != nil || gone
}
