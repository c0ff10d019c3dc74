package agent

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// While nothing is new an agent sends heartbeats, and a report once a minute.
//
// proves DET-1, DET-16
func TestHeartbeatsBetweenReports(t *testing.T) {
	story(t, []string{"a"}, true, nil, func(t *testing.T, r *running) {
		r.shard.take()
		pass(6 * interval)
		wantHeard(t, r.shard.take(), "a heartbeat 2 of 1", "a heartbeat 3 of 1", "a heartbeat 4 of 1", "a heartbeat 5 of 1",
			"a heartbeat 6 of 1", "a report 7 healthy")
		pass(interval)
		got := r.shard.take()
		wantHeard(t, got, "a heartbeat 8 of 7")
		if h := got[0].message.GetHeartbeat(); h.GetCpuPercent() != 12 {
			t.Errorf("heartbeat is %v, want the load in it", h)
		}
		r.machine.exit(3)
		wantHeard(t, r.shard.take(), "a report 9 unhealthy")
		pass(interval)
		wantHeard(t, r.shard.take(), "a heartbeat 10 of 9")
	})
}

// A replica of the release before gets reports only.
//
// proves DET-16
func TestNoHeartbeatsForAnOlderReplica(t *testing.T) {
	before := func(s *shard) { s.replicas["a"].script.older = protocol.Newest - protocol.Heartbeats + 1 }
	story(t, []string{"a"}, false, before, func(t *testing.T, r *running) {
		r.shard.take()
		pass(2 * interval)
		wantHeard(t, r.shard.take(), "a report 2 healthy", "a report 3 healthy")
	})
}

// A report that was not accepted, or that the replica asks for, is sent again.
//
// proves DET-16
func TestReportsThatAreSentAgain(t *testing.T) {
	story(t, []string{"a"}, false, nil, func(t *testing.T, r *running) {
		act := func(to script) {
			r.shard.mu.Lock()
			defer r.shard.mu.Unlock()
			r.shard.replicas["a"].script = to
		}
		r.shard.take()
		act(script{report: true})
		pass(interval)
		wantHeard(t, r.shard.take(), "a heartbeat 2 of 1")
		act(script{})
		pass(2 * interval)
		wantHeard(t, r.shard.take(), "a report 3 healthy", "a heartbeat 4 of 3")
		act(script{nack: true})
		pass(interval)
		wantHeard(t, r.shard.take(), "a heartbeat 5 of 3")
		pass(interval)
		wantHeard(t, r.shard.take(), "a report 6 healthy")
	})
}

// A report stays valid as long as nothing changes that others act on.
//
// proves DET-16
func TestWhatReplacesAReport(t *testing.T) {
	at := timestamppb.New(time.Unix(1e9, 0))
	report := func() *protocol.Report {
		return &protocol.Report{
			Sequence: 3, Sent: at, MachineUptime: durationpb.New(time.Hour), Healthy: true, ConfigHash: "c1",
			Checks: []*protocol.Check{{
				Name: "web", Kind: "http", Healthy: true, Since: at,
				Took: durationpb.New(time.Second),
			}},
			Host:        &protocol.Host{CpuPercent: 10},
			Notice:      &protocol.Notice{Kind: "terminate", Why: "wanted back", At: at, In: durationpb.New(time.Minute)},
			Certificate: &protocol.OwnCertificate{Issuer: "i", Ends: at}, Trust: "t",
			WorkloadExit: &protocol.WorkloadExit{Code: 3},
		}
	}
	for name, c := range map[string]struct {
		change func(r *protocol.Report)
		stands bool
	}{
		"nothing":          {func(*protocol.Report) {}, true},
		"sequence":         {func(r *protocol.Report) { r.Sequence = 4 }, true},
		"time":             {func(r *protocol.Report) { r.Sent = timestamppb.Now() }, true},
		"uptime":           {func(r *protocol.Report) { r.MachineUptime = nil }, true},
		"load":             {func(r *protocol.Report) { r.Host.CpuPercent = 90 }, true},
		"time of a check":  {func(r *protocol.Report) { r.Checks[0].Took = nil }, true},
		"time that's left": {func(r *protocol.Report) { r.Notice.In = nil }, true},
		"health":           {func(r *protocol.Report) { r.Healthy = false }, false},
		"reason":           {func(r *protocol.Report) { r.Why = "other" }, false},
		"check's health":   {func(r *protocol.Report) { r.Checks[0].Healthy = false }, false},
		"check's name":     {func(r *protocol.Report) { r.Checks[0].Name = "db" }, false},
		"check's kind":     {func(r *protocol.Report) { r.Checks[0].Kind = "tcp" }, false},
		"optional check":   {func(r *protocol.Report) { r.Checks[0].Optional = true }, false},
		"pending check":    {func(r *protocol.Report) { r.Checks[0].Pending = true }, false},
		"another check":    {func(r *protocol.Report) { r.Checks = append(r.Checks, &protocol.Check{}) }, false},
		"configuration":    {func(r *protocol.Report) { r.ConfigHash = "c2" }, false},
		"restart":          {func(r *protocol.Report) { r.Restarted = "r1" }, false},
		"drain":            {func(r *protocol.Report) { r.Drained = "d1" }, false},
		"notice's reason":  {func(r *protocol.Report) { r.Notice.Why = "other" }, false},
		"notice's kind":    {func(r *protocol.Report) { r.Notice.Kind = "evacuating" }, false},
		"another notice":   {func(r *protocol.Report) { r.Notice.At = timestamppb.Now() }, false},
		"no notice":        {func(r *protocol.Report) { r.Notice = nil }, false},
		"trust":            {func(r *protocol.Report) { r.Trust = "u" }, false},
		"certificate":      {func(r *protocol.Report) { r.Certificate.Issuer = "j" }, false},
		"no certificate":   {func(r *protocol.Report) { r.Certificate = nil }, false},
		"exit":             {func(r *protocol.Report) { r.WorkloadExit.Code = 4 }, false},
		"no exit":          {func(r *protocol.Report) { r.WorkloadExit = nil }, false},
	} {
		now := report()
		c.change(now)
		if got := report().Stands(now); got != c.stands {
			t.Errorf("%s changes, and the report stands: %t, want %t", name, got, c.stands)
		}
	}
}
