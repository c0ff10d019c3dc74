package garbage

import "net"

// Listener accepts connections whose reads wait while garbage is collected.
func (c *Collector) Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, collector: c}
}

type listener struct {
	net.Listener
	collector *Collector
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, collector: l.collector}, nil
}

type conn struct {
	net.Conn
	collector *Collector
}

// Read holds back data that arrived while garbage is collected. It waits after reading, because
// nearly all connections are waiting for data at any time.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if gate := c.collector.closed(); gate != nil {
		<-gate
	}
	return n, err
}
