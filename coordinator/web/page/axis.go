package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/view"
)

const (
	ticks  = 60 // columns of the axis
	across = 1000
	laneAt = 26 // height of a lane
	bandAt = 16 // height of a band
)

// axis is the time axis of a group.
type axis struct {
	From, To time.Time
	Lanes    []lane
	Bands    []stretch
	Spans    []chip
	Height   int
	Chosen   string // the span of the events below, if one was chosen
	AllURL   string
	BackURL  string // of the group as it was before the last column
}

type lane struct {
	Name  string
	Y     int
	Ticks []tick
}

// tick is a column of a lane in which something was decided.
type tick struct {
	ID                  string
	X, Y, Width, Height int
	Label, URL          string
}

// stretch is a row with the times in which something went on.
type stretch struct {
	Name string
	Y    int
	Bars []bar
}

type bar struct {
	X, Width int
	Label    string
}

// chosen is the span of time that a URL asks for; zero times: none.
func chosen(query url.Values) (from, to time.Time) {
	from, err := time.Parse(time.RFC3339, query.Get("from"))
	if err != nil {
		return time.Time{}, time.Time{}
	}
	to, err = time.Parse(time.RFC3339, query.Get("to"))
	if err != nil {
		return time.Time{}, time.Time{}
	}
	return from, to
}

// axisOf draws a group's decisions in columns, and what went on below them.
func (b *builder) axisOf(group string) axis {
	span := view.Spans[1]
	for _, s := range view.Spans {
		if s.Name == b.query.Get("span") {
			span = s
		}
	}
	v := b.p.views.Axis(group, span.For, ticks, b.now)
	a := axis{From: v.From, To: v.To}
	path := "/g/" + url.PathEscape(group)
	link := func(more url.Values) string {
		more.Set("span", span.Name)
		return path + "?" + more.Encode()
	}
	most := 1
	for _, l := range v.Lanes {
		for _, n := range l.Counts {
			most = max(most, n)
		}
	}
	const width = across / ticks
	for n, l := range v.Lanes {
		row := lane{Name: l.Name, Y: n*laneAt + laneAt - 6}
		for i, count := range l.Counts {
			if count == 0 {
				continue
			}
			from := v.From.Add(time.Duration(i) * v.Step)
			height := 5 + (laneAt-9)*count/most
			row.Ticks = append(row.Ticks, tick{
				ID: fmt.Sprintf("t-%s-%d", l.Name, from.Unix()),
				X:  i * width, Y: n*laneAt + laneAt - 2 - height, Width: width - 2, Height: height,
				Label: fmt.Sprintf("%d in lane %s from %s", count, l.Name, from.UTC().Format("01-02 15:04:05")),
				URL: link(url.Values{
					"from": {from.UTC().Format(time.RFC3339)},
					"to":   {from.Add(v.Step).UTC().Format(time.RFC3339)},
				}),
			})
		}
		a.Lanes = append(a.Lanes, row)
	}
	a.Height = len(a.Lanes) * laneAt
	x := func(at time.Time) int {
		return int(float64(at.Sub(v.From)) / float64(v.To.Sub(v.From)) * width * ticks)
	}
	for _, band := range v.Bands {
		row := stretch{Name: band.Name, Y: a.Height + 4}
		for _, p := range band.Periods {
			label := band.Name + " " + p.From.UTC().Format("01-02 15:04:05") + " to " + p.To.UTC().Format("01-02 15:04:05")
			if p.To.Equal(v.To) {
				label = band.Name + " since " + p.From.UTC().Format("01-02 15:04:05")
			}
			row.Bars = append(row.Bars, bar{X: x(p.From), Width: max(3, x(p.To)-x(p.From)), Label: label})
		}
		a.Bands = append(a.Bands, row)
		a.Height += bandAt
	}
	a.Height += 6
	a.BackURL = withMoment(path, v.To.Add(-v.Step))
	for _, s := range view.Spans {
		a.Spans = append(a.Spans, chip{Kind: s.Name, On: s.Name == span.Name, URL: path + "?span=" + s.Name})
	}
	if from, to := chosen(b.query); !from.IsZero() {
		a.Chosen = from.UTC().Format("01-02 15:04:05") + " to " + to.UTC().Format("15:04:05")
		a.AllURL = link(url.Values{})
	}
	return a
}

// axis draws the time axis of a group, a part for each column of a lane.
func (b *builder) axis(v groupPage) Fragment {
	var lanes []Fragment
	for _, l := range v.Axis.Lanes {
		id := "lane-" + l.Name
		f := Fragment{ID: id, Head: template.HTML(`<g id="` + id + `">`), Tail: "</g>", List: true}
		for _, t := range l.Ticks {
			f.Parts = append(f.Parts, b.fragment(t.ID, "tick", t))
		}
		lanes = append(lanes, f)
	}
	return b.holding("axis", "axis", v, lanes...)
}

// points writes the points of a line, without those within a level stretch.
func points(all [][2]float64) string {
	var b strings.Builder
	for i, p := range all {
		if i > 0 && i < len(all)-1 && all[i-1][1] == p[1] && all[i+1][1] == p[1] {
			continue
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%.1f,%.1f", p[0], p[1])
	}
	return b.String()
}
