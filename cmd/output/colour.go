package output

import "github.com/leasehold/leasehold/coordinator/reason"

// Severe returns the style of an event by its severity.
func (s Screen) Severe(how reason.Severity, text string) string {
	switch {
	case how.AtLeast(reason.Critical):
		return s.Alarm(text)
	case how.AtLeast(reason.Warning):
		return s.Notice(text)
	default:
		return text
	}
}

// Dim returns the style of less important text.
func (s Screen) Dim(text string) string { return s.paint("2", text) }

// Alarm returns the style of what needs attention.
func (s Screen) Alarm(text string) string { return s.paint("1;31", text) }

// Notice returns the style of work in progress.
func (s Screen) Notice(text string) string { return s.paint("33", text) }

// Good returns the style of completed work.
func (s Screen) Good(text string) string { return s.paint("32", text) }

func (s Screen) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
