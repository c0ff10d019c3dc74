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
	x.Why = clip.Start(x.Why, MaxText)
	x.Checks = x.Checks[:min(len(x.Checks), MaxChecks)]
	for _, c := range x.Checks {
		c.Name, c.Kind, c.Why = clip.Start(c.Name, MaxName), clip.Start(c.Kind, MaxName), clip.Start(c.Why, MaxText)
	}
	x.FilesRoots = AllRoots(x.FilesRoots)
	x.Files = x.Files[:min(len(x.Files), MaxFiles)]
	for _, f := range x.Files {
		f.Path, f.Why = clip.Start(f.Path, MaxPath), clip.Start(f.Why, MaxText)
		f.State, f.Version = clip.Start(f.State, MaxName), clip.Start(f.Version, MaxName)
	}
	if h := x.Host; h != nil {
		h.Windows = h.Windows[:min(len(h.Windows), MaxWindows)]
	}
	if e := x.WorkloadExit; e != nil {
		e.Signal = clip.Start(e.Signal, MaxName)
		e.Output = e.Output[max(0, len(e.Output)-MaxOutput):]
	}
	if n := x.Notice; n != nil {
		n.Kind, n.Why = clip.Start(n.Kind, MaxName), clip.Start(n.Why, MaxText)
	}
	if u := x.Upgrade; u != nil {
		u.Token, u.Version = clip.Start(u.Token, MaxName), clip.Start(u.Version, MaxName)
		u.Result, u.Why = clip.Start(u.Result, MaxName), clip.Start(u.Why, MaxText)
	}
	return x
}

// AllRoots returns the directories of a report, or none if there are too many, or one is too long
// or no directory. An incomplete list would make files look as if they were outside.
func AllRoots(dirs []string) []string {
	if len(dirs) == 0 || len(dirs) > MaxRoots {
		return nil
	}
	for _, dir := range dirs {
		if len(dir) > MaxPath || !utf8.ValidString(dir) || !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return nil
		}
	}
	return dirs
}
