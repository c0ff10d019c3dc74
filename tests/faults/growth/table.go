package growth

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Unit is what a number counts.
type Unit int

// The units.
const (
	Count Unit = iota
	Bytes
)

func (u Unit) of(value float64) string {
	if u == Bytes {
		return fmt.Sprintf("%.1f MiB", value/(1<<20))
	}
	return fmt.Sprintf("%.0f", value)
}

// Table tells many series, each in a line.
func Table(all []Series) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OF\tWHAT\tREAD\tAFTER WARM-UP\tIN THE END\tALLOWED\tPEAK\tVERDICT")
	for _, s := range all {
		v := s.Judge()
		if !v.Known {
			fmt.Fprintf(w, "%s\t%s\t%d\t-\t-\t-\t%s\ttoo few to say\n", s.Of, s.What, len(s.Values), s.Unit.of(v.Peak))
			continue
		}
		verdict := "flat"
		if v.Grows() {
			verdict = "GROWS"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", s.Of, s.What, len(s.Values), s.Unit.of(v.Before),
			s.Unit.of(v.After), s.Unit.of(v.Most), s.Unit.of(v.Peak), verdict)
	}
	_ = w.Flush() // nothing fails in memory
	return b.String()
}
