package protocol

import (
	"strings"
	"unicode/utf8"
)

// Fit cuts what a report tells to its bounds, and makes its texts valid: one that cannot be sent,
// or is not taken, would end the stream. It is for agents; what they were told themselves, as the
// hash of their configuration, is left alone.
func (x *Report) Fit() *Report {
	x.Why = fit(x.Why, MostText)
	x.Checks = x.Checks[:min(len(x.Checks), MostChecks)]
	for _, c := range x.Checks {
		c.Name, c.Kind, c.Why = fit(c.Name, MostName), fit(c.Kind, MostName), fit(c.Why, MostText)
	}
	x.Files = x.Files[:min(len(x.Files), MostFiles)]
	for _, f := range x.Files {
		f.Path, f.State, f.Why, f.Version = fit(f.Path, MostPath), fit(f.State, MostName), fit(f.Why, MostText),
			fit(f.Version, MostName)
	}
	if h := x.Host; h != nil {
		h.Windows = h.Windows[:min(len(h.Windows), MostWindows)]
	}
	if e := x.WorkloadExit; e != nil {
		e.Signal = fit(e.Signal, MostName)
		e.Output = e.Output[max(0, len(e.Output)-MostOutput):]
	}
	if n := x.Notice; n != nil {
		n.Kind, n.Why = fit(n.Kind, MostName), fit(n.Why, MostText)
	}
	return x
}

// fit is the beginning of a text, as far as there is room.
func fit(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
