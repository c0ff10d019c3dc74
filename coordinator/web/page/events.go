package page

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/story"
)

const eventsShown = 200

// eventsPage is what the template of the journal shows.
type eventsPage struct {
	Now      time.Time
	Group    string
	Instance string
	Rule     string
	Text     string
	Events   []journal.Entry // the newest first
	Older    string          // where older ones are; "" if there are none
	Since    time.Time       // what is older is not in memory
	Read     bool
}

func (p *Pages) events(b *builder) Page {
	v := eventsPage{
		Now: b.now, Group: b.query.Get("group"), Instance: b.query.Get("instance"), Rule: b.query.Get("rule"),
		Text: b.query.Get("text"),
	}
	var st *story.Shard
	if !b.view(func(c *cache.Content) { st = p.shardOf(c) }) {
		return b.unread()
	}
	text, before := strings.ToLower(v.Text), b.query.Get("before")
	v.Read = p.deps.Journal.View(func(entries []journal.Entry, since time.Time) {
		v.Since = since
		for _, e := range slices.Backward(entries) {
			switch {
			case before != "" && e.Name >= before,
				v.Group != "" && e.Group != v.Group,
				v.Instance != "" && e.Instance != v.Instance && e.Replacement != v.Instance,
				v.Rule != "" && !strings.EqualFold(e.Rule, v.Rule) && !strings.HasPrefix(strings.ToUpper(e.Rule), strings.ToUpper(v.Rule)+"-"),
				text != "" && !strings.Contains(strings.ToLower(e.What+" "+e.Why), text):
				continue
			}
			if len(v.Events) == eventsShown {
				next := url.Values{"before": {v.Events[eventsShown-1].Name}}
				for _, q := range []string{"group", "instance", "rule", "text"} {
					if s := b.query.Get(q); s != "" {
						next.Set(q, s)
					}
				}
				v.Older = "/events?" + next.Encode()
				return
			}
			v.Events = append(v.Events, e)
		}
	})
	page := b.page(p.truth(st, b.now), st.Revision)
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
