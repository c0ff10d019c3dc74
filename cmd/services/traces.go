package services

import (
	"context"
	"log/slog"

	"github.com/leasehold/leasehold/coordinator/tracing"
)

// Traces holds the flags for sending traces.
type Traces struct {
	OTLP string `name:"otlp-endpoint" help:"Collector of OpenTelemetry that traces of healings are sent to, by gRPC, like https://collector:4317 (default: off). OTEL_EXPORTER_OTLP_HEADERS and _CERTIFICATE are what it demands." env:"LEASEHOLD_OTLP_ENDPOINT" placeholder:"URL"`
}

// open returns the sender of traces, and the function that ends it; nil if traces are off.
func (f Traces) open(ctx context.Context, h *Host, id string, log *slog.Logger) (s *tracing.Sender, end func(),
	err error,
) {
	if f.OTLP == "" {
		return nil, func() {}, nil
	}
	s, err = tracing.Open(ctx, f.OTLP, tracing.About{Shard: h.Shard, Replica: id, Version: h.Version}, log)
	if err != nil {
		return nil, nil, problem("name the collector's address for OTLP by gRPC", "--otlp-endpoint: %s", err)
	}
	log.Info("healings are sent to a collector while this coordinator leads", "endpoint", f.OTLP)
	return s, s.Close, nil
}
