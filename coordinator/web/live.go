package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/web/page"
)

// Limits of live pages.
const (
	maxStreams = 64                     // at once; further pages poll every few seconds
	deltaEvery = 250 * time.Millisecond // at most
	beatEvery  = 5 * time.Second        // at least, also if nothing changes
	writeTime  = 5 * time.Second        // for one message: a slower reader is dropped
	maxWaiting = 8                      // messages queued for a reader
)

// live sends the changes of pages to their readers. A page is rendered once for all of its readers,
// at most four times a second. Nothing is replayed: a reader that was away or too slow gets what
// differs from what it has.
type live struct {
	pages   *page.Pages
	cache   *cache.Cache
	journal *journal.Memory

	mu      sync.Mutex
	ctx     context.Context // of the server; nil: it is not running
	feeds   map[string]*feed
	streams int
	at      sync.WaitGroup
}

// update is a message to readers.
type update struct {
	Revision int64         `json:"revision"`
	Stale    bool          `json:"stale"`
	Top      string        `json:"top"`
	Have     string        `json:"have"` // the digests of the page after the update
	Said     string        `json:"said,omitempty"`
	Changes  []page.Change `json:"changes"`
}

// feed is a page with at least one reader.
type feed struct {
	live  *live
	key   string
	path  string
	query url.Values
	dirty chan struct{}
	stop  context.CancelFunc

	mu      sync.Mutex
	shown   page.Page
	readers map[chan []byte]struct{}
}

func newLive(pages *page.Pages, c *cache.Cache, j *journal.Memory) *live {
	return &live{pages: pages, cache: c, journal: j, feeds: map[string]*feed{}}
}

// run admits readers until ctx ends.
func (l *live) run(ctx context.Context) {
	l.mu.Lock()
	l.ctx = ctx
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	l.ctx = nil
	l.mu.Unlock()
	l.at.Wait()
}

// serve answers with a stream of changes. If the client asks once, it gets the changes that it
// lacks.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	path := query.Get("page")
	of, err := url.ParseQuery(query.Get("query"))
	if err != nil {
		say(w, http.StatusBadRequest, "query: cannot be read")
		return
	}
	if query.Has("once") {
		l.once(w, r, path, of, query.Get("have"))
		return
	}
	f, messages, first, code := l.join(path, of, query.Get("have"))
	if code != 0 {
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "5")
		}
		say(w, code, http.StatusText(code))
		return
	}
	defer f.leave(messages)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a stream may last; each write has its own deadline
	for text := first; ; {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := w.Write(text); err != nil || control.Flush() != nil {
			return
		}
		var open bool
		select {
		case <-r.Context().Done():
			return
		case text, open = <-messages:
			if !open {
				return
			}
		}
	}
}

func (l *live) once(w http.ResponseWriter, r *http.Request, path string, query url.Values, have string) {
	shown, found, err := l.pages.At(path, query, time.Now())
	switch {
	case !found:
		say(w, http.StatusNotFound, http.StatusText(http.StatusNotFound))
		return
	case err != nil:
		say(w, http.StatusInternalServerError, http.StatusText(http.StatusInternalServerError))
		return
	}
	send(w, r, http.StatusOK, "application/json", encoded(updateOf(&shown, shown.Missing(have))))
}

func updateOf(p *page.Page, changes []page.Change) update {
	return update{
		Revision: int64(p.Revision), Stale: p.Truth.Stale, Top: string(p.Top.HTML()), Have: p.Have(), Said: p.Said,
		Changes: changes,
	}
}

// encoded encodes an update as JSON. It does not escape angle brackets, since the JSON is not part
// of a document: escapes would make up a third of it.
func encoded(u update) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(u); err != nil { // there are only texts in it
		return []byte("{}")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// event is a message in the format of event streams. Its ID is the revision.
func event(name string, u update) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\nid: %d\ndata: %s\n\n", name, u.Revision, encoded(u))
	return b.Bytes()
}

// join adds a reader of a page and returns its first message; if it cannot, an HTTP status.
func (l *live) join(path string, query url.Values, have string) (f *feed, messages chan []byte, first []byte,
	code int,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.streams >= maxStreams {
		return nil, nil, nil, http.StatusServiceUnavailable
	}
	key := path + "?" + query.Encode()
	f = l.feeds[key]
	if f == nil {
		shown, found, err := l.pages.At(path, query, time.Now())
		switch {
		case !found:
			return nil, nil, nil, http.StatusNotFound
		case err != nil:
			return nil, nil, nil, http.StatusInternalServerError
		}
		f = &feed{
			live: l, key: key, path: path, query: query, dirty: make(chan struct{}, 1), shown: shown,
			readers: map[chan []byte]struct{}{},
		}
		ctx, stop := context.WithCancel(l.ctx)
		f.stop = stop
		l.feeds[key] = f
		l.at.Go(func() { f.run(ctx) })
	}
	l.streams++
	messages = make(chan []byte, maxWaiting)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers[messages] = struct{}{}
	return f, messages, event("snapshot", updateOf(&f.shown, f.shown.Missing(have))), 0
}

// leave removes a reader; the last one ends the feed.
func (f *feed) leave(messages chan []byte) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	f.live.streams--
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, messages)
	if len(f.readers) == 0 && f.live.feeds[f.key] == f {
		delete(f.live.feeds, f.key)
		f.stop()
	}
}

// run renders the page when something has changed, and for each heartbeat.
func (f *feed) run(ctx context.Context) {
	defer f.end()
	defer f.live.cache.Listen(f)()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	moved := f.live.journal.Moved()
	for {
		beating := false
		select {
		case <-ctx.Done():
			return
		case <-f.dirty:
		case <-moved:
		case <-beat.C:
			beating = true
		}
		moved = f.live.journal.Moved() // before the page is made: later changes are seen next time
		f.tell(beating)
		pause.Reset(deltaEvery)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// tell sends what has changed; for a heartbeat, also that nothing has.
func (f *feed) tell(beating bool) {
	next, found, err := f.live.pages.At(f.path, f.query, time.Now())
	if !found || err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := page.Changes(f.shown.Main, next.Main)
	stale := f.shown.Truth.Stale != next.Truth.Stale || f.shown.Truth.Leader != next.Truth.Leader
	if len(changes) == 0 && !beating && !stale {
		return
	}
	u := updateOf(&next, changes)
	if next.Said == f.shown.Said {
		u.Said = ""
	}
	name := "delta"
	if len(changes) == 0 {
		name = "heartbeat"
	}
	f.shown = next
	text := event(name, u)
	for messages := range f.readers {
		select {
		case messages <- text:
		default: // too slow: it reconnects, and gets what it lacks
			delete(f.readers, messages)
			close(messages)
		}
	}
}

// end drops all readers when the server ends.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for messages := range f.readers {
		delete(f.readers, messages)
		close(messages)
	}
}

func (f *feed) touch() {
	select {
	case f.dirty <- struct{}{}:
	default: // an update is pending
	}
}

// Listed implements cache.Listener, as the next two do.
func (f *feed) Listed(*cache.Content) { f.touch() }

// Changed schedules an update if a change can be seen on the page.
func (f *feed) Changed(_ *cache.Content, changes []cache.Change) {
	for _, c := range changes {
		if page.Concerns(f.path, c) {
			f.touch()
			return
		}
	}
}

// Interrupted schedules an update: the page gets old.
func (f *feed) Interrupted(error) { f.touch() }
