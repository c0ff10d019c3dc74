package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// LimitsTurn is the name of the key below turns/ that every creation compares and writes while the
// shard has limits: if two creations were planned with room for one, the second finds the key
// changed (CAP-1). No group has this name.
const LimitsTurn = "@limits"

// limitRetry is how soon work that waits for a limit is planned again: room may come from another
// group, whose changes do not trigger this group's plan.
const limitRetry = 10 * time.Second

// Limit is a limit of instances in the shard, and its current use.
type Limit struct {
	Name     string // as in the settings: limit_by_provider ec2
	Provider string // the provider it applies to; "": any
	Label    string // the group's label and its value: team=shop; "": any
	Most     int
	Used     int // instances that exist or are intended, whatever their phase
	Vacant   int // slots whose instance has left and whose replacement is not requested yet
}

// kind is what limits distinguish instances by.
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

// room is what the limits leave for the drafts of one plan, which use it one after the other.
type room struct{ limits []Limit }

func newRoom(limits []Limit) *room {
	if len(limits) == 0 {
		return nil
	}
	return &room{limits: append([]Limit(nil), limits...)}
}

// take counts a drafted instance. If its slot had room reserved, the reservation ends.
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

// blocks returns the limit that leaves no room for an instance. Reserved room is only for the slots
// that wait for it.
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

// reached describes the limit as a refusal.
func (l *Limit) reached() string { return fmt.Sprintf("%s %d is reached (CAP-1)", l.Name, l.Most) }

func (d *budget) kind(spec *store.InstanceSpec) kind { return kind{spec.Provider, d.spec.Labels} }

// overLimit returns the limit that forbids the group another instance; nil if none does. heals
// means that a slot waits for the instance.
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

// limitBlocker is overLimit as what blocks the work that needs the instance.
func (d *budget) limitBlocker(heals bool) *blocker {
	l := d.overLimit(heals)
	if l == nil {
		return nil
	}
	of := store.BlockedFacts{Name: l.Name, Limit: l.Most}
	if !heals && l.Used < l.Most {
		of.Count = l.Vacant
	}
	return blocked("CAP-1", store.BlockedByLimit, of)
}
