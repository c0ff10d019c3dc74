package plan

import "github.com/leasehold/leasehold/store"

// motive is why an instance is created or leaves: its purpose, on which later decisions are based,
// and the rule and the cause, which are for readers.
type motive struct {
	purpose store.Purpose
	rule    string
	cause   store.Cause
}

// placed adds that a new instance takes the place of another.
func (w motive) placed(id string) motive {
	w.cause = with(w.cause, func(a *store.CauseAlso) { a.Place = id })
	return w
}

// succeeded adds that another member is healthy in the member's place.
func (w motive) succeeded(keep *member) motive {
	w.cause.Heir = keep.ID()
	return w
}
