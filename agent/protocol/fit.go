package protocol

import (
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Fit cuts a report to its bounds and makes its texts valid: a text that cannot be sent, or is
// refused, would end the stream. It is for agents. It does not change what they received, such as
// the hash of their configuration.
func (x *Report) Fit() *Report {
	x.Why = Cut(x.Why, MostText)
	x.Checks = x.Checks[:min(len(x.Checks), MostChecks)]
	for _, c := range x.Checks {
		c.Name, c.Kind, c.Why = Cut(c.Name, MostName), Cut(c.Kind, MostName), Cut(c.Why, MostText)
	}
	x.FilesRoots = AllRoots(x.FilesRoots)
	x.Files = x.Files[:min(len(x.Files), MostFiles)]
	for _, f := range x.Files {
		f.Path, f.State, f.Why, f.Version = Cut(f.Path, MostPath), Cut(f.State, MostName), Cut(f.Why, MostText),
			Cut(f.Version, MostName)
	}
	if h := x.Host; h != nil {
		h.Windows = h.Windows[:min(len(h.Windows), MostWindows)]
	}
	if e := x.WorkloadExit; e != nil {
		e.Signal = Cut(e.Signal, MostName)
		e.Output = e.Output[max(0, len(e.Output)-MostOutput):]
	}
	if n := x.Notice; n != nil {
		n.Kind, n.Why = Cut(n.Kind, MostName), Cut(n.Why, MostText)
	}
	if u := x.Upgrade; u != nil {
		u.Token, u.Version, u.Result, u.Why = Cut(u.Token, MostName), Cut(u.Version, MostName), Cut(u.Result, MostName),
			Cut(u.Why, MostText)
	}
	return x
}

// AllRoots returns the directories of a report, or none if there are too many, or one is too long
// or no directory. An incomplete list would make files look as if they were outside.
func AllRoots(dirs []string) []string {
	if len(dirs) == 0 || len(dirs) > MostRoots {
		return nil
	}
	for _, dir := range dirs {
		if len(dir) > MostPath || !utf8.ValidString(dir) || !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return nil
		}
	}
	return dirs
}

// Cut returns the beginning of a text in valid UTF-8. A report with an invalid text cannot be sent
// at all.
func Cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
