package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	maxQueued = 4_096 // spans; more are dropped while the queue is full
	sendEvery = time.Second
	sendTime  = 30 * time.Second // timeout of one request with all its retries
	dialEvery = 5 * time.Second  // longest pause while the collector is gone; gRPC would wait for two minutes
	closeTime = 2 * time.Second
)

// Sender sends spans to a collector.
type Sender struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	queue    *queue
}

// About describes the sender.
type About struct{ Shard, Replica, Version string }

// Open returns a sender to a collector that takes OTLP over gRPC. It does not connect yet.
// OpenTelemetry's own variables configure everything else, such as headers and certificates.
func Open(ctx context.Context, endpoint string, a About, log *slog.Logger) (*Sender, error) {
	if err := CheckEndpoint(endpoint); err != nil {
		return nil, err
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(endpoint),
		otlptracegrpc.WithTimeout(sendTime), otlptracegrpc.WithDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: dialEvery},
		})))
	if err != nil {
		return nil, err
	}
	return NewSender(exporter, a, log), nil
}

// CheckEndpoint returns an error unless it is the URL of a collector.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" && u.Path != "/" {
		return fmt.Errorf("%q: must be like https://collector:4317, or http:// for one without TLS", endpoint)
	}
	return nil
}

// NewSender returns a sender that uses an exporter.
func NewSender(exporter sdk.SpanExporter, a About, log *slog.Logger) *Sender {
	q := &queue{SpanExporter: exporter, log: log}
	s := &Sender{queue: q, provider: sdk.NewTracerProvider(
		sdk.WithBatcher(q, sdk.WithMaxQueueSize(maxQueued),
			sdk.WithBatchTimeout(sendEvery), sdk.WithExportTimeout(sendTime)),
		sdk.WithIDGenerator(given{}), sdk.WithSampler(sdk.AlwaysSample()),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "leasehold"), attribute.String("service.version", a.Version),
			attribute.String("service.instance.id", a.Replica), attribute.String(fieldShard, a.Shard),
		)),
	)}
	s.tracer = s.provider.Tracer("github.com/leasehold/leasehold/coordinator/tracing")
	return s
}

// Close sends what is queued, within a short time.
func (s *Sender) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = s.provider.Shutdown(ctx) // the process ends in any case
}

// Flush sends what is queued.
func (s *Sender) Flush(ctx context.Context) error { return s.provider.ForceFlush(ctx) }

// send queues a span, or drops it if the queue is full. It never waits.
func (s *Sender) send(of span) {
	if !s.queue.admit() {
		return
	}
	ctx := context.WithValue(context.Background(), givenKey{}, of)
	if of.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: of.trace, SpanID: of.parent, TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	_, made := s.tracer.Start(ctx, of.name, trace.WithTimestamp(of.begin), trace.WithAttributes(of.fields...))
	if of.failed != "" {
		made.SetStatus(codes.Error, of.failed)
	}
	made.End(trace.WithTimestamp(of.end))
}

// given is an ID generator that returns the IDs of a span.
type given struct{}

type givenKey struct{}

func (given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	of, _ := ctx.Value(givenKey{}).(span)
	return of.trace, of.id
}

func (given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	of, _ := ctx.Value(givenKey{}).(span)
	return of.id
}

// queue bounds the spans that wait, and logs when spans are dropped and when dropping ends.
// OpenTelemetry's own queue is equally long, but would drop spans silently.
type queue struct {
	sdk.SpanExporter
	log     *slog.Logger
	waiting atomic.Int64 // including those that are being sent
	dropped atomic.Int64 // dropped since the last log entry
	full    atomic.Bool
	failing atomic.Bool
}

// admit reports whether there is room for another span, and reserves it.
func (q *queue) admit() bool {
	if q.waiting.Add(1) <= maxQueued {
		return true
	}
	q.waiting.Add(-1)
	q.dropped.Add(1)
	if !q.full.Swap(true) {
		q.log.Warn("the collector takes traces too slowly: what does not fit into the queue is dropped",
			"queued", maxQueued)
	}
	return false
}

// ExportSpans exports, and keeps errors out of OpenTelemetry's own log.
func (q *queue) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	waiting := q.waiting.Add(-int64(len(spans)))
	switch {
	case err == nil:
		failed := q.failing.Swap(false)
		if waiting <= maxQueued/2 && q.full.Swap(false) || failed && !q.full.Load() {
			q.log.Info("the collector takes traces again", "dropped", q.dropped.Swap(0))
		}
	case !errors.Is(err, context.Canceled):
		q.dropped.Add(int64(len(spans)))
		if !q.failing.Swap(true) {
			q.log.Warn("the collector does not take traces: they are dropped until it does", "error", err)
		}
	}
	return nil
}
