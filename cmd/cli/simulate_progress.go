package cli

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
)

// progress shows the progress of a simulation on a terminal, after the first second.
type progress struct {
	s       *Session
	length  time.Duration
	begun   time.Time
	shown   time.Time
	written bool
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

func (s *Session) newProgress(length time.Duration) *progress {
	now := s.env.Now()
	return &progress{s: s, length: length, begun: now, shown: now}
}

func (p *progress) at(reached time.Duration) {
	if !p.s.env.StderrTerminal {
		return
	}
	p.show(func() string {
		return fmt.Sprintf("%s of %s simulated", output.Span(reached), output.Span(p.length))
	})
}

func (p *progress) show(what func() string) {
	now := p.s.env.Now()
	if !p.s.env.StderrTerminal || now.Sub(p.begun) < progressAfter || p.written && now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown, p.written = now, true
	fmt.Fprintf(p.s.env.Stderr, "\r\x1b[K%s", p.s.aside().Dim("["+what()+"]"))
}

// end erases the line.
func (p *progress) end() {
	if p.written {
		fmt.Fprint(p.s.env.Stderr, "\r\x1b[K")
	}
}
