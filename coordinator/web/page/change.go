package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// calendar is when planned work may begin, as a picture of a week.
type calendar struct {
	Rows   []calendarRow
	Days   []mark
	Height int
}

type calendarRow struct {
	Name   string // the kinds of work with these times
	When   string
	Freeze *store.Freeze
	Y      int
	Bars   []bar
}

type mark struct {
	X    int
	Name string
}

// calendarOf draws when planned work may begin. Kinds of work with the same times share a row.
func calendarOf(all []view.Planned, now time.Time) *calendar {
	if len(all) == 0 {
		return nil
	}
	c := &calendar{}
	start := now.Truncate(time.Hour) // so that the picture does not change every second
	x := func(at time.Time) int {
		return max(0, min(across, int(float64(at.Sub(start))/float64(view.PlannedAhead)*across)))
	}
	const day = 24 * time.Hour
	for at := start.UTC().Truncate(day).Add(day); at.Before(start.Add(view.PlannedAhead)); at = at.Add(day) {
		c.Days = append(c.Days, mark{x(at), at.Format("Mon 01-02")})
	}
	for n, p := range all {
		if i := slices.IndexFunc(all[:n], func(q view.Planned) bool { return slices.Equal(p.Periods, q.Periods) }); i >= 0 {
			name := workNames[all[i].Work]
			at := slices.IndexFunc(c.Rows, func(r calendarRow) bool { return strings.HasPrefix(r.Name, name) })
			c.Rows[at].Name += ", " + workNames[p.Work]
			continue
		}
		row := calendarRow{Name: workNames[p.Work], Freeze: p.Freeze, Y: len(c.Rows) * bandAt}
		switch {
		case p.Open:
			row.When = "now"
			if len(p.Periods) > 0 && p.Periods[0].To.Before(now.Add(view.PlannedAhead)) {
				row.When = "now, until " + p.Periods[0].To.UTC().Format(minutes)
			}
		case p.Opens.IsZero():
			row.When = "not by its windows"
		default:
			row.When = p.Opens.UTC().Format(minutes)
		}
		for _, period := range p.Periods {
			row.Bars = append(row.Bars, bar{
				X: x(period.From), Width: max(2, x(period.To)-x(period.From)),
				Label: period.From.UTC().Format(minutes) + " to " + period.To.UTC().Format(minutes),
			})
		}
		c.Rows = append(c.Rows, row)
	}
	c.Height = len(c.Rows)*bandAt + 18
	return c
}

// minutes formats a time without seconds.
const minutes = "01-02 15:04"

// workNames are the kinds of planned work for people.
var workNames = map[string]string{
	store.PlannedRoll: "roll", store.PlannedExpiry: "expiry", store.PlannedRebalance: "rebalance",
	store.PlannedScaleDown: "scale-down",
}

// rollPicture is a roll with a bar for each zone.
type rollPicture struct {
	view.Roll
	Canaries int // that have the template
	Bars     []rollBar
}

type rollBar struct {
	view.RollZone
	Parts []part
}

// part is a piece of a bar.
type part struct {
	Kind     string // a kind of the grid, for the colour
	X, Width int
}

func rollOf(r *view.Roll) *rollPicture {
	if r == nil {
		return nil
	}
	v := &rollPicture{Roll: *r}
	if r.Canary != nil {
		v.Canaries = len(r.Canary.Slots)
	}
	for _, z := range r.Zones {
		b := rollBar{RollZone: z}
		x, done := 0, 0
		for _, p := range []struct {
			kind string
			n    int
		}{{"done", z.Done}, {"unhealthy", z.Failing}, {"starting", z.Busy}, {"waits", z.Waits}} {
			done += p.n
			if p.n == 0 {
				continue
			}
			to := across * done / z.All()
			b.Parts = append(b.Parts, part{p.kind, x, max(2, to-x)})
			x = to
		}
		v.Bars = append(v.Bars, b)
	}
	return v
}

// chart is a group's last hour as lines.
type chart struct {
	From, To time.Time
	Size     lines
	Load     lines
	Told     int // instances whose load is known now
	CPU      int // percent, now
	Memory   int
	Label    string
}

// lines are a picture of several lines over the same time.
type lines struct {
	Lines  []curve
	Bounds []bound // horizontal lines
	Most   int     // the number at the top
	Height int
}

type curve struct{ Kind, Points string }

type bound struct {
	Kind, Name string
	Y          int
}

const chartHeight = 90

// chartOf draws the last hour of a group; nil if too little is known.
func chartOf(trend []view.Moment, scale *view.Scale) *chart {
	if len(trend) < 2 {
		return nil
	}
	last := trend[len(trend)-1]
	c := &chart{
		From: last.At.Add(-view.TrendFor), To: last.At, Told: last.Told, CPU: int(last.CPU + .5),
		Memory: int(last.Memory + .5),
	}
	most := 1
	for _, m := range trend {
		most = max(most, m.Size, m.Run, m.Asks)
	}
	if scale != nil {
		most = max(most, scale.Max)
	}
	c.Size.Most, c.Size.Height, c.Load.Most, c.Load.Height = most, chartHeight, 100, chartHeight
	line := func(kind string, most int, of func(view.Moment) (float64, bool)) curve {
		var all [][2]float64
		for _, m := range trend {
			if n, known := of(m); known {
				all = append(all, [2]float64{
					float64(across) - float64(last.At.Sub(m.At))/float64(view.TrendFor)*across,
					chartHeight - n/float64(most)*(chartHeight-6) - 2,
				})
			}
		}
		return curve{kind, points(all)}
	}
	at := func(n float64, most int) int { return int(chartHeight - n/float64(most)*(chartHeight-6) - 2) }
	c.Size.Lines = []curve{
		line("asks", most, func(m view.Moment) (float64, bool) { return float64(m.Asks), scale != nil && m.Asks > 0 }),
		line("run", most, func(m view.Moment) (float64, bool) { return float64(m.Run), true }),
		line("size", most, func(m view.Moment) (float64, bool) { return float64(m.Size), true }),
	}
	if scale != nil {
		c.Size.Bounds = []bound{
			{"edge", fmt.Sprintf("max %d", scale.Max), at(float64(scale.Max), most)},
			{"edge", fmt.Sprintf("min %d", scale.Min), at(float64(scale.Min), most)},
		}
		for _, n := range scale.Numbers {
			if n.Metric != store.MetricNetwork {
				c.Load.Bounds = append(c.Load.Bounds, bound{
					n.Metric, fmt.Sprintf("%s target %g%%", n.Metric, n.Target),
					at(n.Target, 100),
				})
			}
		}
	}
	c.Load.Lines = []curve{
		line(store.MetricMemory, 100, func(m view.Moment) (float64, bool) { return m.Memory, m.Told > 0 }),
		line(store.MetricCPU, 100, func(m view.Moment) (float64, bool) { return m.CPU, m.Told > 0 }),
	}
	c.Label = fmt.Sprintf("In the last hour the size went from %d to %d", trend[0].Size, last.Size)
	if last.Told > 0 {
		c.Label += fmt.Sprintf("; %d%% CPU and %d%% memory on average of %s now", c.CPU, c.Memory,
			reason.Counted(last.Told, "instance", "instances"))
	}
	return c
}
