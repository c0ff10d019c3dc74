// Package tracing exports to OpenTelemetry how instances were healed: one trace for each healing,
// from the first sign of trouble until the slot is served again (OBS-3).
//
//	healing.go  finds healings in the journal, and the steps of each
//	span.go     what a step is called, and its IDs
//	send.go     the queue to a collector
//	follow.go   follows the journal while a replica leads
//
// # Invariants
//
//   - The leader's loop is not involved: spans are made from the journal, beside the decisions. A
//     collector that is slow or gone costs only spans.
//   - All IDs follow from the journal. So a healing that spans two leaders is one trace, and a span
//     that is sent twice has the same ID.
//   - Spans hold typed fields only, as webhooks do: no output, no variables.
package tracing
