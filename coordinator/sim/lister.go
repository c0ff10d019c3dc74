package sim

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// asksApart is the least time between two Lists, as coordinator/lister.go has it.
const asksApart = time.Second

// lister lists one provider's machines: every provider_poll, and at once when it is asked to. There
// is one List at a time, and one begun after the last who asked.
type lister struct {
	t       *term
	cloud   *cloud
	listing bool
	asked   bool
	number  int           // of the pause that counts
	rested  time.Duration // no List before
}

func (l *lister) ask() {
	if l.listing {
		l.asked = true
		return
	}
	l.pause(max(0, l.rested-l.t.w.clock), false)
}

func (l *lister) pause(d time.Duration, routine bool) {
	l.number++
	number := l.number
	l.t.after(d, routine, func() {
		if !l.listing && l.number == number {
			l.list()
		}
	})
}

func (l *lister) list() {
	t := l.t
	l.listing, l.asked = true, false
	begun := t.now()
	began := t.w.clock
	l.cloud.list(func(machines []provider.Machine, err error) {
		t.after(0, true, func() {
			if err == nil {
				t.evidence.ListedBy(l.cloud.cfg.Name, begun, machines, t.content)
			}
			l.listing = false
			wait := time.Duration(0)
			var throttled *provider.ThrottledError
			if errors.As(err, &throttled) {
				wait = throttled.After
			}
			l.rested = max(t.w.clock+wait, began+asksApart)
			if l.asked {
				l.pause(l.rested-t.w.clock, false)
				return
			}
			l.pause(max(t.content.Shard.Record.Settings.ProviderPoll.D(), wait), true)
		})
	})
}
