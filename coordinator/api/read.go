package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// Limits of a list of events.
const (
	usualEvents = 100
	maxEvents   = 1000
)

var errUnread = &Problem{
	Status: http.StatusServiceUnavailable, Detail: "this replica has not read the shard from etcd yet",
	Remedies: story.Advise("ask again in a moment, or another replica"),
}

func absent(kind, name string) *Problem {
	return &Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("no %s %q", kind, name)}
}

// reading answers with a document, or with a stream of it.
func (h *Handler) reading(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			h.watch(w, r, do)
			return
		}
		document, err := do(r)
		if err != nil {
			refuse(w, problemOf(err))
			return
		}
		if d, edited := document.(interface{ etag() store.Revision }); edited && d.etag() != 0 {
			w.Header().Set("ETag", tag(d.etag()))
		}
		answer(w, http.StatusOK, document)
	}
}

func (h *Handler) readShard() (Shard, error) {
	v, read := h.Views.Shard(time.Now())
	if !read {
		return Shard{}, errUnread
	}
	return shardOf(&v), nil
}

func (h *Handler) shard(*http.Request) (any, error) { return h.readShard() }

func (h *Handler) groups(*http.Request) (any, error) {
	s, err := h.readShard()
	return s.Groups, err
}

func (h *Handler) readGroup(r *http.Request) (*view.Group, error) {
	name := r.PathValue("group")
	v, read := h.Views.Group(name, time.Now())
	switch {
	case !read:
		return nil, errUnread
	case !v.Found:
		return nil, absent("group", name)
	}
	return &v, nil
}

// group answers with the spec, as a group file in JSON, which PUT takes. If-Match takes its ETag.
func (h *Handler) group(w http.ResponseWriter, r *http.Request) {
	v, err := h.readGroup(r)
	if err == nil && (v.Known.Gone() || v.Known.Bad != nil) {
		err = &Problem{
			Status: http.StatusConflict, Detail: "the group has no spec that can be used; its status says why",
			Remedies: story.Advise("read " + Root + "groups/" + v.Name + "/status"),
		}
	}
	if err != nil {
		refuse(w, problemOf(err))
		return
	}
	w.Header().Set("ETag", tag(v.Known.Revision()))
	answer(w, http.StatusOK, fileOf(v.Known.Spec))
}

// fileOf is a spec without the fields that a group file cannot have.
func fileOf(g store.Group) map[string]any {
	g.OperatorState = store.OperatorState{}
	var file map[string]any
	_ = json.Unmarshal(store.Encode(g), &file) // it was just encoded
	delete(file, "schema")
	return file
}

func (h *Handler) status(r *http.Request) (any, error) {
	v, err := h.readGroup(r)
	if err != nil {
		return nil, err
	}
	return groupOf(v), nil
}

func (h *Handler) instances(r *http.Request) (any, error) {
	v, err := h.readGroup(r)
	if err != nil {
		return nil, err
	}
	list, is := []Instance{}, r.URL.Query().Get("is")
	for _, u := range v.Units {
		if is == "" || u.Kind == is {
			list = append(list, instanceOf(&u))
		}
	}
	return list, nil
}

// drills lists the drills of a group in the journal in memory, also of a group that is gone.
func (h *Handler) drills(r *http.Request) (any, error) {
	name := r.PathValue("group")
	all, read := h.Views.Drills(name)
	if !read {
		return nil, errUnread
	}
	if len(all) == 0 {
		if _, err := h.readGroup(r); err != nil {
			return nil, err
		}
	}
	return append([]view.Drill{}, all...), nil
}

func (h *Handler) instance(r *http.Request) (any, error) {
	id := r.PathValue("instance")
	v, read := h.Views.Instance(id, time.Now())
	switch {
	case !read:
		return nil, errUnread
	case !v.There && len(v.Events) == 0:
		return nil, absent("instance", id)
	}
	return storyOf(&v), nil
}

// wantedOf reads which events a request selects.
func wantedOf(r *http.Request) (view.Wanted, error) {
	q := r.URL.Query()
	wanted := view.Wanted{
		Group: q.Get("group"), Instance: q.Get("instance"), Rule: q.Get("rule"), Text: q.Get("text"),
		Before: q.Get("before"), Most: usualEvents,
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxEvents {
			return wanted, &Problem{
				Status: http.StatusBadRequest, Detail: fmt.Sprintf("limit: %q: must be 1 to %d", text, maxEvents),
			}
		}
		wanted.Most = n
	}
	return wanted, nil
}

// usualReport is the default span of a report, longestReport the longest.
const (
	usualReport   = 7 * 24 * time.Hour
	longestReport = 366 * 24 * time.Hour
)

func (h *Handler) report(r *http.Request) (any, error) {
	span := usualReport
	if text := r.URL.Query().Get("span"); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil || span <= 0 || span > longestReport {
			return nil, &Problem{
				Status: http.StatusBadRequest, Detail: fmt.Sprintf("span is %.40q: more than 0 and up to %s", text, longestReport),
				Remedies: story.Advise("read " + Root + "report?span=24h"),
			}
		}
	}
	doc, read := h.Views.Report(r.URL.Query().Get("group"), span, time.Now())
	if !read {
		return nil, errUnread
	}
	return doc, nil
}

func (h *Handler) events(r *http.Request) (any, error) {
	wanted, err := wantedOf(r)
	if err != nil {
		return nil, err
	}
	v := h.Views.Events(wanted)
	if !v.Read {
		return nil, errUnread
	}
	d := Events{Entries: []Event{}, Since: v.Since}
	for _, e := range v.Entries {
		d.Entries = append(d.Entries, Event{e.Name, e.JournalEntry})
	}
	if v.More {
		d.Older = d.Entries[len(d.Entries)-1].Name
	}
	return d, nil
}
