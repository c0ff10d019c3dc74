package cli

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
)

// progress shows the progress of a simulation on a terminal, after the first second.
type progress struct {
	inv     *Invocation
	length  time.Duration
	begun   time.Time
	shown   time.Time
	written bool
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

func (inv *Invocation) newProgress(length time.Duration) *progress {
	now := inv.env.Now()
	return &progress{inv: inv, length: length, begun: now, shown: now}
}

func (p *progress) at(reached time.Duration) {
	if !p.inv.env.StderrTerminal {
		return
	}
	p.show(func() string {
		return fmt.Sprintf("%s of %s simulated", output.Span(reached), output.Span(p.length))
	})
}

func (p *progress) show(what func() string) {
	now := p.inv.env.Now()
	if !p.inv.env.StderrTerminal || now.Sub(p.begun) < progressAfter || p.written && now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown, p.written = now, true
	fmt.Fprintf(p.inv.env.Stderr, "\r\x1b[K%s", p.inv.aside().Dim("["+what()+"]"))
}

// end erases the line.
func (p *progress) end() {
	if p.written {
		fmt.Fprint(p.inv.env.Stderr, "\r\x1b[K")
	}
}
