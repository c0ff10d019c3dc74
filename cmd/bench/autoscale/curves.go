package autoscale

import (
	"fmt"
	"strings"
	"time"
)

// Curve is a load over time, in percent of one machine.
type Curve struct {
	Name   string
	Length time.Duration
	Steps  []Step
	Silent []Span        // in which no machine reports its load
	Boot   time.Duration // from a machine's request to its first work; 0: usualBoot
}

// Step is a change of the load, in a straight line.
type Step struct {
	At   time.Duration
	Load float64
	Over time.Duration
}

// Span is a time.
type Span struct{ From, For time.Duration }

const (
	usualBoot = 50 * time.Second
	target    = 60.0 // percent
	least     = 2
	most      = 40
	warmup    = 2 * time.Minute
)

// Curves returns the loads that are compared.
func Curves() []Curve {
	saw := Curve{Name: "sawtooth", Length: 2 * time.Hour, Steps: []Step{{Load: 500}}}
	for at := 20 * time.Minute; at < saw.Length; at += 6 * time.Minute {
		saw.Steps = append(saw.Steps, Step{At: at, Load: 300}, Step{At: at + 3*time.Minute, Load: 500})
	}
	return []Curve{
		{Name: "day", Length: 24 * time.Hour, Steps: []Step{
			{Load: 200},
			{At: 6 * time.Hour, Load: 1500, Over: 4 * time.Hour},
			{At: 12 * time.Hour, Load: 1200, Over: time.Hour},
			{At: 17 * time.Hour, Load: 1800, Over: 2 * time.Hour},
			{At: 20 * time.Hour, Load: 200, Over: 3 * time.Hour},
		}},
		{Name: "burst", Length: 2 * time.Hour, Steps: []Step{
			{Load: 200},
			{At: 20 * time.Minute, Load: 1000, Over: time.Minute},
			{At: 60 * time.Minute, Load: 200, Over: time.Minute},
		}},
		saw,
		{
			Name: "no numbers", Length: 2 * time.Hour, Silent: []Span{{30 * time.Minute, 20 * time.Minute}},
			Steps: []Step{
				{Load: 500},
				{At: 32 * time.Minute, Load: 250, Over: time.Minute},
				{At: 49 * time.Minute, Load: 500, Over: time.Minute},
			},
		},
		{
			Name: "slow machines", Length: 3 * time.Hour, Boot: 270 * time.Second,
			Steps: []Step{{Load: 150}, {At: 30 * time.Minute, Load: 600, Over: 20 * time.Minute}},
		},
	}
}

// at returns how high the load is.
func (c *Curve) at(clock time.Duration) float64 {
	load, from := 0.0, 0.0
	for _, s := range c.Steps {
		switch {
		case clock < s.At:
			return load
		case clock >= s.At+s.Over:
			load = s.Load
		default:
			load = from + (s.Load-from)*float64(clock-s.At)/float64(s.Over)
		}
		from = s.Load
	}
	return load
}

func (c *Curve) silent(clock time.Duration) bool {
	for _, s := range c.Silent {
		if clock >= s.From && clock < s.From+s.For {
			return true
		}
	}
	return false
}

func (c *Curve) boot() time.Duration { return max(c.Boot, usualBoot) }

// scenario returns the curve as a file for simulate.
func (c *Curve) scenario() string {
	var text strings.Builder
	// An agent joins within some seconds of its machine's start, and its checks pass twice.
	boot := c.boot() - 15*time.Second
	fmt.Fprintf(&text, "length: %s\nprovider: {boot: %s..%s}\nevents:\n", c.Length, boot-5*time.Second, boot+5*time.Second)
	for _, s := range c.Steps {
		fmt.Fprintf(&text, "- {at: %s, load: {cpu: %.0f, over: %s}}\n", s.At, s.Load, s.Over)
	}
	for _, s := range c.Silent {
		fmt.Fprintf(&text, "- {at: %s, no_load: {percent: 100, for: %s}}\n", s.From, s.For)
	}
	return text.String()
}
