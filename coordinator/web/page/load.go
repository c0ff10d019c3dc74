package page

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/view"
)

// The size of a small line: a step for each minute of the hour.
const (
	sparkWidth  = 60
	sparkHeight = 16
)

// spark is the load of an instance's CPU as a small line.
type spark struct {
	Points string
	CPU    int
	Label  string
}

// sparkOf draws the hour of an instance before the last sample; nil if nothing is known of it.
func sparkOf(all []view.Load, sampled time.Time) *spark {
	if len(all) == 0 {
		return nil
	}
	s := &spark{Points: loadPoints(all, sampled, sparkWidth, sparkHeight, cpuOf), CPU: all[len(all)-1].CPU}
	least, most := s.CPU, s.CPU
	for _, l := range all {
		least, most = min(least, l.CPU), max(most, l.CPU)
	}
	s.Label = fmt.Sprintf("CPU in the last hour: %d to %d%%", least, most)
	return s
}

func cpuOf(l view.Load) int    { return l.CPU }
func memoryOf(l view.Load) int { return l.Memory }

// loadPoints are the points of a line over the hour before a time.
func loadPoints(all []view.Load, now time.Time, width, height int, of func(view.Load) int) string {
	var line [][2]float64
	for _, l := range all {
		line = append(line, [2]float64{
			float64(width) * (1 - float64(now.Sub(l.At))/float64(view.TrendFor)),
			float64(height-1) - float64(of(l))/100*float64(height-2),
		})
	}
	return points(line)
}

// instanceNow is what the templates of the page of an instance show.
type instanceNow struct {
	view.Instance
	Curves []curve // its load in the last hour
}

// curvesOf draws the load of an instance; nil if too little is known of it.
func curvesOf(v *view.Instance, sampled time.Time) []curve {
	if len(v.Load) < 2 {
		return nil
	}
	return []curve{
		{"memory", loadPoints(v.Load, sampled, across, chartHeight, memoryOf)},
		{"cpu", loadPoints(v.Load, sampled, across, chartHeight, cpuOf)},
	}
}
