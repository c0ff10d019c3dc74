package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Limits on logging files and secrets that agents do not get.
const (
	undeliveredEvery = time.Minute // how often those after the first are summed up
	maxUndelivered   = 1000        // causes that are counted one by one
)

// undelivered logs the files and secrets that agents do not get. One missing secret affects every
// instance of a group, and repeats with each change: so the first is logged at once, and the others
// are counted, by group, file and cause.
type undelivered struct {
	log *slog.Logger

	mu      sync.Mutex
	counts  map[undeliveredCause]*undeliveredCount
	skipped int // beyond maxUndelivered
}

type undeliveredCause struct{ what, group, name, why string }

type undeliveredCount struct {
	times     int // since the last sum
	instances map[string]bool
}

// add records that an instance does not get a file or a secret.
func (u *undelivered) add(what, group, instance, name, why string) {
	cause := undeliveredCause{what, group, name, why}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.counts[cause]; c != nil {
		c.times++
		c.instances[instance] = true
		return
	}
	if len(u.counts) >= maxUndelivered {
		u.skipped++
		return
	}
	if u.counts == nil {
		u.counts = map[undeliveredCause]*undeliveredCount{}
	}
	u.counts[cause] = &undeliveredCount{instances: map[string]bool{}}
	u.log.Warn("not delivered", "what", what, "group", group, "name", name, "why", why, "instance", instance)
}

// run sums up until ctx ends.
func (u *undelivered) run(ctx context.Context) {
	tick := time.NewTicker(undeliveredEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			u.sum()
			return
		case <-tick.C:
			u.sum()
		}
	}
}

// sum logs what was counted since the last time. A cause that did not recur is forgotten: its next
// occurrence counts as the first.
func (u *undelivered) sum() {
	u.mu.Lock()
	defer u.mu.Unlock()
	var causes []undeliveredCause
	for cause, c := range u.counts {
		if c.times == 0 {
			delete(u.counts, cause)
			continue
		}
		causes = append(causes, cause)
	}
	slices.SortFunc(causes, func(a, b undeliveredCause) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.name, b.name), cmp.Compare(a.why, b.why))
	})
	for _, cause := range causes {
		c := u.counts[cause]
		u.log.Warn("not delivered", "what", cause.what, "group", cause.group, "name", cause.name, "why", cause.why,
			"instances", len(c.instances), "times", c.times)
		*c = undeliveredCount{instances: map[string]bool{}}
	}
	if u.skipped > 0 {
		u.log.Warn("more files and secrets are not delivered", "times", u.skipped)
		u.skipped = 0
	}
}
