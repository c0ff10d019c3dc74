package libvirt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"time"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/egress"
)

const (
	// maxLinks bounds the connections to one hypervisor: libvirtd has 20 workers for all its clients.
	maxLinks    = 8
	dialTimeout = 10 * time.Second
)

// hypervisor is one libvirtd. go-libvirt takes no contexts: a call that must end closes the
// connection that it uses, so each call in progress has a connection of its own.
type hypervisor struct {
	zone   string
	where  string // the URI as it was configured, for people
	name   string // the URI as the hypervisor itself calls it
	memory uint64 // that machines may have together, in bytes; 0: the host's

	socket                 string // of one on this host
	host, port, serverName string // of one that is reached by TLS
	secure                 *tls.Config
	dial                   func(ctx context.Context) (net.Conn, error)

	slots  chan struct{} // a token for each connection in use
	define chan struct{} // held while a domain is defined: room is counted and taken in one step

	mu   sync.Mutex
	idle []*link
}

func newHypervisor(zone string) *hypervisor {
	h := &hypervisor{zone: zone, slots: make(chan struct{}, maxLinks), define: make(chan struct{}, 1)}
	h.dial = h.dialLibvirtd
	return h
}

// link is one connection. Whether it is up is not read from go-libvirt, which is wrong about a
// connection that ends just as it is opened.
type link struct {
	*api.Libvirt
	conn *frames
}

func (l *link) close() { _ = l.conn.Close() } // what reads from it, and waits for that, ends

// lastWait is how long a call may take to end once its connection is closed.
const lastWait = 5 * time.Second

// use runs f with a connection, until ctx ends. What f had asked for then may still happen.
func (h *hypervisor) use(ctx context.Context, f func(l *link) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l := h.takeIdle()
	if l == nil {
		var err error
		if l, err = h.connect(ctx); err != nil {
			if ended := ctx.Err(); ended != nil {
				return ended
			}
			return err
		}
	}
	done := make(chan error, 1)
	go func() { done <- f(l) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		l.close() // f ends with that
		late := time.NewTimer(lastWait)
		defer late.Stop()
		select {
		case err = <-done:
		case <-late.C:
			return ctx.Err() // go-libvirt waits for an answer that never comes, so f never ends
		}
		if err != nil {
			return ctx.Err()
		}
		return nil
	}
	var known *provider.Error
	if err != nil && !fromLibvirt(err) && !errors.As(err, &known) && !errors.As(err, new(*damaged)) {
		l.close() // it may be in the middle of anything
		return fmt.Errorf("call to %s: %w", h.where, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle = append(h.idle, l)
	return err
}

func (h *hypervisor) takeIdle() *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.idle) > 0 {
		l := h.idle[len(h.idle)-1]
		h.idle = h.idle[:len(h.idle)-1]
		if !l.conn.ended.Load() {
			return l
		}
		l.close()
	}
	return nil
}

// closeIdle closes the connections that no call uses.
func (h *hypervisor) closeIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.idle {
		l.close()
	}
	h.idle = nil
}

// connected is a connection that was dialed already.
type connected struct{ net.Conn }

func (c connected) Dial() (net.Conn, error) { return c.Conn, nil }

func (h *hypervisor) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialed, err := h.dial(ctx)
	if errors.Is(err, fs.ErrPermission) {
		return nil, &provider.Error{
			Kind: provider.Credentials, Scope: h.where,
			Message: "this user may not open libvirt's socket: add it to the group libvirt",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("hypervisor %s of zone %s is out of reach: %w", h.where, h.zone, err)
	}
	conn := newFrames(dialed)
	unbind := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l := &link{Libvirt: api.NewWithDialer(connected{conn}), conn: conn}
	err = l.ConnectToURI(api.ConnectURI(h.name))
	if !unbind() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		if fromLibvirt(err) {
			return nil, fmt.Errorf("open %s: %w", h.where, h.meaning(err, ""))
		}
		return nil, fmt.Errorf("hypervisor %s of zone %s does not answer: %w", h.where, h.zone, err)
	}
	return l, nil
}

func (h *hypervisor) dialLibvirtd(ctx context.Context) (net.Conn, error) {
	if h.host == "" {
		return new(net.Dialer).DialContext(ctx, "unix", h.socket)
	}
	d := egress.Dialer()
	d.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}
	conn, err := (&tls.Dialer{NetDialer: d, Config: h.secure}).DialContext(ctx, "tcp", net.JoinHostPort(h.host, h.port))
	if err != nil {
		return nil, err
	}
	// libvirtd says with one byte that it accepts the client's certificate.
	unbind := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer unbind()
	var accepted [1]byte
	_, err = conn.Read(accepted[:])
	if err == nil && accepted[0] == 1 {
		return conn, nil
	}
	_ = conn.Close()
	var alert tls.AlertError
	var refusal *net.OpError // as which crypto/tls shows an alert of the other side
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil, errors.Is(err, io.EOF), errors.As(err, &alert), errors.As(err, &refusal) &&
		refusal.Op == "remote error":
		return nil, &provider.Error{
			Kind: provider.Credentials, Scope: h.where,
			Message: "the hypervisor refuses the client's certificate: see tls_allowed_dn_list and the log of its libvirtd",
		}
	}
	return nil, err
}
