package lxd

import (
	"context"
	"fmt"
	"net/http"

	"github.com/leasehold/leasehold/provider"
)

// consoleText is what this provider has read of the console of a container's present start.
type consoleText struct {
	start string
	tail  []byte
}

// maxConsoles bounds the memory for console output.
const maxConsoles = 256

// Console returns the end of what the container has written to its console since its last start:
// LXD starts over with each. While a container runs, LXD gives each line once, so what was read is
// kept here; a line that another replica has read is missing until the container is down.
func (p *Provider) Console(ctx context.Context, shard, instance string) ([]byte, error) {
	name := nameOf(instance)
	var tail []byte
	err := p.locks.With(ctx, name, func() error {
		c, ok, err := p.find(ctx, shard, instance)
		if err != nil {
			return err
		}
		if !ok {
			return provider.ErrNotFound
		}
		_, news, err := p.client.send(ctx, request{method: http.MethodGet, path: path(name) + "/console"})
		if hasMeaning(err, silent) {
			news, err = nil, nil // nothing, or nothing new
		}
		if err != nil {
			return err
		}
		now, err := p.again(ctx, c)
		if err != nil {
			return err
		}
		tail = p.keepConsole(now, c.down() && now.down(), news)
		return nil
	})
	if notFound(err) || err == errVanished { //nolint:errorlint // it is never wrapped
		err = provider.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read console of machine %s: %w", instance, p.kindOf(err, ""))
	}
	return tail, nil
}

// keepConsole adds what was read to what is there of this start. Of a container that is down LXD
// gives the whole.
func (p *Provider) keepConsole(c *container, whole bool, news []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.consoles[c.Name]
	if kept == nil || kept.start != c.start() || whole && len(news) > 0 {
		kept = &consoleText{start: c.start()}
	}
	kept.tail = append(kept.tail, news...)
	kept.tail = append([]byte(nil), kept.tail[max(0, len(kept.tail)-provider.ConsoleTail):]...)
	if _, is := p.consoles[c.Name]; !is && len(p.consoles) >= maxConsoles {
		for name := range p.consoles { // any: it is a convenience
			delete(p.consoles, name)
			break
		}
	}
	p.consoles[c.Name] = kept
	return append([]byte(nil), kept.tail...)
}
