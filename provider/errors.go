package provider

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what a failed call means for what comes next (PROV-5).
type Kind string

// The kinds of error. One without a kind is temporary.
const (
	// Temporary: something went wrong, and the call may or may not have had its effect.
	Temporary Kind = "temporary"
	// Capacity: no room for such a machine in this zone now. It was not made. Another zone or
	// another type may have room.
	Capacity Kind = "capacity"
	// Quota: the account may not have more of this. It was not made, and no other machine of the
	// provider will be until the quota is raised or something is removed.
	Quota Kind = "quota"
	// Credentials: the provider refuses the caller. Nothing was done, and nothing will be until
	// the credentials are mended.
	Credentials Kind = "credentials"
	// Invalid: the template is wrong, and repeating the call does not help.
	Invalid Kind = "invalid"
	// NotFound: there is no such machine.
	NotFound Kind = "not_found"
	// Deleted: the instance was deleted before; its ID is never used again.
	Deleted Kind = "deleted"
	// Throttled: ask again only after a while. Nothing was done.
	Throttled Kind = "throttled"
)

// Kinds are all kinds of error.
var Kinds = []Kind{Temporary, Capacity, Quota, Credentials, Invalid, NotFound, Deleted, Throttled}

// Error is a failed call whose meaning the provider knows.
type Error struct {
	Kind    Kind
	Scope   string        // what it is of, in the provider's words: a zone, a type, a quota
	Message string        // for people
	After   time.Duration // when to ask again, of one that is throttled
}

func (e *Error) Error() string {
	text := map[Kind]string{
		Capacity: "out of capacity", Quota: "quota used up", Credentials: "credentials refused",
		Invalid: "invalid template", NotFound: "no such machine", Deleted: "instance was deleted",
		Throttled: "throttled: ask again in " + e.After.String(),
	}[e.Kind]
	for _, part := range []string{e.Scope, e.Message} {
		switch {
		case part == "":
		case text == "":
			text = part
		default:
			text = fmt.Sprintf("%s: %s", text, part)
		}
	}
	return text
}

// Is has errors.Is find an error of the same kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Scope == "" && t.Message == ""
}

// The kinds of error, for errors.Is.
var (
	ErrCapacity    error = &Error{Kind: Capacity}
	ErrQuota       error = &Error{Kind: Quota}
	ErrCredentials error = &Error{Kind: Credentials}
	ErrInvalid     error = &Error{Kind: Invalid}
	ErrNotFound    error = &Error{Kind: NotFound}
	ErrDeleted     error = &Error{Kind: Deleted}
	ErrThrottled   error = &Error{Kind: Throttled}
)

// KindOf returns what an error means.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Temporary
}

// RetryAfter returns how long a throttled call is to wait, and whether the error is of that kind.
func RetryAfter(err error) (time.Duration, bool) {
	var e *Error
	if errors.As(err, &e) && e.Kind == Throttled {
		return e.After, true
	}
	return 0, false
}

// ThrottledFor is the error of a call that is to come again after a while.
func ThrottledFor(after time.Duration) error { return &Error{Kind: Throttled, After: after} }
