package page

import (
	"net/url"
	"time"

	"github.com/leasehold/leasehold/coordinator/view"
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
		page.Command += " --group " + v.Group
	}
	if v.Instance != "" {
		page.Command += " --instance " + v.Instance
	}
	page.Main = []Fragment{b.fragment("filter", "filter", v), b.fragment("journal", "journal", v)}
	return page
}
