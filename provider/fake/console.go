package fake

import (
	"context"
	"slices"

	"github.com/leasehold/leasehold/provider"
)

var _ provider.Console = (*Provider)(nil)

// Print has a machine write to its console.
func (p *Provider) Print(instance, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.cloud.machines[instance]; m != nil {
		m.console = append(m.console, text...)
		m.console = m.console[max(0, len(m.console)-provider.ConsoleTail):]
	}
}

// Console is the end of what the machine has printed.
func (p *Provider) Console(ctx context.Context, shard, instance string) (tail []byte, err error) {
	err = p.call(ctx, CallConsole, shard, instance, func(answer func(error)) func() {
		return p.cloud.begin(p.cloud.fate(CallConsole, instance, 0), func() error {
			m := p.cloud.existing(shard, instance)
			if m == nil {
				return provider.ErrNotFound
			}
			tail = slices.Clone(m.console)
			return nil
		}, answer)
	})
	return tail, err
}
