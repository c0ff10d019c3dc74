package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// storyLine is one entry of the journal in a story.
type storyLine struct {
	At       time.Time      `json:"at"`
	Instance string         `json:"instance,omitempty"`
	What     string         `json:"what"` // the verdict or the decision
	To       store.Phase    `json:"to,omitempty"`
	Why      string         `json:"why,omitempty"`
	Rule     string         `json:"rule,omitempty"`
	Revision store.Revision `json:"revision"` // revision of the state it was decided on
	Evidence []string       `json:"evidence,omitempty"`
}

func storyLines(entries []store.JournalEntry) []storyLine {
	lines := make([]storyLine, len(entries))
	for i, e := range entries {
		lines[i] = storyLine{
			At: e.At, Instance: e.Instance, What: e.What, To: e.To, Why: reason.Text(e.Cause, e.Why), Rule: e.Rule,
			Revision: e.Revision, Evidence: reason.Evidence(&e),
		}
	}
	return lines
}

// lookBack is how far back the journal is read, step by step until enough is found: it may hold a
// hundred thousand entries, and older ones if the shard keeps them for longer than by default.
var lookBack = []time.Duration{2 * time.Hour, 24 * time.Hour, farBack}

// entriesOf reads the journal entries about a name, in the order of writing, further and further
// back until there are enough. It also returns how far back it read. It reads nothing twice, and
// keeps and decodes only entries that contain the name.
func (inv *Invocation) entriesOf(ctx context.Context, name string, concerns func(store.JournalEntry) bool,
	enough func([]store.JournalEntry) bool,
) (found []store.JournalEntry, since time.Time, err error) {
	var kvs []store.KV
	until := "" // start of the part that was read before
	for _, back := range lookBack {
		since = inv.env.Now().Add(-back)
		piece, err := inv.mentions(ctx, name, inv.keys().EventsFrom(since), until)
		if err != nil {
			return nil, since, err
		}
		until = inv.keys().EventsFrom(since)
		kvs = append(kvs, piece...)
		slices.SortStableFunc(kvs, func(a, b store.KV) int { return cmp.Compare(a.Modified, b.Modified) })
		found = found[:0]
		for _, kv := range kvs {
			e, err := store.Decode[store.JournalEntry](kv)
			if err != nil {
				return nil, since, err
			}
			if concerns(e.Record) {
				found = append(found, e.Record)
			}
		}
		if enough(found) {
			break
		}
	}
	return found, since, nil
}

// mentions returns the journal entries that contain a name, from one key until before another; ""
// is the end of the journal. JSON does not escape names.
func (inv *Invocation) mentions(ctx context.Context, name, from, until string) (kvs []store.KV, err error) {
	err = atOneRevision(0, func() error {
		kvs = nil
		return inv.parts(ctx, inv.keys().Of(store.KindEvents), from, 0, 0, func(part store.Part) bool {
			for _, kv := range part.KVs {
				if until != "" && kv.Key >= until {
					return false
				}
				if bytes.Contains(kv.Value, []byte(name)) {
					kvs = append(kvs, kv)
				}
			}
			return true
		})
	})
	return kvs, err
}

// life holds the journal's entries about an instance.
type life struct {
	entries []store.JournalEntry // about it, or about others but naming it
	claims  []store.JournalEntry // requests of clients that only claimed its name; not part of its story
	since   time.Time            // how far back the journal was read
	older   bool                 // its beginning was not found, and there are entries that were not read
}

// lifeOf reads the journal's entries about an instance, since its creation if that is known.
func (inv *Invocation) lifeOf(ctx context.Context, id string, made time.Time) (l life, err error) {
	about := func(e store.JournalEntry) bool { return concerns(&e, id) }
	whole := false
	found, since, err := inv.entriesOf(ctx, id, about, func(found []store.JournalEntry) bool {
		found, _ = apart(found)
		born := slices.ContainsFunc(found,
			func(e store.JournalEntry) bool { return e.Instance != id || e.To == store.Pending })
		whole = born && slices.ContainsFunc(found, func(e store.JournalEntry) bool { return e.Instance == id }) ||
			!made.IsZero() && len(found) > 0 && !found[0].At.After(made.Add(time.Minute))
		return whole
	})
	if err != nil {
		return l, err
	}
	l.since = since
	if l.entries, l.claims = apart(found); whole || len(l.entries) == 0 {
		return l, nil
	}
	err = inv.parts(ctx, inv.keys().Of(store.KindEvents), "", 1, 0, func(part store.Part) bool {
		l.older = len(part.KVs) > 0 && part.KVs[0].Key < inv.keys().EventsFrom(since)
		return false
	})
	return l, err
}

// stopped returns how far back the journal was read, if older entries may have more about the
// instance.
func (l life) stopped(id string, now time.Time) string {
	if !l.older {
		return ""
	}
	return fmt.Sprintf("The journal was read from %s on, which does not include its creation; "+
		"older entries: leasehold events -i %s --since %dh",
		story.Clock(l.since, now), id, int(4*now.Sub(l.since).Hours()))
}

// apart separates the entries of clients that only claimed the instance's name.
func apart(entries []store.JournalEntry) (life, claims []store.JournalEntry) {
	for _, e := range entries {
		if e.Claimed {
			claims = append(claims, e)
		} else {
			life = append(life, e)
		}
	}
	return life, claims
}

// concerns reports whether an entry is about an instance, or names it. An entry without an effect
// names other instances only in its texts: verdicts, notes of gateways, and the decisions of
// releases before effects.
func concerns(e *store.JournalEntry, id string) bool {
	also := e.Cause.Also
	switch {
	case e.Instance == id || e.Replacement == id || e.Effect.Instance == id || e.Effect.Then.Instance == id:
		return true
	case e.Cause.Other == id || e.Cause.Heir == id:
		return true
	case also != nil && (also.Keeper == id || also.Until == id || also.Place == id):
		return true
	}
	return e.Effect.Kind == "" && (names(e.What, id) || names(e.Why, id))
}

// names reports whether a text contains a name as a whole word.
func names(text, name string) bool {
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(name):]
		if !endsInName(before) && !beginsWithName(after) {
			return true
		}
		rest = after
	}
}

func endsInName(s string) bool         { return s != "" && ofName(s[len(s)-1]) }
func beginsWithName(s string) bool     { return s != "" && ofName(s[0]) }
func ofName(c byte) bool               { return c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }
func leaves(e store.JournalEntry) bool { return e.To == store.Draining || e.To == store.Deleting }

// partingOf returns the decision that removed an instance: the last one that made it leave, at once
// or by a drain.
func partingOf(id string, life []store.JournalEntry) (decision store.JournalEntry, found bool) {
	for _, e := range slices.Backward(life) {
		switch {
		case e.Instance != id:
		case leaves(e):
			decision, found = e, true
			if e.To == store.Draining {
				return decision, true
			}
		case found && e.To != "":
			return decision, true
		}
	}
	return decision, found
}

// endOf returns when an instance passed the point of no return; zero if the journal does not say.
func endOf(id string, life []store.JournalEntry) time.Time {
	for _, e := range slices.Backward(life) {
		if e.Instance == id && e.To == store.Deleting {
			return e.At
		}
	}
	return time.Time{}
}

// journaledVerdicts returns the last verdicts that a leader journaled about instances.
func journaledVerdicts(entries []store.JournalEntry) map[string]store.JournalEntry {
	last := map[string]store.JournalEntry{}
	for _, e := range entries {
		if reason.IsVerdict(&e) {
			last[e.Instance] = e
		}
	}
	return last
}

// successorOf returns the instance created as the replacement of another.
func successorOf(id string, life []store.JournalEntry) string {
	for _, e := range slices.Backward(life) {
		if e.Replacement != "" && e.Instance == id {
			return e.Replacement
		}
	}
	return ""
}

// countingDecision returns the decision about an instance that matters to the reader: its removal,
// or else the last one that says what would have prevented it. Its creation and orders do not
// count.
func countingDecision(id string, life []store.JournalEntry) (store.JournalEntry, bool) {
	if e, found := partingOf(id, life); found && e.Otherwise != "" {
		return e, true
	}
	for _, e := range slices.Backward(life) {
		if e.Instance == id && reason.Matters(&e) {
			return e, true
		}
	}
	return store.JournalEntry{}, false
}
