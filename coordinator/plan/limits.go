package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// LimitsTurn is the name of the key below turns/ that every creation compares and writes while the
// shard has limits: of two that were planned with room for one, the second finds the key changed
// (CAP-1). No group has such a name.
const LimitsTurn = "@limits"

// limitRetry is how soon work that waits for a limit looks again: what makes room may belong to
// another group, whose changes do not wake this one.
const limitRetry = 10 * time.Second

// Limit is a limit of instances in the shard, and how much of it is used.
type Limit struct {
	Name     string // as the settings say: limit_by_provider ec2
	Provider string // that it is about; "": any
	Label    string // of the group, and its value: team=shop; "": any
	Most     int
	Used     int // instances that exist or are intended, whatever their phase
	Vacant   int // slots whose instance has left and whose replacement is not requested yet
}

// kind is what limits tell instances apart by.
type kind struct {
	provider string
	labels   map[string]string
}

// Covers reports whether instances of a provider, in a group with these labels, count.
func (l *Limit) Covers(provider string, labels map[string]string) bool {
	if l.Label == "" {
		return l.Provider == "" || l.Provider == provider
	}
	for name, value := range labels {
		if name+"="+value == l.Label {
			return true
		}
	}
	return false
}

// room is what the limits leave for the drafts of one plan, which take it one after the other.
type room struct{ limits []Limit }

func newRoom(limits []Limit) *room {
	if len(limits) == 0 {
		return nil
	}
	return &room{limits: append([]Limit(nil), limits...)}
}

// take counts an instance that is drafted. If its slot waited for one, nothing is kept for it any
// more.
func (r *room) take(k kind, waited bool) {
	for i := range r.limits {
		if l := &r.limits[i]; l.Covers(k.provider, k.labels) {
			l.Used++
			if waited {
				l.Vacant--
			}
		}
	}
}

// blocks returns the limit that leaves no room for an instance. Room that slots wait for is for
// these alone.
func (r *room) blocks(k kind, waited bool) *Limit {
	for i := range r.limits {
		l := &r.limits[i]
		kept := l.Vacant
		if waited {
			kept = 0
		}
		if l.Covers(k.provider, k.labels) && l.Used+kept >= l.Most {
			return l
		}
	}
	return nil
}

// reached says that the limit is, as a refusal does.
func (l *Limit) reached() string { return fmt.Sprintf("%s %d is reached (CAP-1)", l.Name, l.Most) }

func (d *budget) kind(spec *store.InstanceSpec) kind { return kind{spec.Provider, d.spec.Labels} }

// overLimit returns the limit that keeps the group from making an instance; nil: none does.
// heals: a slot waits for it.
func (d *budget) overLimit(heals bool) *Limit {
	if d.room == nil {
		return nil
	}
	l := d.room.blocks(kind{d.spec.Provider, d.spec.Labels}, heals)
	if l != nil {
		d.wake(d.now.Add(limitRetry))
	}
	return l
}

// limited reports whether a limit keeps work from making an instance, and records that.
func (d *budget) limited(what task, heals bool) bool {
	l := d.overLimit(heals)
	if l == nil {
		return false
	}
	of := store.BlockedFacts{Name: l.Name, Limit: l.Most}
	if !heals && l.Used < l.Most {
		of.Count = l.Vacant
	}
	d.block("CAP-1", what, store.BlockedByLimit, of)
	return true
}
