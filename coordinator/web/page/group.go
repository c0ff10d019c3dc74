package page

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/view"
)

// rowsShown is how many rows a page of the table has.
const rowsShown = 100

// chip is a filter with the number of instances it selects.
type chip struct {
	Kind string
	N    int
	On   bool
	URL  string
}

// groupPage is what the templates of the page of a group show.
type groupPage struct {
	view.Group
	Now     time.Time
	Percent int
	Chips   []chip
	Rows    []view.Unit
	Shown   int // instances that the filter selects
	From    int // the first row's number
	Pages   []pageLink
	Axis    axis
	// Roll and Calendar are pictures of what view.Group has.
	Roll *rollPicture
	// Standing are the problems other than blocked work, which has a list of its own.
	Standing []problem
	Calendar *calendar
	Chart    *chart
	Past     past
	Events   []journal.Entry
}

type pageLink struct {
	N   int
	URL string
	On  bool
}

func (p *Pages) group(b *builder, name string) Page {
	if !b.at.IsZero() {
		return p.groupThen(b, name)
	}
	v := groupPage{Now: b.now}
	var read bool
	if v.Group, read = p.views.Group(name, b.now); !read {
		return b.unread()
	}
	page := b.page(v.Truth, v.Revision)
	page.Title, page.Here = name, "shard"
	page.Trail = []Step{{name, "/g/" + url.PathEscape(name)}}
	page.Command = "leasehold explain " + reason.ShellWord(name)
	from, to := chosen(b.query)
	v.Events = p.views.Events(view.Wanted{Group: name, From: from, To: to, Most: 2 * recentEvents}).Entries
	if !v.Found {
		page.Status = http.StatusNotFound
		page.Main = []Fragment{b.fragment("lost", "nogroup", v)}
		return page
	}
	for _, p := range v.Problems {
		if !p.Held {
			v.Standing = append(v.Standing, problem{Problem: p})
		}
	}
	v.Percent = v.Known.Status.Record.Health
	v.Axis = b.axisOf(name)
	v.Roll, v.Calendar, v.Chart = rollOf(v.Group.Roll), calendarOf(v.Planned, b.now), chartOf(v.Trend, v.Scale)
	v.filter(b.query)
	page.Said = name + ": " + v.Row.Run + " run; " + v.Row.Now
	page.Main = []Fragment{
		b.fragment("standing", "standing", v), b.fragment("chips", "chips", v), b.grid(v.Cells, b.query.Get("show")),
	}
	table := b.table(&v)
	if b.query.Get("show") != "" { // the reader has filtered for it
		page.Main = append(page.Main, table)
	}
	if v.Roll != nil || v.Calendar != nil || len(v.Turns)+len(v.Protects)+len(v.Busy) > 0 {
		page.Main = append(page.Main, b.fragment("change", "change", v))
	}
	if v.Chart != nil || v.Scale != nil {
		page.Main = append(page.Main, b.fragment("load", "load", v))
	}
	page.Main = append(page.Main, b.axis(v), b.recent(v, v.Events))
	if b.query.Get("show") == "" {
		page.Main = append(page.Main, table)
	}
	return page
}

// filter counts the kinds, and selects the rows that the URL asks for.
func (v *groupPage) filter(query url.Values) {
	counts := view.Counts(v.Cells)
	show := oneOf(query.Get("show"), view.Kinds...)
	base := "/g/" + url.PathEscape(v.Name)
	v.Chips = append(v.Chips, chip{Kind: "all", N: len(v.Units), On: show == "", URL: base})
	for _, k := range view.Kinds {
		if counts[k] > 0 || k == show {
			v.Chips = append(v.Chips, chip{Kind: k, N: counts[k], On: k == show, URL: base + "?show=" + k})
		}
	}
	rows := slices.DeleteFunc(slices.Clone(v.Units), func(u view.Unit) bool { return show != "" && u.Kind != show })
	slices.SortStableFunc(rows, func(a, b view.Unit) int { return cmp.Compare(view.Worst(a.Kind), view.Worst(b.Kind)) })
	v.Shown = len(rows)
	pages := (len(rows) + rowsShown - 1) / rowsShown
	n, _ := strconv.Atoi(query.Get("page"))
	n = max(1, min(n, pages))
	v.From = (n-1)*rowsShown + 1
	v.Rows = rows[v.From-1 : min(len(rows), n*rowsShown)]
	for i := 1; pages > 1 && i <= pages; i++ {
		link := base + "?page=" + strconv.Itoa(i)
		if show != "" {
			link += "&show=" + show
		}
		v.Pages = append(v.Pages, pageLink{i, link, i == n})
	}
}

// row is an instance as the table shows it.
type row struct {
	view.Unit
	At    template.URL
	Spark *spark
}

// table lists instances, with a part for each, and one for the load of each. For the past no load
// is known.
func (b *builder) table(v *groupPage) Fragment {
	parts := []Fragment{b.fragment("table-title", "tabletitle", v)}
	if len(v.Rows) > 0 {
		rows, at, sampled := tableRows("rows", len(v.Rows)), b.moment(), b.p.views.Sampled()
		for i, u := range v.Rows {
			r := row{Unit: u, At: at}
			if at == "" {
				r.Spark = sparkOf(b.p.views.Load(u.ID, sampled), sampled)
			}
			rows.Parts[i] = b.holding("r-"+u.ID, "row", r, b.fragment("l-"+u.ID, "spark", r))
		}
		parts = append(parts, rows)
	}
	return b.holding("table", "table", v, append(parts, b.fragment("table-pages", "tablepages", v))...)
}

// moment is the query of links within the past; "" in the present.
func (b *builder) moment() template.URL {
	if b.at.IsZero() {
		return ""
	}
	// the text is made by this package alone
	return template.URL("?" + url.Values{"at": {b.at.UTC().Format(time.RFC3339Nano)}}.Encode())
}

// cell is a slot as the grid draws it.
type cell struct {
	view.Cell
	Off bool // the filter leaves it out
}

// band is the slots of a zone in the grid.
type band struct {
	ID, Zone string
	Counts   []chip
	N        int
	cells    []cell
}

// grid draws a cell for each slot, in bands of zones.
func (b *builder) grid(all []view.Cell, show string) Fragment {
	byZone := map[string]*band{}
	for _, found := range all {
		c := cell{Cell: found}
		zone := "1" + "vacant slots"
		switch {
		case c.Slot < 0:
			zone = "2" + "on demand"
		case len(c.Units) > 0:
			zone = "0" + c.Units[0].Zone
		}
		if byZone[zone] == nil {
			byZone[zone] = &band{Zone: zone[1:]}
		}
		c.Off = show != "" && !slices.ContainsFunc(c.Units, func(u view.Unit) bool { return u.Kind == show }) &&
			(show != "vacant" || len(c.Units) > 0)
		byZone[zone].cells = append(byZone[zone].cells, c)
	}
	grid := Fragment{
		ID: "grid", Head: `<section id="grid" aria-labelledby="grid-title"><h2 id="grid-title">Slots</h2>`,
		Tail: `<p id="pointed" class="dim" aria-hidden="true"></p></section>`, List: true,
	}
	for i, zone := range slices.Sorted(maps.Keys(byZone)) {
		d := byZone[zone]
		d.ID, d.N = fmt.Sprintf("band-%d", i), len(d.cells)
		counts := map[string]int{}
		for _, c := range d.cells {
			for _, u := range c.Units {
				counts[u.Kind]++
			}
		}
		for _, k := range view.Kinds {
			if counts[k] > 0 {
				d.Counts = append(d.Counts, chip{Kind: k, N: counts[k]})
			}
		}
		list := Fragment{
			ID: d.ID + "-list", Head: template.HTML(`<ul id="` + d.ID + `-list" class="cells" aria-labelledby="` + d.ID +
				`-title">`),
			Tail: "</ul>", Parts: make([]Fragment, len(d.cells)), List: true,
		}
		for n, c := range d.cells {
			list.Parts[n] = b.cell(c)
		}
		f := Fragment{
			ID: d.ID, Head: template.HTML(`<div id="` + d.ID + `" class="band">`), Tail: "</div>",
			Parts: []Fragment{b.fragment(d.ID+"-title", "bandtitle", d), list},
		}
		grid.Parts = append(grid.Parts, f)
	}
	return grid
}

// cell draws one cell, or returns the earlier drawing if it looks the same: drawing a thousand
// cells takes longer than the rest of the page.
func (b *builder) cell(c cell) Fragment {
	id := "s-" + strconv.Itoa(c.Slot)
	if c.Slot < 0 {
		id = "d-" + c.Units[0].ID
	}
	at := b.moment()
	look := id + fmt.Sprint(c.Off) + string(at)
	for _, u := range c.Units {
		look += "|" + u.ID + "|" + u.Kind + "|" + u.Label()
	}
	return Fragment{ID: id, Head: b.p.drawn.of(look, func() template.HTML {
		return b.html("cell", struct {
			cell
			ID string
			At template.URL
		}{c, id, at})
	})}
}

// drawn caches HTML by what it shows.
type drawn struct {
	mu  sync.Mutex
	all map[string]template.HTML
}

const maxDrawn = 30_000

func (d *drawn) of(look string, draw func() template.HTML) template.HTML {
	d.mu.Lock()
	text, found := d.all[look]
	d.mu.Unlock()
	if found {
		return text
	}
	text = draw()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil || len(d.all) >= maxDrawn {
		d.all = map[string]template.HTML{}
	}
	d.all[look] = text
	return text
}
