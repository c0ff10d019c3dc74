package rivals

import (
	"fmt"
	"strconv"
)

// Row is one figure of all contenders.
type Row struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"` // "": a number
	Values []float64 `json:"values"`
	// Ratios are to the last contender's value; 0 where that has none.
	Ratios []float64 `json:"ratios"`
}

// Rows puts figures side by side. The last are those that the others are held against.
func Rows(all ...Figures) []Row {
	row := func(name, unit string, of func(Figures) float64) Row {
		r := Row{Name: name, Unit: unit}
		last := of(all[len(all)-1])
		for _, f := range all {
			v, ratio := of(f), 0.0
			if last > 0 {
				ratio = v / last
			}
			r.Values, r.Ratios = append(r.Values, v), append(r.Ratios, ratio)
		}
		return r
	}
	return []Row{
		row("CPU of etcd", "cores", func(f Figures) float64 { return f.EtcdCores }),
		row("CPU of who judges", "cores", func(f Figures) float64 { return f.JudgeCores }),
		row("CPU of etcd and who judges", "cores", func(f Figures) float64 { return f.EtcdCores + f.JudgeCores }),
		row("CPU of the agents", "cores", func(f Figures) float64 { return f.AgentCores }),
		row("memory of etcd", "bytes", func(f Figures) float64 { return f.EtcdMemory }),
		row("memory of who judges", "bytes", func(f Figures) float64 { return f.JudgeMemory }),
		row("memory of the agents", "bytes", func(f Figures) float64 { return f.AgentMemory }),
		row("etcd: messages received", "/s", func(f Figures) float64 { return f.Requests }),
		row("etcd: calls and streams begun", "/s", func(f Figures) float64 { return f.Streams }),
		row("etcd: proposals", "/s", func(f Figures) float64 { return f.Proposals }),
		row("etcd: fsyncs of its log", "/s", func(f Figures) float64 { return f.Fsyncs }),
		row("etcd: growth of its database", "bytes/s", func(f Figures) float64 { return f.Growth }),
		row("etcd stood still: living declared dead", "", func(f Figures) float64 { return float64(f.EtcdStall.Declared) }),
		row("process between stood still: living declared dead", "", func(f Figures) float64 { return float64(f.MiddleStall.Declared) }),
	}
}

// Ratio is a ratio for people.
func Ratio(r float64) string {
	switch {
	case r == 0:
		return "-"
	case r < 10:
		return fmt.Sprintf("%.2f×", r)
	default:
		return strconv.FormatFloat(r, 'f', 0, 64) + "×"
	}
}
