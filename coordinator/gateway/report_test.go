package gateway_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// proves DET-16
func TestReportsArePersistedOnChangeAndOnceAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		a.reports()
		first := w.report("web-0")
		if !first.Record.Healthy || first.Record.Sequence != 1 || first.Lease != 0 {
			w.t.Fatalf("report %+v on lease %s", first.Record, first.Lease)
		}
		writes, last := 0, first.Modified
		for range 5 * 60 / 5 {
			pass(interval)
			a.reports()
			if now := w.report("web-0").Modified; now != last {
				writes, last = writes+1, now
			}
		}
		pass(time.Second) // what has no news waits for others a moment
		if now := w.report("web-0").Modified; now != last {
			writes, last = writes+1, now
		}
		if writes != 5 {
			t.Errorf("%d writes in five minutes without news", writes)
		}

		for _, news := range []*protocol.Report{
			{Healthy: false, Why: "ill"},
			{Healthy: true, Checks: []*protocol.Check{{Name: "http", Healthy: true}}},
			{Healthy: true, Checks: []*protocol.Check{{Name: "http", Healthy: false, Optional: true}}},
			{Healthy: true, Checks: []*protocol.Check{{Name: "tcp", Healthy: false, Optional: true}}},
			{Healthy: true, Checks: []*protocol.Check{{Name: "tcp", Healthy: false, Optional: true, Pending: true}}},
			{Healthy: true, ConfigHash: "another"},
			{Healthy: true, Files: []*protocol.FileState{{Path: "/a", State: "delivered", Version: "1"}}},
			{Healthy: true, Files: []*protocol.FileState{{Path: "/a", State: "error", Why: "the disk is full"}}},
			{Healthy: true, FilesRoots: []string{"/etc/leasehold-files"}},
			{Healthy: true, FilesRoots: []string{"/etc/leasehold-files", "/srv"}},
			{Healthy: true, WorkloadExit: &protocol.WorkloadExit{Code: 3, Output: []byte("oh")}},
		} {
			a.report(news)
			if now := w.report("web-0"); now.Modified == last || now.Record.Sequence != a.number {
				t.Errorf("%v is not persisted", news)
			} else {
				last = now.Modified
			}
		}
		quiet := a.report(&protocol.Report{
			Healthy:      true,
			WorkloadExit: &protocol.WorkloadExit{Code: 3, Output: []byte("oh")}, Host: &protocol.Host{CpuPercent: 50},
		})
		if quiet.GetAck() == nil || w.report("web-0").Modified != last {
			t.Errorf("the load of the machine is news: %v", quiet)
		}
		a.hangUp()

		// Nor does a new stream make an old report news.
		b := r.welcomed(hello("web-0", "boot1", 2))
		defer b.hangUp()
		b.report(&protocol.Report{Healthy: true, WorkloadExit: &protocol.WorkloadExit{Code: 3, Output: []byte("oh")}})
		if w.report("web-0").Modified != last {
			t.Error("an agent that reconnects has its report persisted more than once a minute")
		}
		pass(leaseTTL) // the report is not on the lease
		if !w.report("web-0").Present() {
			t.Error("the report went with the lease")
		}
	})
}

// The directories below which an agent writes files are stored as a whole or not at all, and
// written once.
//
// proves FILE-1, DET-16, SEC-5
func TestDirectoriesOfFilesAreStored(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		a.report(&protocol.Report{Healthy: true})
		if got := w.report("web-0").Record.FilesRoots; got != nil {
			t.Errorf("an agent of an earlier release has %q", got)
		}
		dirs := []string{"/etc/leasehold-files", "/srv"}
		a.report(&protocol.Report{Healthy: true, FilesRoots: dirs})
		first := w.report("web-0")
		if !slices.Equal(first.Record.FilesRoots, dirs) {
			t.Errorf("stored are %q", first.Record.FilesRoots)
		}
		a.report(&protocol.Report{Healthy: true, FilesRoots: dirs})
		a.hangUp()
		b := r.welcomed(hello("web-0", "boot1", 2))
		defer b.hangUp()
		b.report(&protocol.Report{Healthy: true, FilesRoots: dirs})
		if w.report("web-0").Modified != first.Modified {
			t.Error("the same directories are written again")
		}
		for what, wrong := range map[string][]string{
			"too many": slices.Repeat([]string{"/srv"}, protocol.MaxRoots+1),
			"too long": {"/srv", "/" + strings.Repeat("x", protocol.MaxPath)},
			"relative": {"/srv", "srv"},
			"unclean":  {"/srv/../etc"},
			"empty":    {""},
		} {
			b.report(&protocol.Report{Healthy: true, FilesRoots: dirs})
			b.report(&protocol.Report{Healthy: true, FilesRoots: wrong})
			if got := w.report("web-0").Record.FilesRoots; got != nil {
				t.Errorf("%s: stored are %d of %d", what, len(got), len(wrong))
			}
		}
	})
}

// An instance that is ill for another reason each time is written about now and then, not with
// every report.
//
// proves DET-16
func TestReasonsAreNoNewsByThemselves(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.report(&protocol.Report{Why: "not checked yet"})
		writes, last := 0, w.report("web-0").Modified
		for i := range 60 {
			pass(time.Second)
			a.report(&protocol.Report{Why: strings.Repeat("x", i+1)})
			if now := w.report("web-0").Modified; now != last {
				writes, last = writes+1, now
			}
		}
		if writes < 5 || writes > 6 {
			t.Errorf("%d writes in a minute, each report with another reason", writes)
		}
	})
}

// proves DET-9, SEC-5
func TestChecksAreTakenOver(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		list := []*protocol.Check{{
			Name: strings.Repeat("n", 400), Kind: strings.Repeat("k", 400), Why: strings.Repeat("w", 4000),
			Pending: true, Optional: true,
			Against: 1, Threshold: 3, Took: durationpb.New(-time.Second),
		}, {
			Name: "http:8081", Kind: "http", Why: "connection refused", Against: 1, Threshold: 2,
			Took: durationpb.New(time.Second),
		}}
		for range 250 {
			list = append(list, &protocol.Check{Name: "x"})
		}
		a.report(&protocol.Report{Checks: list})
		got := w.report("web-0").Record.Checks
		if len(got) != 64 {
			t.Fatalf("%d checks are kept", len(got))
		}
		if c := got[0]; len(c.Name) != 100 || len(c.Kind) != 100 || len(c.Why) != 1000 || !c.Pending || !c.Optional ||
			c.Took != 0 || c.Progress() != "1/3" {
			t.Errorf("check is %+v", c)
		}
		if c := got[1]; c.Kind != "http" || c.Why != "connection refused" || c.Took.D() != time.Second ||
			c.Progress() != "1/2" {
			t.Errorf("check is %+v", c)
		}
	})
}

// A write that fails is made up for by the next report.
//
// proves DET-16
func TestReportThatCouldNotBePersistedIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		r.store.Faults().LoseRequest()
		for range 2 {
			if m := a.report(&protocol.Report{Healthy: false, Why: "ill"}); m.GetAck() == nil {
				t.Errorf("%v: the lease was renewed all the same", m)
			}
		}
		if w.report("web-0").Record.Healthy {
			t.Error("the bad news was not persisted")
		}
	})
}

// An acknowledgement says that the lease is renewed. If renewals work but writes do not, for
// example because etcd's disk is slow, agents must not look for another replica, or fence
// themselves, because acknowledgements are missing.
//
// proves DET-14, SAFE-9
func TestWhatCannotBeWrittenHoldsUpNoAcknowledgement(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		r.writesAreAnswered(false)
		for i := range 10 {
			sent := time.Now()
			if msg := a.report(&protocol.Report{Healthy: i%2 == 0}); msg.GetAck().GetSequence() != a.number {
				t.Fatalf("report %d is answered with %v", a.number, msg)
			}
			if took := time.Since(sent); took > 0 {
				t.Errorf("the acknowledgement of report %d took %s", a.number, took)
			}
			pass(interval - time.Since(sent))
		}
		r.writesAreAnswered(true)
		a.reports()
		if got := w.report("web-0").Record; got.Sequence != a.number {
			t.Errorf("report %d is written down after report %d", got.Sequence, a.number)
		}
	})
}

// An agent that never stops reporting gets as much of etcd as its rate is, and no other agent waits
// for it.
//
// proves SEC-5
func TestReportsAreBoundedInRate(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.record("web-1", store.Running)
		bad, good := r.welcomed(hello("web-0", "boot1", 1)), r.welcomed(hello("web-1", "boot1", 1))
		defer bad.hangUp()
		defer good.hangUp()
		const all, burst, rate = 300, 100, 20
		for i := range uint64(all) {
			bad.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{Sequence: i +
				1, Healthy: i%2 == 0}}})
		}
		began := time.Now()
		pass(2 * time.Second)
		good.reports()
		if n := len(bad.in); n < burst || n > burst+2*rate+5 {
			t.Errorf("%d reports are answered within 2s, want about %d", n, burst+2*rate)
		}
		last := uint64(0)
		for last < all {
			last = bad.next().GetAck().GetSequence()
		}
		if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("all are answered after %s, want %s", took, (all-burst)/rate*time.Second)
		}
	})
}

// proves SEC-5
func TestAbsurdReportsHarmNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		long := strings.Repeat("äx", 1300)
		checks := make([]*protocol.Check, 200)
		for i := range checks {
			checks[i] = &protocol.Check{
				Name: strings.Repeat("n", 150), Why: strings.Repeat("w\x00", 40),
				Since: &timestamppb.Timestamp{Seconds: math.MaxInt64},
			}
		}
		windows := make([]*protocol.HostWindow, 12)
		for i := range windows {
			windows[i] = &protocol.HostWindow{
				Span: durationpb.New(-time.Hour), CpuPercent: math.NaN(),
				MemoryPercent: math.Inf(1), DiskPercent: math.Inf(-1), NetworkSent: math.MaxUint64,
			}
		}
		windows[1] = nil
		reports := []*protocol.Report{
			{Healthy: true, Host: &protocol.Host{
				CpuPercent: math.NaN(), MemoryPercent: math.Inf(1),
				DiskPercent: math.Inf(-1),
			}},
			{Healthy: false, Why: long},
			{Healthy: true, Host: &protocol.Host{Windows: windows}},
			{
				Healthy: true, Sent: &timestamppb.Timestamp{Seconds: math.MinInt64, Nanos: -1},
				MachineUptime: &durationpb.Duration{Seconds: math.MaxInt64},
			},
			{Healthy: true, Sent: &timestamppb.Timestamp{Seconds: 253402300799, Nanos: 999999999}},
			{Healthy: false, Checks: checks},
			{Healthy: false, Checks: []*protocol.Check{nil}},
			{Healthy: false, WorkloadExit: &protocol.WorkloadExit{
				Output: []byte(strings.Repeat("\xff\x00", 60_000)),
				Signal: strings.Repeat("äx", 130), At: &timestamppb.Timestamp{Nanos: -5},
			}},
		}
		for i, report := range reports {
			if m := a.report(report); m.GetAck() == nil {
				w.t.Fatalf("report %d is answered with %v", i, m)
			}
			rec := w.report("web-0").Record
			if i > 0 && rec.Sequence != a.number && rec.Healthy != report.GetHealthy() {
				t.Errorf("report %d was not persisted", i)
			}
			if len(rec.Why) > 1000 || !utf8.ValidString(rec.Why) || len(rec.Checks) > 64 {
				t.Errorf("report %d: %d bytes of why, %d checks", i, len(rec.Why), len(rec.Checks))
			}
			for _, c := range rec.Checks {
				if len(c.Name) > 100 || len(c.Why) > 1000 {
					t.Errorf("report %d: check with a name of %d bytes and %d of why", i, len(c.Name), len(c.Why))
				}
			}
			if len(rec.Host.Windows) > 3 || report.GetHost().GetWindows() != nil && len(rec.Host.Windows) != 3 {
				t.Errorf("report %d: %d windows", i, len(rec.Host.Windows))
			}
			if e := rec.Workload; e != nil && (len(e.Output) > 3*(64<<10) || len(e.Signal) > 100) {
				t.Errorf("report %d: output of %d bytes, signal of %d", i, len(e.Output), len(e.Signal))
			}
		}

		// A report that is too long ends its sender's stream, and no other.
		w.record("web-1", store.Running)
		b := r.welcomed(hello("web-1", "boot1", 1))
		defer b.hangUp()
		a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{Why: strings.Repeat("x",
			300<<10)}}})
		a.ends()
		pass(time.Second)
		w.shows("web-0", "one", 1, store.StreamLost)
		b.reports()
	})
}

// Unknown kinds of messages are ignored: a newer agent may send them.
func TestUnknownMessagesAreIgnored(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.send(&protocol.AgentMessage{})
		a.reports()
	})
}

// Agents hear of other replicas as they come and go.
//
// proves DET-14
func TestAgentsHearOfReplicas(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		w.put(w.keys.Replica("two"), store.Encode(store.Replica{Schema: store.Schema, ID: "two", Address: "two"}))
		for m := range a.in {
			if m.GetWanted() != nil {
				continue
			}
			if len(m.GetCoordinators().GetAddresses()) != 2 {
				t.Errorf("%v came, want two addresses", m)
			}
			break
		}
	})
}

// The load of a group whose size follows it is written twice as often.
//
// proves DET-16, AUTO-2
func TestLoadThatASizeFollowsIsPersistedMoreOften(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.put(w.keys.Status("web"), store.Encode(store.Status{
			Schema: store.Schema, Group: "web", Accepted: &store.Group{Scale: &store.ScaleSpec{Max: 3}},
		}))
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		pass(time.Second)
		writes, last := 0, w.report("web-0").Modified
		for range 5 * 60 / 5 {
			pass(interval)
			a.reports()
			if now := w.report("web-0").Modified; now != last {
				writes, last = writes+1, now
			}
		}
		if writes < 9 || writes > 10 {
			t.Errorf("%d writes in five minutes", writes)
		}
	})
}

// A zero that was measured stays one in the record; what only says so does not.
//
// proves AUTO-2
func TestAnIdleMachineIsRecordedAsMeasured(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		span := durationpb.New(time.Minute)
		a.report(&protocol.Report{Healthy: true, Host: &protocol.Host{Windows: []*protocol.HostWindow{
			{Span: span, Covered: span, CpuIdle: true, NetworkIdle: true}, // idle
			{Span: span, Covered: span},                                   // not measured, or by an older agent
			{ // wrong
				Span: span, Covered: span, CpuPercent: 3, NetworkSent: 1, CpuIdle: true, NetworkIdle: true,
			},
		}}})
		for i, idle := range []bool{true, false, false} {
			if got := w.report("web-0").Record.Host.Windows[i]; got.CPUIdle != idle || got.NetworkIdle != idle {
				t.Errorf("window %d: %+v, want idle: %t", i, got, idle)
			}
		}
	})
}
