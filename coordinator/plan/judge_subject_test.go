package plan

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// subject is an instance to be judged: running, reporting and healthy, if nothing else is said.
type subject struct {
	Instance
	s   Snapshot
	now time.Time
}

func newSubject() *subject {
	x := &subject{now: epoch.Add(time.Hour)}
	spec := store.DefaultGroup()
	spec.Complete()
	x.Record = store.Instance{ID: "i", Phase: store.Running, Managed: true, Called: true, Spec: spec.InstanceSpec()}
	x.Modified = 3
	x.Alive.Record, x.Alive.Modified = store.Alive{State: store.StreamOpen, BootID: "b"}, 4
	x.Report.Record, x.Report.Modified = store.Report{Healthy: true, BootID: "b"}, 5
	x.Sighting = Sighting{Begun: x.now.Add(-time.Second), Listed: true, State: "running", Times: 9}
	x.PhaseStart = x.now.Add(-time.Minute)
	x.s.SessionTTL = 5 * time.Second
	return x
}

func (x *subject) judge() Judgment { return judge(&x.Instance, &x.s, x.now) }

// The ways in which the evidence may differ.
type twist func(*subject)

func phase(p store.Phase) twist { return func(x *subject) { x.Record.Phase = p } }
func phaseFor(d time.Duration) twist {
	return func(x *subject) { x.PhaseStart = x.now.Add(-d) }
}
func stream(s store.StreamState) twist { return func(x *subject) { x.Alive.Record.State = s } }

func gone(ago time.Duration, last store.StreamState) twist {
	return func(x *subject) {
		x.Alive.Record, x.Alive.Modified = store.Alive{}, 0
		x.AliveGone, x.LastState = x.now.Add(-ago), last
	}
}

// silentFor has its alive key tell of trouble for so long before it went.
func silentFor(d time.Duration) twist {
	return func(x *subject) { x.SilentSince = x.AliveGone.Add(-d) }
}

func lostFor(d time.Duration) twist {
	return func(x *subject) { x.StreamSince = x.now.Add(-d) }
}

func graceFor(d time.Duration) twist {
	return func(x *subject) { x.s.GraceEnd, x.s.GraceWhy = x.now.Add(d), "a new leader began" }
}

func down(times int) twist {
	return func(x *subject) { x.Sighting.Down, x.Sighting.State, x.Sighting.Times = true, "stopped", times }
}

func unlisted(times int) twist {
	return func(x *subject) { x.Sighting.Listed, x.Sighting.State, x.Sighting.Times = false, "", times }
}

func provableIn(d time.Duration) twist {
	return func(x *subject) { x.Calls.AbsentFrom = x.Sighting.Begun.Add(d) }
}

func restarts(level string) twist {
	return func(x *subject) { x.Record.Restart = &store.Restart{Level: level, Token: "t", Boot: "b"} }
}

func putOffAgo(d time.Duration) twist {
	return func(x *subject) { x.Calls.PutOff = x.now.Add(-d) }
}

func noList(x *subject)    { x.Sighting = Sighting{} }
func unhealthy(x *subject) { x.Report.Record.Healthy, x.Report.Record.Why = false, "checks 0/1" }
func noReport(x *subject)  { x.Report = store.Versioned[store.Report]{} }
func otherBoot(x *subject) { x.Alive.Record.BootID = "b2" }
func rebootedInto(boot string) twist {
	return func(x *subject) { x.Record.Boot, x.Alive.Record.BootID, x.Report.Record.BootID = "b", boot, boot }
}

func unlimited(x *subject) { x.Record.Spec.MaxChecking = 0 }
