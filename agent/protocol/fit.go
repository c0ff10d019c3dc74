package protocol

import (
	"path/filepath"
	"unicode/utf8"

	"github.com/leasehold/leasehold/provider/clip"
)

// Fit cuts a report to its bounds and makes its texts valid: a text that cannot be sent, or is
// refused, would end the stream. It is for agents. It does not change what they received, such as
// the hash of their configuration.
func (x *Report) Fit() *Report {
	x.Why = clip.Start(x.Why, MostText)
	x.Checks = x.Checks[:min(len(x.Checks), MostChecks)]
	for _, c := range x.Checks {
		c.Name, c.Kind, c.Why = clip.Start(c.Name, MostName), clip.Start(c.Kind, MostName), clip.Start(c.Why, MostText)
	}
	x.FilesRoots = AllRoots(x.FilesRoots)
	x.Files = x.Files[:min(len(x.Files), MostFiles)]
	for _, f := range x.Files {
		f.Path, f.State, f.Why, f.Version = clip.Start(f.Path, MostPath), clip.Start(f.State, MostName), clip.Start(f.Why, MostText),
			clip.Start(f.Version, MostName)
	}
	if h := x.Host; h != nil {
		h.Windows = h.Windows[:min(len(h.Windows), MostWindows)]
	}
	if e := x.WorkloadExit; e != nil {
		e.Signal = clip.Start(e.Signal, MostName)
		e.Output = e.Output[max(0, len(e.Output)-MostOutput):]
	}
	if n := x.Notice; n != nil {
		n.Kind, n.Why = clip.Start(n.Kind, MostName), clip.Start(n.Why, MostText)
	}
	if u := x.Upgrade; u != nil {
		u.Token, u.Version, u.Result, u.Why = clip.Start(u.Token, MostName), clip.Start(u.Version, MostName), clip.Start(u.Result, MostName),
			clip.Start(u.Why, MostText)
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
