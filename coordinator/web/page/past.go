package page

import (
	"net/url"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/view"
)

// past is a moment that the URL asks for. Past records are not stored: the state is the present
// records, minus what the journal says has happened since.
type past struct {
	At              time.Time // zero: the page shows the present
	Known           bool      // the journal in memory reaches that far back
	Earlier, Later  string    // the moments of the decisions before and after
	EarlierURL, URL string
	LaterURL        string
	// First, Last and Step are the start, the end and the step of the slider, in seconds.
	First, Last, Step int64
	Show              string // the filter
}

// momentOf reads a moment from a URL, in seconds if it comes from the slider; zero if there is
// none, or none that can be read.
func momentOf(query url.Values) time.Time {
	if seconds, err := strconv.ParseInt(query.Get("at"), 10, 48); err == nil {
		return time.Unix(seconds, 0)
	}
	at, err := time.Parse(time.RFC3339Nano, query.Get("at"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// pastOf finds the decisions next to a moment.
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
	v.URL, v.Show, v.First, v.Last = path, b.query.Get("show"), v.At.Unix(), max(v.At.Unix(), b.now.Unix())
	b.p.deps.Journal.View(func(entries []journal.Entry, since time.Time) {
		v.Known = !v.At.Before(since)
		if len(entries) > 0 {
			v.First = min(v.First, entries[0].At.Unix())
		}
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
	v.Step = max(1, (v.Last-v.First)/momentSteps)
	return v
}

// momentSteps is the largest number of moments on the slider.
const momentSteps = 1000

// groupThen is a group as it was.
func (p *Pages) groupThen(b *builder, name string) Page {
	units, read := p.views.GroupAt(name, b.at, b.now)
	if !read {
		return b.unread()
	}
	v := groupPage{Now: b.now}
	v.Name, v.Units = name, units
	v.Cells = view.CellsOf(units, 0)
	v.Past = b.pastOf("/g/"+url.PathEscape(name), func(e *journal.Entry) bool { return e.Group == name })
	v.filter(b.query)
	for i := range v.Chips {
		v.Chips[i].URL = withMoment(v.Chips[i].URL, b.at)
	}
	v.Events = p.views.Events(view.Wanted{Group: name, To: b.at.Add(1), Most: 2 * recentEvents}).Entries
	page := b.page(p.views.Truth(b.now), b.revision())
	page.Title, page.Here, page.Command = name+" at "+b.at.UTC().Format("01-02 15:04:05"), "shard",
		"leasehold events --group "+reason.ShellWord(name)
	page.Trail = []Step{{name, "/g/" + url.PathEscape(name)}}
	page.Truth.At = b.at
	page.Main = []Fragment{
		b.fragment("past", "past", v), b.fragment("chips", "chips", v), b.grid(v.Cells, b.query.Get("show")),
		b.table(&v), b.recent(v, v.Events),
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
