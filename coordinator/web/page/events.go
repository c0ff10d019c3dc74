package page

import (
	"html/template"
	"net/url"
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/docs"
)

const eventsShown = 200

// eventsPage is what the template of the journal shows.
type eventsPage struct {
	view.Wanted
	view.Events
	Now   time.Time
	Older string // where older ones are; "" if there are none
}

func (p *Pages) events(b *builder) Page {
	v := eventsPage{Now: b.now, Wanted: view.Wanted{
		Group: b.query.Get("group"), Instance: b.query.Get("instance"), Rule: b.query.Get("rule"), Text: b.query.Get("text"),
		Before: b.query.Get("before"), Most: eventsShown,
	}}
	rev := b.revision()
	if rev == 0 {
		return b.unread()
	}
	v.Events = p.views.Events(v.Wanted)
	if v.More {
		next := url.Values{"before": {v.Entries[eventsShown-1].Name}}
		for _, q := range []string{"group", "instance", "rule", "text"} {
			if s := b.query.Get(q); s != "" {
				next.Set(q, s)
			}
		}
		v.Older = "/events?" + next.Encode()
	}
	page := b.page(p.views.Truth(b.now), rev)
	page.Title, page.Here = "events", "events"
	page.Command = "leasehold events"
	if v.Group != "" {
		page.Command += " --group " + reason.ShellWord(v.Group)
	}
	if v.Instance != "" {
		page.Command += " --instance " + reason.ShellWord(v.Instance)
	}
	older := b.fragment("older", "older", v)
	parts := []Fragment{older}
	if len(v.Entries) > 0 {
		parts = []Fragment{b.eventRows("entries", v.Entries), older}
	}
	page.Main = []Fragment{b.fragment("filter", "filter", v)}
	if p, known := docs.PromiseOf(v.Rule); known {
		page.Main = append(page.Main, b.fragment("promise", "promise", p))
	}
	page.Main = append(page.Main, b.holding("journal", "journal", v, parts...))
	return page
}

// eventRows returns entries as the rows of a table, each a part.
func (b *builder) eventRows(id string, entries []journal.Entry) Fragment {
	list := tableRows(id, len(entries))
	for i := range entries {
		row := "e-" + entries[i].Name
		list.Parts[i] = Fragment{ID: row, Head: b.p.drawn.of(row, func() template.HTML {
			return b.html("eventrow", &entries[i])
		})}
	}
	return list
}

// recent are the last decisions.
func (b *builder) recent(data any, entries []journal.Entry) Fragment {
	return b.holding("recent", "recent", data, b.eventRows("recent-rows", entries))
}

// tableRows is the body of a table with so many rows.
func tableRows(id string, n int) Fragment {
	return Fragment{
		ID: id, Head: template.HTML(`<tbody id="` + id + `">`), Parts: make([]Fragment, n), Tail: "</tbody>", List: true,
	}
}
