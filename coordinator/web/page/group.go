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

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
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

// cell is a slot with its instances: a replacement shares the cell of the instance whose place it takes.
type cell struct {
	Slot  int // -1: on demand
	Group string
	Units []unit
	Off   bool // the filter leaves it out
}

// groupPage is what the templates of the page of a group show.
type groupPage struct {
	Now      time.Time
	Name     string
	Known    story.Known
	Row      story.Row
	Percent  int
	Problems []story.Problem
	Lines    []string
	Blocked  []story.Blockage
	Chips    []chip
	Rows     []unit
	Shown    int // instances that the filter selects
	From     int // the first row's number
	Pages    []pageLink
	Axis     axis
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
	v := groupPage{Now: b.now, Name: name}
	var st *story.Shard
	var units []unit
	var slots []store.Versioned[store.Slot]
	found := false
	if !b.view(func(c *cache.Content) {
		st = p.shardOf(c)
		at := slices.IndexFunc(st.Groups, func(g story.Known) bool { return g.Name == name })
		if found = at >= 0; !found {
			return
		}
		v.Known = st.Groups[at]
		units = p.unitsOf(c, name, b.now)
		for _, n := range slices.Sorted(maps.Keys(c.Slots[name])) {
			slots = append(slots, c.Slots[name][n])
		}
	}) {
		return b.unread()
	}
	page := b.page(p.truth(st, b.now), st.Revision)
	page.Title, page.Here = name, "shard"
	page.Trail = []Step{{name, "/g/" + url.PathEscape(name)}}
	page.Command = "leasehold explain " + name
	ofGroup := func(e *journal.Entry) bool { return e.Group == name }
	v.Events = b.newest(2*recentEvents, b.inSpan(ofGroup))
	if !found {
		page.Status = http.StatusNotFound
		page.Main = []Fragment{b.fragment("lost", "nogroup", v)}
		return page
	}
	status := v.Known.Status.Record
	v.Row, v.Percent = story.RowOf(v.Known), status.Health
	for _, found := range story.Problems(st, b.now) {
		if found.About == name {
			v.Problems = append(v.Problems, found)
		}
	}
	on := story.Of(status)
	inProgress := status
	if on.Storm != nil {
		inProgress.Storm = nil // it is a problem, and told as one
	}
	v.Lines = story.NowLines(inProgress, slots, b.now)
	v.Blocked = story.Merge(on.Blocked)
	v.Axis = b.axisOf("/g/"+url.PathEscape(name), ofGroup, on)
	size := 0
	if status.Accepted != nil {
		size = status.Accepted.Size
	}
	cells := cellsOf(name, units, size)
	v.filter(b.query, cells, units)
	page.Said = name + ": " + v.Row.Run + " run; " + v.Row.Now
	page.Main = []Fragment{
		b.fragment("standing", "standing", v), b.fragment("chips", "chips", v), b.grid(cells, b.query.Get("show")),
		b.fragment("axis", "axis", v), b.fragment("recent", "recent", v), b.fragment("table", "table", v),
	}
	return page
}

// cellsOf puts instances into the cells of their slots.
func cellsOf(group string, units []unit, size int) []cell {
	var cells []cell
	next := 0
	vacant := func(until int) {
		for ; next < until; next++ {
			cells = append(cells, cell{Slot: next, Group: group})
		}
	}
	var onDemand []cell
	for _, u := range units {
		switch {
		case u.Slot < 0:
			onDemand = append(onDemand, cell{Slot: -1, Group: group, Units: []unit{u}})
		case len(cells) > 0 && cells[len(cells)-1].Slot == u.Slot:
			last := &cells[len(cells)-1]
			last.Units = append(last.Units, u)
		default:
			vacant(min(u.Slot, size))
			cells = append(cells, cell{Slot: u.Slot, Group: group, Units: []unit{u}})
			next = u.Slot + 1
		}
	}
	vacant(size)
	return append(cells, onDemand...)
}

// filter counts the kinds, and selects the rows that the URL asks for.
func (v *groupPage) filter(query url.Values, cells []cell, units []unit) {
	counts := map[string]int{}
	for _, u := range units {
		counts[u.Kind]++
	}
	for _, c := range cells {
		if len(c.Units) == 0 {
			counts["vacant"]++
		}
	}
	show := oneOf(query.Get("show"), kinds...)
	base := "/g/" + url.PathEscape(v.Name)
	v.Chips = append(v.Chips, chip{Kind: "all", N: len(units), On: show == "", URL: base})
	for _, k := range kinds {
		if counts[k] > 0 || k == show {
			v.Chips = append(v.Chips, chip{Kind: k, N: counts[k], On: k == show, URL: base + "?show=" + k})
		}
	}
	rows := slices.DeleteFunc(slices.Clone(units), func(u unit) bool { return show != "" && u.Kind != show })
	slices.SortStableFunc(rows, func(a, b unit) int { return cmp.Compare(worst(a.Kind), worst(b.Kind)) })
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

// band is the slots of a zone in the grid.
type band struct {
	ID, Zone string
	Counts   []chip
	N        int
	cells    []cell
}

// grid draws a cell for each slot, in bands of zones.
func (b *builder) grid(cells []cell, show string) Fragment {
	byZone := map[string]*band{}
	for _, c := range cells {
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
		c.Off = show != "" && !slices.ContainsFunc(c.Units, func(u unit) bool { return u.Kind == show }) &&
			(show != "vacant" || len(c.Units) > 0)
		byZone[zone].cells = append(byZone[zone].cells, c)
	}
	grid := Fragment{
		ID: "grid", Head: `<section id="grid" aria-labelledby="grid-title"><h2 id="grid-title">Slots</h2>`,
		Tail: `<p id="pointed" class="dim" aria-hidden="true"></p></section>`,
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
		for _, k := range kinds {
			if counts[k] > 0 {
				d.Counts = append(d.Counts, chip{Kind: k, N: counts[k]})
			}
		}
		list := Fragment{
			ID: d.ID + "-list", Head: template.HTML(`<ul id="` + d.ID + `-list" class="cells" aria-labelledby="` + d.ID + `-title">`),
			Tail: "</ul>", Parts: make([]Fragment, len(d.cells)),
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

// cell draws one, or takes what was drawn last time if it looks the same: drawing a thousand cells costs more
// than all the rest of a page.
func (b *builder) cell(c cell) Fragment {
	id := "s-" + strconv.Itoa(c.Slot)
	if c.Slot < 0 {
		id = "d-" + c.Units[0].ID
	}
	look := id + fmt.Sprint(c.Off)
	for _, u := range c.Units {
		look += "|" + u.ID + "|" + u.Kind + "|" + u.Label()
	}
	return Fragment{ID: id, Head: b.p.drawn.of(look, func() template.HTML {
		return b.html("cell", struct {
			cell
			ID string
		}{c, id})
	})}
}

// drawn remembers HTML by what it shows.
type drawn struct {
	mu  sync.Mutex
	all map[string]template.HTML
}

const mostDrawn = 30_000

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
	if d.all == nil || len(d.all) >= mostDrawn {
		d.all = map[string]template.HTML{}
	}
	d.all[look] = text
	return text
}
