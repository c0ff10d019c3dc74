package gateway

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/store"
)

// The bounds of a report; more is cut off.
const (
	maxChecks  = protocol.MaxChecks
	maxWindows = protocol.MaxWindows
	maxName    = protocol.MaxName
	maxText    = protocol.MaxText
	maxOutput  = protocol.MaxOutput
)

// whyEvery is the shortest interval at which a report is persisted for nothing but another reason:
// a check may give another one each time.
const whyEvery = 10 * time.Second

// lateRenewal is the duration from which a renewal, which normally takes milliseconds, is so slow
// that fewer sessions may begin: beginning sessions takes too much of etcd, or of this replica.
const lateRenewal = 300 * time.Millisecond

// report handles a report: it renews the lease, acknowledges the report, and persists it if it has
// news. A write may be slow while renewals are fast, since it goes through etcd's log: so no
// acknowledgement waits for it. An error ends the stream.
func (s *session) report(r *protocol.Report) error {
	renewed, err := s.renewBy(&protocol.Ack{Sequence: r.GetSequence()})
	if renewed {
		s.held = r.GetSequence()
		s.persist(r)
	}
	return err
}

// heartbeat renews the lease. It requests a report if the last one was not accepted or could not be
// persisted.
func (s *session) heartbeat(h *protocol.Heartbeat) error {
	_, err := s.renewBy(&protocol.Ack{
		Sequence: h.GetSequence(),
		Report:   h.GetReport() != s.held || s.unwritten.Load(),
	})
	return err
}

// renewBy renews the lease for a report or a heartbeat, and answers it: with the acknowledgement if
// the lease was renewed. An error ends the stream.
func (s *session) renewBy(ack *protocol.Ack) (renewed bool, err error) {
	limit := s.g.timeouts.begin(s.ctx, min(callTimeout, s.ttl/3))
	lease, late, err := s.accept(limit.ctx)
	s.g.timeouts.end(limit)
	switch {
	case errors.Is(err, errRetired), errors.Is(err, errSuperseded):
		s.close(err)
		return false, nil
	case errors.Is(err, errUnrecorded): // it says nothing about etcd or this replica
		s.g.deps.Meter.Reported(false)
		return false, s.stream.Send(nack(ack.GetSequence(), err))
	case s.ctx.Err() != nil:
		return false, nil //nolint:nilerr // the stream is gone: that says nothing about etcd
	case err != nil:
		s.g.deps.Meter.Reported(false)
		s.g.deps.Logger.Debug("lease not renewed", "instance", s.instance, "error", err)
		if s.g.renewed(false, s.ttl) {
			s.enqueue(
				&protocol.GatewayMessage{
					Kind: &protocol.GatewayMessage_Move{Move: &protocol.Move{Reason: "this replica cannot renew leases"}},
				},
			)
		}
		return false, s.stream.Send(nack(ack.GetSequence(), err))
	}
	s.g.renewed(true, s.ttl)
	s.g.deps.Meter.Reported(true)
	ack.Lease = int64(lease.ID)
	if err := s.stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Ack{Ack: ack}}); err != nil {
		return false, err
	}
	if late {
		s.reopen()
	}
	return true, nil
}

func nack(sequence uint64, why error) *protocol.GatewayMessage {
	return &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Nack{Nack: &protocol.Nack{
		Sequence: sequence,
		Message:  clip.End(why.Error(), maxText),
	}}}
}

// reopen writes that the stream is open. It takes less than an interval, since the next report
// waits for it. If too many sessions need it, for example after a time without reports, the next
// report retries: otherwise all of them would read etcd with each report, without end.
func (s *session) reopen() {
	if !s.g.states.TryAcquire(1) {
		return
	}
	defer s.g.states.Release(1)
	ctx, cancel := context.WithTimeout(s.ctx, min(callTimeout, s.interval*2/3))
	defer cancel()
	s.setState(ctx, store.StreamOpen, "", "")
}

// accept renews the lease for a report. late reports whether the alive key does not, or may not,
// say that the stream is open.
func (s *session) accept(ctx context.Context) (lease store.Lease, late bool, err error) {
	if err := s.exchange.Acquire(ctx, 1); err != nil {
		s.renewalFailed(0)
		return lease, false, err
	}
	defer s.exchange.Release(1)
	if err := s.recorded(ctx); err != nil {
		return lease, false, err
	}
	if err := s.renew(ctx); err != nil {
		if errors.Is(err, errUnrecorded) {
			s.missing.Store(true)
			s.lose(ctx)
			return lease, false, err
		}
		if errors.Is(err, errSuperseded) || errors.Is(err, errRetired) { // etcd has answered: this stream is over
			return lease, false, err
		}
		s.renewalFailed(time.Until(s.lease.Ends()))
		return lease, false, err
	}
	s.accepted = time.Now()
	s.overdue.Reset(s.overdueAfter())
	doubtful := s.doubtful.Load() && s.doubtful.Swap(false)
	if doubtful && s.state == store.StreamOpen {
		s.state = ""
	}
	return s.lease, s.state == store.StreamOverdue || s.state == "", nil
}

// renewalFailed records a disturbance if the lease may end before the report after the next renews
// it (SAFE-1). A lease with more time left loses nothing by a stall of seconds, and if it was no
// stall, the next report will show that.
func (s *session) renewalFailed(left time.Duration) {
	if s.ctx.Err() == nil && left < s.ttl/2 {
		s.g.deps.Disturbed("a renewal failed")
	}
}

// renew extends the lease; a lease that is gone is replaced, as long as the instance may live. The
// caller must hold s.exchange.
func (s *session) renew(ctx context.Context) error {
	began := time.Now()
	l, err := s.g.deps.Store.Renew(ctx, s.lease.ID)
	if err == nil {
		s.lease = l
		switch took := time.Since(began); {
		case took > s.ttl/3:
			s.g.deps.Disturbed("a renewal came late")
			fallthrough
		case took > lateRenewal:
			s.g.admission.Slower(time.Now())
		}
		return nil
	}
	if !errors.Is(err, store.ErrLeaseGone) {
		return err
	}
	return s.regrant(ctx)
}

// recallReport reads the last persisted report of this instance, so that only news is written. The
// replica that served it before has written nothing since we registered it; if the cache is older
// than that, the first report is persisted, which harms nothing.
func (s *session) recallReport(ended bool) {
	s.recalled = true
	var last store.Versioned[store.Report]
	shown := false
	s.g.deps.Cache.View(func(c *cache.Content) {
		if shown = c.Revision >= s.openedAt(); shown {
			last = c.Reports[s.instance]
		}
	})
	if !shown && ended { // a workload's last output is reported once
		ctx, cancel := context.WithTimeout(s.ctx, min(callTimeout, s.interval/2))
		defer cancel()
		last, _ = readRecord[store.Report](ctx, s.g.deps.Store, s.g.cfg.Keys.Report(s.instance))
	}
	if last.Present() {
		s.lastReport, s.workload = last.Record, last.Record.Workload
		s.lastReport.Host = store.HostReport{}
		// a wrong clock delays it by a minute at most
		s.persisted = time.Now().Add(-max(0, time.Since(last.Record.Received)))
	}
}

// persist queues a report to be written if it has news, and otherwise once in a while (DET-16). If
// writing fails, the next report is written.
func (s *session) persist(r *protocol.Report) {
	rec := s.record(r)
	if !s.recalled {
		s.recallReport(rec.Workload != nil)
	}
	age := time.Since(s.persisted)
	fresh := s.unwritten.Load() || news(s.lastReport, *rec) || rec.Why != s.lastReport.Why && age >= whyEvery
	if !fresh && age < s.oldNewsEvery()-s.interval/2 { // the next report may come an interval early
		return
	}
	s.unwritten.Store(false)
	s.lastReport, s.persisted = *rec, time.Now()
	s.lastReport.Host = store.HostReport{} // without news
	s.g.reports.add(s, rec, fresh)
}

// oldNewsEvery returns how often a report of the session without news is written. For groups that
// follow their load, these reports are the leader's only source of the load (AUTO-2).
func (s *session) oldNewsEvery() time.Duration {
	every, followed := s.g.oldNewsEvery(), false
	s.g.deps.Cache.View(func(c *cache.Content) {
		group := c.Status[c.Instances[s.instance].Record.Group].Record.Accepted
		followed = group != nil && group.Scale != nil
	})
	if followed {
		return min(every, loadEvery)
	}
	return every
}

// oldNewsEvery returns how often a report without anything new is written, given the number of
// agents served now. Such reports only serve readers, but each costs etcd a write and every replica
// a read.
func (g *Gateway) oldNewsEvery() time.Duration {
	return max(persistEvery, time.Duration(g.Streams())*time.Second/maxOldNews)
}

// news reports whether a report differs in anything that others act on. The reason why an instance
// is unhealthy does not count: see whyEvery.
func news(old, now store.Report) bool {
	if old.BootID != now.BootID || old.Healthy != now.Healthy ||
		!slices.EqualFunc(old.Checks, now.Checks, store.CheckReport.Same) {
		return true
	}
	if !slices.EqualFunc(old.Files, now.Files, store.FileReport.Same) || !slices.Equal(old.FilesRoots, now.FilesRoots) {
		return true
	}
	if old.Config != now.Config || old.Restarted != now.Restarted || old.Drained != now.Drained {
		return true
	}
	if !old.Upgrade.Same(now.Upgrade) {
		return true
	}
	if old.Trust != now.Trust || !old.Certificate.Same(now.Certificate) {
		return true
	}
	return !old.Notice.Same(now.Notice) || !reflect.DeepEqual(old.Workload, now.Workload)
}

// record converts a report for storage, cut to its bounds (SEC-5).
func (s *session) record(r *protocol.Report) *store.Report {
	rec := &store.Report{
		Schema: store.Schema, Instance: s.instance, Replica: s.g.cfg.Replica, Received: time.Now().UTC(),
		Agent:  s.agent,
		BootID: s.bootID, Epoch: s.epoch, Sequence: r.GetSequence(), Sent: moment(r.GetSent()), Started: s.started,
		Uptime: store.Duration(r.GetMachineUptime().AsDuration()), Healthy: r.GetHealthy(),
		Why:    clip.End(r.GetWhy(), maxText),
		Config: clip.End(r.GetConfigHash(), maxName), Restarted: clip.End(r.GetRestarted(), maxName),
		Drained: clip.End(r.GetDrained(), maxName),
		Trust:   clip.End(r.GetTrust(), maxName), FilesRoots: protocol.AllRoots(r.GetFilesRoots()),
	}
	if c := r.GetCertificate(); c != nil {
		rec.Certificate = &store.CertificateReport{
			Issuer: clip.End(c.GetIssuer(), maxName),
			Ends:   moment(c.GetEnds()),
		}
	}
	for i, c := range r.GetChecks() {
		if i == maxChecks {
			break
		}
		rec.Checks = append(rec.Checks, store.CheckReport{
			Name: clip.End(c.GetName(), maxName), Kind: clip.End(c.GetKind(), maxName), Healthy: c.GetHealthy(),
			Optional: c.GetOptional(), Pending: c.GetPending(),
			Why: clip.End(c.GetWhy(), maxText), Since: moment(c.GetSince()),
			Against: int(c.GetAgainst()), Threshold: int(c.GetThreshold()),
			Took: store.Duration(max(0, c.GetTook().AsDuration())),
		})
	}
	if h := r.GetHost(); h != nil {
		rec.Host = store.HostReport{
			CPUPercent: percent(h.GetCpuPercent()), MemoryPercent: percent(h.GetMemoryPercent()),
			DiskPercent: percent(h.GetDiskPercent()),
			NetworkSent: h.GetNetworkSent(), NetworkRecv: h.GetNetworkReceived(),
		}
		for i, w := range h.GetWindows() {
			if i == maxWindows {
				break
			}
			rec.Host.Windows = append(rec.Host.Windows, store.HostWindow{
				Span:       store.Duration(max(0, w.GetSpan().AsDuration())),
				Covered:    store.Duration(max(0, w.GetCovered().AsDuration())),
				CPUPercent: percent(w.GetCpuPercent()), MemoryPercent: percent(w.GetMemoryPercent()),
				DiskPercent: percent(w.GetDiskPercent()),
				NetworkSent: w.GetNetworkSent(), NetworkRecv: w.GetNetworkReceived(),
				CPUIdle:     w.GetCpuIdle() && w.GetCpuPercent() == 0,
				NetworkIdle: w.GetNetworkIdle() && w.GetNetworkSent() == 0 && w.GetNetworkReceived() == 0,
			})
		}
	}
	s.fileReports(r, rec)
	if w := r.GetWorkloadExit(); w != nil {
		rec.Workload = &store.WorkloadExit{
			Code: int(w.GetCode()), Signal: clip.End(w.GetSignal(), maxName),
			At: moment(w.GetAt()), Output: clip.End(string(w.GetOutput()), maxOutput),
		}
	}
	if n := r.GetNotice(); n != nil {
		rec.Notice = &store.Notice{
			Kind: clip.End(n.GetKind(), maxName), Why: clip.End(n.GetWhy(), maxText), At: moment(n.GetAt()),
			In: store.Duration(max(0, n.GetIn().AsDuration())),
		}
	}
	if u := r.GetUpgrade(); u != nil {
		rec.Upgrade = &store.UpgradeReport{
			Token: clip.End(u.GetToken(), maxName), Version: clip.End(u.GetVersion(), maxName),
			Result: clip.End(u.GetResult(), maxName), Why: clip.End(u.GetWhy(), maxText),
		}
	}
	return rec
}

// fileReport returns the state of a file, cut to its bounds.
func fileReport(f *protocol.FileState) store.FileReport {
	return store.FileReport{
		Path: clip.End(f.GetPath(), protocol.MaxPath), State: store.FileState(clip.End(f.GetState(), maxName)),
		Why: clip.End(f.GetWhy(), maxText), At: moment(f.GetAt()), Version: clip.End(f.GetVersion(), maxName),
		Ends: moment(f.GetEnds()),
	}
}

// moment returns a time from an agent, if JSON can represent it.
func moment(t *timestamppb.Timestamp) time.Time {
	if !t.IsValid() {
		return time.Time{}
	}
	return t.AsTime()
}

// percent returns a share of 100. What is no number, which JSON cannot represent, is 0.
func percent(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return max(0, min(100, x))
}
