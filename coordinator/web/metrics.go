package web

import (
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// scrapesAtOnce limits concurrent scrapes; further clients are asked to retry.
const scrapesAtOnce = 4

// Metrics are the metrics of one replica, in a registry of their own. It implements the meters of
// the coordinator and its gateway. No metric names an instance: the number of instances has no
// limit, and the journal says why one was replaced.
type Metrics struct {
	registry *prometheus.Registry

	transitions *prometheus.CounterVec
	disturbed   prometheus.Counter
	plans       prometheus.Histogram
	decisions   *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	waits       *prometheus.HistogramVec
	calls       *prometheus.CounterVec
	callTimes   *prometheus.HistogramVec
	detects     *prometheus.HistogramVec
	repairs     *prometheus.HistogramVec

	opened  prometheus.Counter
	refused *prometheus.CounterVec
	closed  *prometheus.CounterVec
	reports *prometheus.CounterVec

	watches      prometheus.Counter
	etcdRequests *prometheus.CounterVec
	etcdTimes    *prometheus.HistogramVec
	httpRefused  *prometheus.CounterVec
}

var _ coordinator.Meter = (*Metrics)(nil)

// The buckets, in seconds.
var (
	quick = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	slow  = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
)

// NewMetrics returns the metrics of a replica of this version, all at zero.
func NewMetrics(version string) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	times := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets},
			labels)
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		transitions: counter("leadership_transitions_total", "How often this replica began or ceased to lead.",
			"transition"),
		disturbed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "disturbances_total",
			Help: "Disturbances that this replica saw: leases may have ended though their agents live (SAFE-1).",
		}),
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "plan_seconds",
			Help: "How long it took to plan the groups that had changed.", Buckets: quick,
		}),
		decisions: counter("decisions_total",
			"Decisions that were committed, by the phase that they lead to (gone: the record's end; note: "+
				"no change of phase) and the rule.", "action", "rule"),
		refusals: counter("refusals_total",
			"Actions that were due and not taken, by reason: a rule that blocks them (counted once for each), "+
				"a stale cache, a lost fence, a conflict.", "kind"),
		waits: times("provider_queue_seconds", "How long calls to providers waited for their turn.", slow, "call"),
		calls: counter("provider_calls_total", "Calls to providers that are over, by how they ended.", "provider",
			"call", "result"),
		callTimes: times("provider_call_seconds",
			"How long calls to providers took; remove is stop and delete together.", slow, "provider", "call"),
		detects: times("detect_seconds",
			"From the first sign of trouble that the leader saw of an instance until the verdict that it has failed.",
			slow, "verdict"),
		repairs: times("repair_seconds",
			"From the verdict that an instance has failed until its replacement, or itself after a restart, is healthy.", slow,
			"verdict"),

		opened: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "stream_opens_total",
			Help: "Streams of agents that were registered.",
		}),
		refused: counter("stream_refusals_total", "Agents that were sent away at their hello, by why.", "reason"),
		closed: counter("stream_closes_total",
			"Streams of registered agents that are over, by how; lost: without a goodbye.", "reason"),
		reports: counter("reports_total",
			"Reports of agents, by whether they were acknowledged: a lease was renewed, or could not be.", "result"),

		watches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "watch_restarts_total",
			Help: "How often the watch of etcd was interrupted and everything listed again.",
		}),
		etcdRequests: counter("etcd_requests_total",
			"Requests to etcd that are over, by how they ended. Renewals of leases are the operation renew.",
			"operation", "result"),
		etcdTimes: times("etcd_request_seconds",
			"How long requests to etcd took. Transactions are the operation commit.", quick, "operation"),
		httpRefused: counter("http_refusals_total", "HTTP requests that were turned away, by status.", "code"),
	}
	for _, t := range []string{"begun", "ended"} { // exists from the start, so that the first increment shows
		m.transitions.WithLabelValues(t)
	}
	for _, r := range []string{"acknowledged", "refused"} {
		m.reports.WithLabelValues(r)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "build_info", Help: "1, labelled with the versions of this program and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.transitions, m.disturbed, m.plans, m.decisions, m.refusals, m.waits, m.calls, m.callTimes, m.detects,
		m.repairs,
		m.opened, m.refused, m.closed, m.reports, m.watches, m.etcdRequests, m.etcdTimes, m.httpRefused, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// prefix begins the name of each metric.
const prefix = "leasehold_"

// serve answers a scrape. Errors are logged only: the answer reveals no internals.
func (m *Metrics) serve(log *slog.Logger) http.HandlerFunc {
	gather := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := m.registry.Gather()
		if err != nil {
			log.Error("bug: some metrics could not be gathered", "error", err)
		}
		return families, nil
	})
	return promhttp.HandlerFor(gather, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce}).ServeHTTP
}

// Led implements coordinator.Meter, as the methods below do.
func (m *Metrics) Led(begun bool) {
	transition := "ended"
	if begun {
		transition = "begun"
	}
	m.transitions.WithLabelValues(transition).Inc()
}

func (m *Metrics) Disturbed()                 { m.disturbed.Inc() }
func (m *Metrics) Planned(took time.Duration) { m.plans.Observe(took.Seconds()) }

func (m *Metrics) Decided(a *plan.Action) {
	for _, entry := range a.JournalEntries() {
		action := string(entry.To)
		switch {
		case entry.From == entry.To:
			action = "note"
		case entry.To == "":
			action = "gone"
		}
		m.decisions.WithLabelValues(action, entry.Rule).Inc()
	}
}

func (m *Metrics) Held(b *store.Blocked) { m.refusals.WithLabelValues(reason.HeldBy(b)).Inc() }

func (m *Metrics) Refused(why coordinator.Refusal) { m.refusals.WithLabelValues(string(why)).Inc() }

func (m *Metrics) Asked(call string, waited time.Duration) {
	m.waits.WithLabelValues(call).Observe(waited.Seconds())
}

func (m *Metrics) Called(name, call string, took time.Duration, err error) {
	result := "done"
	if err != nil {
		switch provider.KindOf(err) {
		case provider.Capacity:
			result = "no_capacity"
		case provider.Quota:
			result = "quota"
		case provider.Credentials:
			result = "credentials"
		case provider.Throttled:
			result = "throttled"
		default:
			result = "failed"
		}
	}
	m.calls.WithLabelValues(name, call, result).Inc()
	m.callTimes.WithLabelValues(name, call).Observe(took.Seconds())
}

func (m *Metrics) Detected(v store.Verdict, after time.Duration) {
	m.detects.WithLabelValues(string(v)).Observe(after.Seconds())
}

func (m *Metrics) Repaired(v store.Verdict, after time.Duration) {
	m.repairs.WithLabelValues(string(v)).Observe(after.Seconds())
}

func (m *Metrics) StreamOpened()            { m.opened.Inc() }
func (m *Metrics) StreamRefused(why string) { m.refused.WithLabelValues(strings.ToLower(why)).Inc() }
func (m *Metrics) StreamClosed(why string)  { m.closed.WithLabelValues(why).Inc() }

func (m *Metrics) Reported(acknowledged bool) {
	result := "refused"
	if acknowledged {
		result = "acknowledged"
	}
	m.reports.WithLabelValues(result).Inc()
}
