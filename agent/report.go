package agent

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/host"
	"github.com/leasehold/leasehold/agent/protocol"
)

// processCheck is the built-in check that every workload has (DET-9).
const processCheck = "process"

// report describes the machine as it is now (DET-13).
func (a *Agent) report(sequence uint64) *protocol.Report {
	sample := a.deps.Host.Latest()
	r := &protocol.Report{
		Sequence:      sequence,
		Sent:          timestamppb.New(time.Now()),
		MachineUptime: durationpb.New(sample.Uptime),
		Host: &protocol.Host{
			CpuPercent:      sample.CPUPercent,
			MemoryPercent:   sample.MemoryPercent,
			DiskPercent:     sample.DiskPercent,
			NetworkSent:     sample.NetworkSent,
			NetworkReceived: sample.NetworkReceived,
			Windows:         windows(sample),
		},
		ConfigHash: a.confirmed(),
		Restarted:  a.assignment.Restarted,
		Drained:    a.assignment.Drained,
		Notice:     a.notice(),
		Upgrade:    a.upgradeState(),
	}
	papers := a.deps.Certificate.Status()
	r.Trust = papers.Trust
	if papers.Joined && !papers.Ends.IsZero() {
		r.Certificate = &protocol.OwnCertificate{Issuer: papers.Issuer, Ends: timestamppb.New(papers.Ends)}
	}
	r.Checks, r.WorkloadExit = a.checked()
	r.Healthy, r.Why = health(a.checksKnown(), r.Checks)
	r.Files, r.FilesRoots = a.fileStates(), a.deps.Files.Roots()
	if why := a.incomplete(); r.Healthy && why != "" {
		r.Healthy, r.Why = false, why
	}
	return r.Fit()
}

// notice returns the notice that the machine will end, nil if there is none. A provider's takes
// precedence: it leaves less time.
func (a *Agent) notice() *protocol.Notice {
	n := a.deps.Notices.Latest()
	if n == nil {
		n = a.deps.Evacuation.Latest()
	}
	if n == nil {
		return nil
	}
	out := &protocol.Notice{Kind: n.Kind, Why: n.Why, At: timestamppb.New(n.Seen)}
	if !n.Ends.IsZero() {
		out.In = durationpb.New(max(time.Millisecond, time.Until(n.Ends))) // zero would mean unknown
	}
	return out
}

func windows(s host.Sample) []*protocol.HostWindow {
	var out []*protocol.HostWindow
	for _, w := range s.Windows {
		if w.Covered > 0 {
			out = append(out, &protocol.HostWindow{
				Span: durationpb.New(w.Span), Covered: durationpb.New(w.Covered),
				CpuPercent: w.CPUPercent, MemoryPercent: w.MemoryPercent, DiskPercent: w.DiskPercent,
				NetworkSent: w.NetworkSent, NetworkReceived: w.NetworkReceived,
				CpuIdle:     w.CPUMeasured && w.CPUPercent == 0,
				NetworkIdle: w.NetworkMeasured && w.NetworkSent == 0 && w.NetworkReceived == 0,
			})
		}
	}
	return out
}

// checked returns the state of every check: first the workload's process, if there is a workload,
// then the application's checks.
func (a *Agent) checked() ([]*protocol.Check, *protocol.WorkloadExit) {
	var list []*protocol.Check
	var ended *protocol.WorkloadExit
	if w := a.deps.Workload.State(); w.Wanted {
		check := &protocol.Check{
			Name: processCheck, Kind: processCheck, Healthy: w.Running,
			Since: timestamppb.New(a.started),
		}
		if !w.Since.IsZero() {
			check.Since = timestamppb.New(w.Since)
		}
		list = append(list, check)
		switch {
		case w.Running:
		case w.Exit != nil:
			check.Why = "workload " + w.Exit.Why
			if w.Exit.Withheld {
				break // its last output can be sent soon, and is sent only once
			}
			ended = &protocol.WorkloadExit{
				Code: int32(w.Exit.Code), Signal: w.Exit.Signal, At: timestamppb.New(w.Exit.At), Output: w.Exit.Output,
			}
			if a.assignment.Lifecycle == lifecycleTask && w.Exit.Code == 0 {
				check.Healthy = true // the task is done, so there is nothing to check
				return list, ended
			}
		default:
			check.Why = "workload is not started yet"
			if w.Waits != "" {
				check.Why = "workload waits for its " + w.Waits
			}
			if a.stopped && !w.Unread {
				check.Why = "workload is stopped: the agent has no lease"
			}
		}
	}
	for _, s := range a.deps.Checks.States() {
		list = append(list, checkReport(s))
	}
	return list, ended
}
