package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/store"
)

// Limits of watches.
const (
	deltaEvery = 250 * time.Millisecond // at most
	beatEvery  = 5 * time.Second        // at least, also if nothing changes
	writeTime  = 5 * time.Second        // for one message: a slower client is dropped
)

// touched is signalled when something has changed.
type touched chan struct{}

func (t touched) touch() {
	select {
	case t <- struct{}{}:
	default: // a signal is pending
	}
}

// Listed implements cache.Listener, as the next two do.
func (t touched) Listed(*cache.Content) { t.touch() }

// Changed signals a change.
func (t touched) Changed(*cache.Content, []cache.Change) { t.touch() }

// Interrupted signals that the cache gets old.
func (t touched) Interrupted(error) { t.touch() }

// watch sends a document whenever it has changed, whole; of events it sends the new ones. A client
// that reconnects gets the current document: nothing is replayed.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, do func(*http.Request) (any, error)) {
	select {
	case h.watches <- struct{}{}:
		defer func() { <-h.watches }()
	default:
		w.Header().Set("Retry-After", "5")
		refuse(w, &Problem{
			Status: http.StatusServiceUnavailable, Detail: fmt.Sprintf("there are %d watches already", maxWatches),
		})
		return
	}
	dirty := make(touched, 1)
	defer h.Cache.Listen(dirty)()
	next := h.stream(r, do)
	messages, err := next()
	if err != nil {
		refuse(w, problemOf(err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a stream may last; each write has its own deadline
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	moved := h.Journal.Moved()
	for {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := w.Write(messages); err != nil || control.Flush() != nil {
			return
		}
		pause := time.NewTimer(deltaEvery)
		select {
		case <-h.end:
			pause.Stop()
			return
		case <-r.Context().Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		beating := false
		select {
		case <-h.end:
			return
		case <-r.Context().Done():
			return
		case <-dirty:
		case <-moved:
		case <-beat.C:
			beating = true
		}
		moved = h.Journal.Moved() // before the document is made: later changes are seen next time
		if messages, err = next(); err != nil {
			messages = message("gone", 0, problemOf(err))
		}
		if len(messages) == 0 && beating {
			messages = message("heartbeat", h.revision(), struct {
				Stale bool `json:"stale"`
			}{h.Views.Truth(time.Now()).Stale})
		}
	}
}

func (h *Handler) revision() (rev store.Revision) {
	h.Cache.View(func(c *cache.Content) { rev = c.Revision })
	return rev
}

// stream returns a function that makes the messages that a client lacks.
func (h *Handler) stream(r *http.Request, do func(*http.Request) (any, error)) func() ([]byte, error) {
	if r.URL.Path == Root+"events" {
		return h.eventStream(r)
	}
	var last []byte
	return func() ([]byte, error) {
		document, err := do(r)
		if err != nil {
			return nil, err
		}
		if shard, is := document.(Shard); is { // that etcd answered again is no change
			shard.Heard, shard.Revision = time.Time{}, 0
			document = shard
		}
		if group, is := document.(Group); is {
			group.StateAt = 0
			document = group
		}
		if story, is := document.(Story); is {
			story.Revision = 0
			document = story
		}
		text, err := json.Marshal(document)
		if err != nil || bytes.Equal(text, last) {
			return nil, err
		}
		last = text
		return message("state", h.revision(), json.RawMessage(text)), nil
	}
}

// eventStream begins with the last entries, as many as limit says.
func (h *Handler) eventStream(r *http.Request) func() ([]byte, error) {
	var f feed
	return func() ([]byte, error) {
		wanted, err := wantedOf(r)
		if err != nil {
			return nil, err
		}
		most := wanted.Most
		wanted.Most = maxEvents // more than can come within a pause, and clocks differ
		var all []byte
		for _, e := range f.take(h.Views.Events(wanted).Entries, most) {
			all = append(all, message("event", h.revision(), e)...)
		}
		return all, nil
	}
}

// feed knows which entries of the journal a client was sent.
type feed struct {
	sent map[string]bool // by name; nil: it was sent none yet
}

// take returns the entries of a listing, which has the newest first, that the client lacks, the
// oldest first. At first it lacks only the newest ones, at most as many as given. All entries of
// the listing count as sent then.
func (f *feed) take(newest []journal.Entry, most int) (fresh []Event) {
	begins := f.sent == nil
	listed := make(map[string]bool, len(newest))
	for i, e := range slices.Backward(newest) {
		listed[e.Name] = true
		if begins && i < most || !begins && !f.sent[e.Name] {
			fresh = append(fresh, Event{e.Name, e.JournalEntry})
		}
	}
	if begins || len(f.sent) > 4*maxEvents {
		f.sent = listed
	} else {
		maps.Copy(f.sent, listed)
	}
	return fresh
}

// message is a message in the format of event streams. Its ID is the revision.
func message(name string, rev store.Revision, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("{}")
	}
	return fmt.Appendf(nil, "event: %s\nid: %d\ndata: %s\n\n", name, rev, text)
}
