package imagined

import (
	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/provider"
)

// lister lists one provider's machines, as leader.Lists schedules it.
type lister struct {
	t     *term
	cloud *cloud
	lists leader.Lists
	wakes int // the last time to look that was scheduled; earlier ones are void
}

func (l *lister) ask() {
	l.lists.Request()
	l.wait()
}

// wait has the next List begin when it is due.
func (l *lister) wait() {
	at, ok := l.lists.Next()
	if !ok {
		return // what is due is known once the running List has ended
	}
	l.wakes++
	wake := l.wakes
	l.t.after(at.Sub(l.t.now()), !l.lists.Requested(), func() {
		if wake == l.wakes {
			l.list()
		}
	})
}

func (l *lister) list() {
	t, begun := l.t, l.t.now()
	l.lists.Begin(begun)
	l.cloud.list(func(machines []provider.Machine, err error) {
		t.after(0, true, func() {
			if err == nil {
				t.evidence.ListedBy(l.cloud.cfg.Name, begun, machines, t.content)
			}
			l.lists.End(t.now(), t.settings(), err)
			l.wait()
		})
	})
}
