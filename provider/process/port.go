package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/provider"
)

// portLock is the lock under which ports are chosen; its file holds the last one, so that a port is
// not given away again soon after its machine went.
const portLock = ".ports"

// choosePort finds a port that no machine of this directory has and on which nothing on this host
// listens. The port is free only until another process takes it; a workload that then cannot bind
// fails like any other.
func (p *Provider) choosePort(ctx context.Context) (int, error) {
	taken, err := p.takenPorts()
	if err != nil {
		return 0, err
	}
	lock := filepath.Join(p.dir, locksDir, portLock)
	last := p.portTo
	if data, err := os.ReadFile(lock); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && n >= p.portFrom && n < p.portTo {
			last = n
		}
	}
	span := p.portTo - p.portFrom + 1
	for i := 1; i <= span; i++ {
		port := p.portFrom + (last-p.portFrom+i)%span
		if taken[port] || !unused(ctx, port) {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			continue
		}
		// Not synced and not atomic: it is a hint.
		if err := os.WriteFile(lock, []byte(strconv.Itoa(port)+"\n"), 0o600); err != nil {
			return 0, err
		}
		return port, nil
	}
	return 0, fmt.Errorf("%w: no free port from %d to %d: widen the range, or end what uses them", provider.ErrCapacity,
		p.portFrom, p.portTo)
}

// unused reports whether the port could be listened on, on any address.
func unused(ctx context.Context, port int) bool {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// takenPorts returns the ports of all machines in the directory, of every shard. A record is read
// once only.
func (p *Provider) takenPorts() (map[int]bool, error) {
	names, err := p.instances()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := make(map[int]bool, len(names))
	known := make(map[string]int, len(names))
	for _, name := range names {
		port, ok := p.ports[name]
		if !ok {
			r, err := p.read(name)
			if errors.Is(err, errAbsent) {
				continue
			}
			if err != nil {
				return nil, err
			}
			port = r.Port
		}
		taken[port], known[name] = true, port
	}
	p.ports = known
	return taken, nil
}

func (p *Provider) rememberPort(instance string, port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports[instance] = port
}
