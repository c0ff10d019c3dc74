package page

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/story"
)

// lanes are the rows of the time axis, by the rules that decide.
var lanes = []struct {
	Name     string
	Families []string
}{
	{"detect", []string{"DET", "SAFE"}},
	{"heal", []string{"HEAL", "FLAP", "REC"}},
	{"roll", []string{"ROLL", "EXP"}},
	{"drain", []string{"DRAIN", "SPOT"}},
	{"traffic", []string{"LB"}},
	{"other", nil},
}

// spans are how far back the axis reaches.
var spans = []struct {
	Name string
	For  time.Duration
}{{"15m", 15 * time.Minute}, {"1h", time.Hour}, {"6h", 6 * time.Hour}, {"24h", 24 * time.Hour}, {
	"7d",
	7 * 24 * time.Hour,
}}

const (
	ticks  = 60 // columns of the axis
	across = 1000
	laneAt = 26 // height of a lane
	left   = 70 // where the columns begin
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
}

type lane struct {
	Name  string
	Y     int
	Ticks []tick
}

// tick is a column of a lane in which something was decided.
type tick struct {
	X, Y, Width, Height int
	Label, URL          string
}

// stretch is a time in which something went on.
type stretch struct {
	X, Width int
	Name     string
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

func laneOf(rule string) int {
	family, _, _ := strings.Cut(rule, "-")
	for i, l := range lanes {
		for _, f := range l.Families {
			if f == family {
				return i
			}
		}
	}
	return len(lanes) - 1
}

// axisOf counts a group's decisions in columns.
func (b *builder) axisOf(path string, wanted func(*journal.Entry) bool, on story.Group) axis {
	span := spans[1]
	for _, s := range spans {
		if s.Name == b.query.Get("span") {
			span = s
		}
	}
	step := span.For / ticks
	to := b.now.Truncate(step).Add(step) // moves with its columns, not with every second
	a := axis{From: to.Add(-span.For), To: to, Height: len(lanes)*laneAt + 18}
	counts := make([][ticks]int, len(lanes))
	most := 1
	b.p.deps.Journal.View(func(entries []journal.Entry, _ time.Time) {
		for i, e := range entries {
			if e.At.Before(a.From) || !e.At.Before(a.To) || !wanted(&entries[i]) {
				continue
			}
			at := &counts[laneOf(e.Rule)][int(e.At.Sub(a.From)/step)]
			*at++
			most = max(most, *at)
		}
	})
	link := func(more url.Values) string {
		more.Set("span", span.Name)
		return path + "?" + more.Encode()
	}
	const width = (across - left) / ticks
	for n, l := range lanes {
		row := lane{Name: l.Name, Y: n*laneAt + laneAt - 6}
		for i, count := range counts[n] {
			if count == 0 {
				continue
			}
			from := a.From.Add(time.Duration(i) * step)
			height := 5 + (laneAt-9)*count/most
			row.Ticks = append(row.Ticks, tick{
				X: left + i*width, Y: n*laneAt + laneAt - 2 - height, Width: width - 2, Height: height,
				Label: fmt.Sprintf("%d in lane %s from %s", count, l.Name, from.UTC().Format("01-02 15:04:05")),
				URL: link(url.Values{
					"from": {from.UTC().Format(time.RFC3339)},
					"to":   {from.Add(step).UTC().Format(time.RFC3339)},
				}),
			})
		}
		a.Lanes = append(a.Lanes, row)
	}
	if on.Storm != nil {
		a.band("storm", on.Storm.Since, step)
	}
	if on.Roll != nil {
		a.band("roll", on.Roll.Since, step)
	}
	for _, s := range spans {
		a.Spans = append(a.Spans, chip{Kind: s.Name, On: s.Name == span.Name, URL: path + "?span=" + s.Name})
	}
	if from, to := chosen(b.query); !from.IsZero() {
		a.Chosen = from.UTC().Format("01-02 15:04:05") + " to " + to.UTC().Format("15:04:05")
		a.AllURL = link(url.Values{})
	}
	return a
}

// band marks what has gone on since a time.
func (a *axis) band(name string, since time.Time, step time.Duration) {
	x := left
	if since.After(a.From) {
		x += int(since.Sub(a.From)/step) * ((across - left) / ticks)
	}
	a.Bands = append(a.Bands, stretch{x, max(4, across-x), name})
}
