package socket

import (
	"context"
	"net"
	"net/rpc"
	"sync"
	"time"
)

// Client calls services at a socket. It connects with the first call.
type Client struct {
	socket string

	mu     sync.Mutex
	client *rpc.Client
}

// NewClient makes a client.
func NewClient(socket string) *Client { return &Client{socket: socket} }

// Left is how long a caller waits; 0: without end.
func Left(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return 0
	}
	return max(1, time.Until(deadline))
}

// Ask makes a call. The answer may be incomplete if its caller has gone.
func Ask[A interface{ Failure() error }](ctx context.Context, c *Client, method string, call any) (a A, err error) {
	client, err := c.connect(ctx)
	if err != nil {
		return a, err
	}
	answer := new(A)
	done := client.Go(method, call, answer, make(chan *rpc.Call, 1)).Done
	select {
	case <-ctx.Done():
		return a, ctx.Err()
	case ended := <-done:
		if ended.Error != nil {
			c.forget(client)
			return a, ended.Error
		}
		return *answer, (*answer).Failure()
	}
}

func (c *Client) connect(ctx context.Context) (*rpc.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, err
	}
	c.client = rpc.NewClient(conn)
	return c.client, nil
}

func (c *Client) forget(client *rpc.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == client {
		c.client = nil
	}
	_ = client.Close() // the connection is broken already
}
