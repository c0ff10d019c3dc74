package rivals

import (
	"fmt"
	"strconv"
	"strings"
)

// Named is the result of one contender.
type Named struct {
	Name string `json:"name"`
	Figures
	// Problem is why figures are missing; "": none are.
	Problem string `json:"problem,omitempty"`
}

// Row is one figure of all contenders.
type Row struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit"`   // "": a plain number
	Values []*float64 `json:"values"` // nil: not measured
	// Ratios are relative to the last contender's value; nil where one of the two is missing, the
	// last is 0, or the two are not of the same kind.
	Ratios []*float64 `json:"ratios"`
}

// Rows puts figures side by side. The last contender is the reference.
func Rows(all []Named) []Row {
	everyday := func(of func(*Everyday) float64) func(Figures) (float64, bool) {
		return func(f Figures) (float64, bool) {
			if f.Everyday == nil {
				return 0, false
			}
			return of(f.Everyday), true
		}
	}
	stalled := func(which func(Figures) *Stall, of func(*Stall) *float64) func(Figures) (float64, bool) {
		return func(f Figures) (float64, bool) {
			s := which(f)
			if s == nil || of(s) == nil {
				return 0, false
			}
			return *of(s), true
		}
	}
	etcd, judge := func(f Figures) *Stall { return f.EtcdStall }, func(f Figures) *Stall { return f.JudgeStall }
	atOnce := func(s *Stall) *float64 { return new(float64(s.Declared.AtOnce)) }
	waiting := func(s *Stall) *float64 { return new(float64(s.Declared.Waiting)) }
	back := func(s *Stall) *float64 { return s.Back }

	return []Row{
		row(all, "CPU of etcd", "cores", true, everyday(func(e *Everyday) float64 { return e.Etcd.Cores })),
		row(all, "CPU of detector", "cores", true, everyday(func(e *Everyday) float64 { return e.Judges.Cores })),
		row(all, "CPU of both", "cores", true,
			everyday(func(e *Everyday) float64 { return e.Etcd.Cores + e.Judges.Cores })),
		row(all, "CPU of agents", "cores", false, everyday(func(e *Everyday) float64 { return e.Agents.Cores })),
		row(all, "memory of etcd", "bytes", true, everyday(func(e *Everyday) float64 { return e.Etcd.Memory })),
		row(all, "memory of detector", "bytes", true, everyday(func(e *Everyday) float64 { return e.Judges.Memory })),
		row(all, "memory of both", "bytes", true,
			everyday(func(e *Everyday) float64 { return e.Etcd.Memory + e.Judges.Memory })),
		row(all, "memory of agents", "bytes", false, everyday(func(e *Everyday) float64 { return e.Agents.Memory })),
		row(all, "etcd: messages received", "/s", true, everyday(func(e *Everyday) float64 { return e.Requests })),
		row(all, "etcd: calls and streams begun", "/s", true, everyday(func(e *Everyday) float64 { return e.Streams })),
		row(all, "etcd: proposals", "/s", true, everyday(func(e *Everyday) float64 { return e.Applied })),
		row(all, "etcd: fsyncs of its log", "/s", true, everyday(func(e *Everyday) float64 { return e.Fsyncs })),
		row(all, "etcd: growth of its database", "bytes/s", true,
			everyday(func(e *Everyday) float64 { return e.Growth })),
		row(all, "etcd paused: declared dead wrongly", "", true, stalled(etcd, atOnce)),
		row(all, "etcd paused: the same, if it waits", "", true, stalled(etcd, waiting)),
		row(all, "etcd paused: all known alive after", "s", false, stalled(etcd, back)),
		row(all, "detector paused: declared dead wrongly", "", true, stalled(judge, atOnce)),
		row(all, "detector paused: the same, if it waits", "", true, stalled(judge, waiting)),
		row(all, "detector paused: all known alive after", "s", false, stalled(judge, back)),
	}
}

func row(all []Named, name, unit string, comparable bool, of func(Figures) (float64, bool)) Row {
	r := Row{Name: name, Unit: unit}
	last, _ := of(all[len(all)-1].Figures) // 0: there is no reference value
	for _, one := range all {
		v, known := of(one.Figures)
		if !known {
			r.Values, r.Ratios = append(r.Values, nil), append(r.Ratios, nil)
			continue
		}
		r.Values = append(r.Values, &v)
		if last > 0 && comparable {
			r.Ratios = append(r.Ratios, new(v/last))
		} else {
			r.Ratios = append(r.Ratios, nil)
		}
	}
	return r
}

// Ratio formats a ratio.
func Ratio(r *float64) string {
	switch {
	case r == nil:
		return "-"
	case *r < 10:
		return fmt.Sprintf("%.2f×", *r)
	default:
		return strconv.FormatFloat(*r, 'f', 0, 64) + "×"
	}
}

// saturated is the busy share of the processors above which figures say nothing, because the
// machine was overloaded.
const saturated = 0.85

// Verdict sums up the result in two sentences. The last contender is the reference.
func Verdict(agents int, all []Named) string {
	var troubles, busy []string
	for _, one := range all {
		if one.Problem != "" {
			troubles = append(troubles, one.Name+": "+one.Problem)
		}
		if e := one.Everyday; e != nil && e.Machine > saturated {
			busy = append(busy, one.Name)
		}
	}
	if len(troubles) > 0 {
		return "no verdict, because figures are missing: " + strings.Join(troubles, "; ")
	}
	last := all[len(all)-1]
	var etcd, both, still, judge []string
	for _, one := range all {
		still = append(still, fmt.Sprintf("%s %d", one.Name, one.EtcdStall.Declared.AtOnce))
		judge = append(judge, strconv.Itoa(one.JudgeStall.Declared.AtOnce))
	}
	for _, one := range all[:len(all)-1] {
		etcd = append(etcd, against(one.Everyday.Etcd.Cores, last.Everyday.Etcd.Cores)+" "+one.Name)
		both = append(both, against(one.Everyday.Etcd.Cores+one.Everyday.Judges.Cores,
			last.Everyday.Etcd.Cores+last.Everyday.Judges.Cores)+" "+one.Name)
	}
	v := fmt.Sprintf("CPU with %s: etcd %s; etcd and detector together %s. Declared dead, of %d live agents, "+
		"while etcd was paused for %.0fs: %s; while the detector was: %s.",
		last.Name, list(etcd), list(both), agents, last.EtcdStall.Seconds, list(still), list(judge))
	if len(busy) > 0 {
		v += fmt.Sprintf(" The machine was saturated with %s, so its costs are not reliable: try fewer --agents.", list(busy))
	}
	return v
}

// near is how far apart two figures may be that count as the same.
const near = 0.05

// against compares one cost with the reference.
func against(other, own float64) string {
	switch {
	case own <= 0 || other <= 0:
		return "not comparable with"
	case other/own > 1+near:
		return Ratio(new(other/own)) + " less than"
	case own/other > 1+near:
		return Ratio(new(own/other)) + " more than"
	default:
		return "as much as"
	}
}

// list joins words with commas and "and".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
