package bench

import (
	"fmt"
	"strings"
	"time"
)

// progress shows the present step: on a terminal one line that is rewritten, elsewhere a line for
// each new step, and occasionally one for its progress.
type progress struct {
	inv   *Invocation
	quiet bool // show nothing except on a terminal
	doing string
	shown time.Time
	line  bool // the terminal has a progress line
}

const (
	rewrittenEvery = 200 * time.Millisecond
	repeatedEvery  = 10 * time.Second
)

func (inv *Invocation) newProgress() *progress { return &progress{inv: inv} }

// newQuietProgress is for benches of about a minute.
func (inv *Invocation) newQuietProgress() *progress { return &progress{inv: inv, quiet: true} }

func (p *progress) tell(doing, far string) {
	text := strings.TrimSpace(doing + " " + far)
	now := p.inv.env.Now()
	due := rewrittenEvery
	if !p.inv.env.StderrTerminal {
		due = repeatedEvery
	}
	if doing == p.doing && now.Sub(p.shown) < due {
		return
	}
	p.doing, p.shown = doing, now
	switch {
	case p.inv.env.StderrTerminal:
		fmt.Fprintf(p.inv.env.Stderr, "\r\x1b[K%s", p.inv.aside().Dim("["+text+"]"))
		p.line = true
	case !p.quiet:
		p.inv.note("%s", text)
	}
}

// end erases the line.
func (p *progress) end() {
	if p.line {
		fmt.Fprint(p.inv.env.Stderr, "\r\x1b[K")
	}
}
