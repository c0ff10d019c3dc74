package page

import (
	"net/url"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// past is a moment that the URL asks for. Records of the past are not kept; what is known of it is
// what the records say now, less all that the journal says has happened since.
type past struct {
	At              time.Time // zero: the page shows the present
	Known           bool      // the journal in memory reaches back that far
	Earlier, Later  string    // the moments of the decisions before and after
	EarlierURL, URL string
	LaterURL        string
}

// momentOf reads a moment from a URL; zero if it has none, or none that can be read.
func momentOf(query url.Values) time.Time {
	at, err := time.Parse(time.RFC3339Nano, query.Get("at"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// was is how an instance was.
type was struct {
	id, group string
	slot      int
	phase     store.Phase // "": it had no record
	verdict   journal.Entry
	last      journal.Entry // the last decision about it
	undone    bool          // an entry after the moment says what it was before
	seen      bool          // an entry after the moment is about it
}

// before works out how the instances of a group were at a moment.
func before(entries []journal.Entry, now []unit, group string, at time.Time) []unit {
	all := map[string]*was{}
	of := func(e journal.Entry) *was {
		w := all[e.Instance]
		if w == nil {
			w = &was{id: e.Instance, group: e.Group, slot: -1}
			all[e.Instance] = w
		}
		if e.Slot != nil {
			w.slot = *e.Slot
		}
		return w
	}
	present := map[string]unit{}
	for _, u := range now {
		present[u.ID] = u
		all[u.ID] = &was{id: u.ID, group: group, slot: u.Slot, phase: store.Phase(u.Phase)}
	}
	from := len(entries)
	for i, e := range slices.Backward(entries) {
		if !e.At.After(at) {
			break
		}
		from = i
		if e.Group != group || e.Instance == "" || e.Claimed {
			continue
		}
		w := of(e)
		w.seen = true
		if e.To != "" {
			w.phase, w.undone = e.From, true
		}
	}
	for _, e := range entries[:from] {
		if e.Group != group || e.Instance == "" || e.Claimed {
			continue
		}
		w, known := all[e.Instance]
		if !known {
			continue // it was gone before
		}
		switch {
		case e.Kind == store.EntryVerdict:
			w.verdict = e
		case e.To != "":
			if !w.undone && w.phase == "" {
				w.phase = e.To // it went afterwards, and nothing says what it was before
			}
			w.last = e
		}
		if !w.undone && e.To != "" && w.seen {
			w.phase = e.To
		}
		if e.Slot != nil {
			w.slot = *e.Slot
		}
	}
	var units []unit
	for _, w := range all {
		if now := present[w.id]; w.phase == "" || !w.seen && now.Created.After(at) {
			continue
		}
		units = append(units, w.unit(present[w.id]))
	}
	inOrder(units)
	return units
}

func (w *was) unit(now unit) unit {
	u := unit{
		ID: w.id, Group: w.group, Slot: w.slot, Phase: string(w.phase), Zone: now.Zone, Template: now.Template, Agent: "-",
		Now:     "-",
		Created: now.Created,
	}
	i := store.Instance{Phase: w.phase, Dead: w.phase == store.Deleting && w.verdict.Verdict == store.Dead}
	u.Kind = kindOf(i, healthThen(w), w.verdict.Verdict, !w.verdict.Verdict.Failed() && w.verdict.Verdict != store.Suspect)
	said := w.last
	if u.Kind == "suspect" || w.verdict.Verdict.Failed() {
		said = w.verdict
	}
	if u.Kind != "live" {
		u.Rule, u.Why = said.Rule, reason.OneLine(said.What)
		if said.Why != "" {
			u.Why += ": " + reason.OneLine(said.Why)
		}
	}
	return u
}

// pastOf finds the decisions around a moment.
func (b *builder) pastOf(path string, wanted func(*journal.Entry) bool) past {
	v := past{At: b.at}
	if v.At.IsZero() {
		return v
	}
	link := func(at time.Time) string {
		query := url.Values{"at": {at.UTC().Format(time.RFC3339Nano)}}
		if show := b.query.Get("show"); show != "" {
			query.Set("show", show)
		}
		return path + "?" + query.Encode()
	}
	v.URL = path
	b.p.deps.Journal.View(func(entries []journal.Entry, since time.Time) {
		v.Known = !v.At.Before(since)
		for i, e := range entries {
			if !wanted(&entries[i]) {
				continue
			}
			if e.At.Before(v.At) {
				v.Earlier, v.EarlierURL = e.At.UTC().Format("01-02 15:04:05"), link(e.At)
			} else if e.At.After(v.At) {
				v.Later, v.LaterURL = e.At.UTC().Format("01-02 15:04:05"), link(e.At)
				return
			}
		}
	})
	return v
}

// groupThen is a group as it was.
func (p *Pages) groupThen(b *builder, name string) Page {
	v := groupPage{Now: b.now, Name: name}
	concerns := func(e *journal.Entry) bool { return e.Group == name && !e.At.After(b.at) }
	var units []unit
	st := p.present(b, func(c *cache.Content) { units = p.unitsOf(c, name, b.now) })
	if st == nil {
		return b.unread()
	}
	v.Past = b.pastOf("/g/"+url.PathEscape(name), func(e *journal.Entry) bool { return e.Group == name })
	p.deps.Journal.View(func(entries []journal.Entry, _ time.Time) { units = before(entries, units, name, b.at) })
	cells := cellsOf(name, units, 0)
	v.filter(b.query, cells, units)
	for i := range v.Chips {
		v.Chips[i].URL = withMoment(v.Chips[i].URL, b.at)
	}
	v.Events = b.newest(2*recentEvents, concerns)
	page := b.page(p.truth(st, b.now), st.Revision)
	page.Title, page.Here, page.Command = name+" at "+b.at.UTC().Format("01-02 15:04:05"), "shard",
		"leasehold events --group "+name
	page.Trail = []Step{{name, "/g/" + url.PathEscape(name)}}
	page.Truth.At = b.at
	page.Main = []Fragment{
		b.fragment("past", "past", v), b.fragment("chips", "chips", v), b.grid(cells, b.query.Get("show")),
		b.fragment("table", "table", v), b.fragment("recent", "recent", v),
	}
	return page
}

// withMoment adds the moment to a link.
func withMoment(link string, at time.Time) string {
	u, err := url.Parse(link)
	if err != nil {
		return link
	}
	query := u.Query()
	query.Set("at", at.UTC().Format(time.RFC3339Nano))
	u.RawQuery = query.Encode()
	return u.String()
}
