package page

import (
	"net/url"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/coordinator/view"
)

// reportSpans are the spans of time that the page of a report offers.
var reportSpans = []struct {
	name string
	span time.Duration
}{{"1h", time.Hour}, {"24h", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"30d", 30 * 24 * time.Hour}}

// reportPage is what the template of a report shows.
type reportPage struct {
	review.Report
	Group string // that is shown in full; "": all, in a table
	Spans []chip
	// Drills of the group that is shown in full, whenever they were.
	Drills []view.Drill
}

// report shows how well groups were kept (DAY-5).
func (p *Pages) report(b *builder) Page {
	v, chosen := reportPage{Group: b.query.Get("group")}, reportSpans[2]
	for _, s := range reportSpans {
		if s.name == b.query.Get("span") {
			chosen = s
		}
	}
	for _, s := range reportSpans {
		link := url.Values{"span": {s.name}}
		if v.Group != "" {
			link.Set("group", v.Group)
		}
		v.Spans = append(v.Spans, chip{Kind: s.name, On: s.name == chosen.name, URL: "/report?" + link.Encode()})
	}
	var read bool
	if v.Report, read = p.views.Report(v.Group, chosen.span, b.now); !read {
		return b.unread()
	}
	page := b.page(p.views.Truth(b.now), b.revision())
	page.Title, page.Here, page.Command = "report", "report", "leasehold report --since "+chosen.name
	if v.Group != "" {
		page.Title += " on " + v.Group
		page.Trail = []Step{{v.Group, "/g/" + url.PathEscape(v.Group)}}
		page.Command += " --group " + reason.ShellWord(v.Group)
		v.Drills, _ = p.views.Drills(v.Group) // the report was made just now
	}
	page.Main = []Fragment{b.fragment("report", "report", v)}
	return page
}
