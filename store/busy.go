package store

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// BusyProbe is how an agent finds out whether the workload is idle (BUSY-1). At most one of its
// kinds is set; none: it is not asked. What it cannot find out counts as busy.
type BusyProbe struct {
	HTTP *BusyHTTP  `json:"http,omitempty"` // idle while it answers with 200 to 399
	Exec *ExecCheck `json:"exec,omitempty"` // idle while it exits with 0
	File string     `json:"file,omitempty"` // idle while it is not there
}

// BusyHTTP asks a web server on the machine.
type BusyHTTP struct {
	Port Port   `json:"port"`
	Path string `json:"path,omitempty"` // empty: /
}

// BusySpec is how planned work treats instances that are busy (BUSY-1).
type BusySpec struct {
	BusyProbe
	Timeout *Duration `json:"timeout,omitempty"` // nil: DefaultBusyTimeout
}

// DefaultBusyTimeout is how long an instance that was chosen has to become idle.
const DefaultBusyTimeout = Duration(time.Hour)

// Patience returns how long an instance that was chosen has to become idle.
func (b *BusySpec) Patience() time.Duration {
	if b.Timeout == nil {
		return DefaultBusyTimeout.D()
	}
	return b.Timeout.D()
}

// IdleCheck is the name of the check that passes while a workload is idle. No check of a group has
// a name like that.
const IdleCheck = "is idle"

// Asked reports whether agents check whether their workload is busy.
func (b BusyProbe) Asked() bool { return b.check() != nil }

// check returns the probe as a check of the workload; nil if there is none. An agent of a release
// before can run it too.
func (b BusyProbe) check() *Check {
	c := DefaultCheck()
	c.Name, c.Optional = IdleCheck, true
	switch {
	case b.HTTP != nil:
		c.HTTP = &HTTPCheck{Port: b.HTTP.Port, Path: b.HTTP.Path}
	case b.Exec != nil:
		c.Exec = b.Exec
	case b.File != "":
		c.Exec = &ExecCheck{Run: []string{"test", "!", "-e", b.File}}
	default:
		return nil
	}
	return &c
}

// AllChecks returns the checks that an instance's agent does: the checks of its group, and whether
// it is idle.
func (s *InstanceSpec) AllChecks() []Check {
	if idle := s.Busy.check(); idle != nil {
		return append(s.Checks[:len(s.Checks):len(s.Checks)], *idle)
	}
	return s.Checks
}

// Idle reports whether a report says that the workload is idle.
func (r *Report) Idle() bool {
	for i := range r.Checks {
		if c := &r.Checks[i]; c.Name == IdleCheck {
			return c.Healthy && !c.Pending
		}
	}
	return false
}

const maxBusy = 48 * time.Hour

// busyFields are the fields of a group's busy.
var busyFields = []Field{
	{
		Path: "busy.http.port", Type: "port", Default: "none", Allowed: portAllowed, Rule: "BUSY-1",
		Doc: "The workload is idle while this port of the machine answers with a status of 200 to 399. " +
			"Whatever else happens, it counts as busy.",
		value: func(g *Group) any {
			if g.Busy.HTTP == nil {
				return Port("")
			}
			return g.Busy.HTTP.Port
		},
		ok: func(g *Group) bool { return g.Busy.HTTP == nil || g.Busy.HTTP.Port.ok() },
	},
	{
		Path: "busy.http.path", Type: "string", Default: "/", Rule: "BUSY-1",
		Allowed: "a path that begins with / or ${, of at most 4096 characters", Doc: "What is asked for.",
		value: func(g *Group) any {
			if g.Busy.HTTP == nil {
				return ""
			}
			return g.Busy.HTTP.Path
		},
		ok: func(g *Group) bool {
			h := g.Busy.HTTP
			return h == nil || h.Path == "" || len(h.Path) <= 4096 &&
				(strings.HasPrefix(h.Path, "/") || strings.HasPrefix(h.Path, "${"))
		},
	},
	{
		Path: "busy.exec.run", Type: "list of strings", Default: "none", Rule: "BUSY-1",
		Allowed: "a program and its arguments, at most 256 of at most 4096 bytes, and no busy.http beside it",
		Doc:     "The workload is idle while this command exits with 0, with the workload's environment and directory.",
		value: func(g *Group) any {
			if g.Busy.Exec == nil {
				return []string(nil)
			}
			return g.Busy.Exec.Run
		},
		ok: func(g *Group) bool {
			e := g.Busy.Exec
			return e == nil || len(e.Run) > 0 && runOK(e.Run) && g.Busy.HTTP == nil
		},
	},
	{
		Path: "busy.file", Type: "string", Default: "none", Rule: "BUSY-1",
		Allowed: "an absolute path, which may begin with ${dir}, and neither busy.http nor busy.exec beside it",
		Doc:     "The workload is busy while this file is there.",
		value:   func(g *Group) any { return g.Busy.File },
		ok: func(g *Group) bool {
			f := g.Busy.File
			return f == "" || len(f) <= 4096 && (path.IsAbs(f) || strings.HasPrefix(f, "${dir}/")) &&
				g.Busy.HTTP == nil && g.Busy.Exec == nil
		},
	},
	{
		Path: "busy.timeout", Type: "duration", Default: "1h", Rule: "BUSY-1",
		Allowed: fmt.Sprintf("0s to %s", maxBusy),
		Doc: "How long an instance that was chosen to go has to become idle. Rolls, expiry, rebalancing and " +
			"scale-down choose idle instances first.",
		value: func(g *Group) any { return Duration(g.Busy.Patience()) },
		ok:    func(g *Group) bool { d := g.Busy.Patience(); return d >= 0 && d <= maxBusy },
	},
}
