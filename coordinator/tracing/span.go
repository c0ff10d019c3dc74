package tracing

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/leasehold/leasehold/store"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// The steps of a healing, in order. A restart in place stops what a replacement creates.
const (
	stepHeal    = "heal"    // all of it: the root
	stepDetect  = "detect"  // first sign of trouble → verdict
	stepDecide  = "decide"  // verdict → restart or replacement requested; budgets and back-off wait here
	stepCreate  = "create"  // replacement requested → the machine exists
	stepStop    = "stop"    // restart begun → carried out
	stepBoot    = "boot"    // → its agent has registered
	stepHealthy = "healthy" // → its checks have passed
	stepTraffic = "traffic" // → its load balancers send it traffic
)

// span is a completed step of a healing.
type span struct {
	trace  trace.TraceID
	id     trace.SpanID
	parent trace.SpanID // zero: it is the root
	name   string
	begin  time.Time
	end    time.Time
	failed string // why the step did not succeed; "": it did
	fields []attribute.KeyValue
}

// traceOf returns the ID of a healing's trace. An instance that is restarted in place may be healed
// more than once, so the time of the first sign is part of the ID.
func traceOf(shard, instance string, began time.Time) (id trace.TraceID) {
	copy(id[:], digest("trace", shard, instance, began))
	return id
}

// spanOf returns the ID of a step that ended at a time.
func spanOf(of trace.TraceID, step, instance string, end time.Time) (id trace.SpanID) {
	copy(id[:], digest(string(of[:]), step, instance, end))
	return id
}

// rootOf returns the ID of a trace's root. It is known before the healing ends.
func rootOf(of trace.TraceID) trace.SpanID { return spanOf(of, stepHeal, "", time.Time{}) }

// digest hashes the parts of an ID. It is never all zero in practice.
func digest(kind, of, instance string, at time.Time) []byte {
	h := sha256.New()
	for _, text := range []string{kind, of, instance} {
		_ = binary.Write(h, binary.BigEndian, uint32(len(text))) // separates texts, so that no two lists have the same bytes
		h.Write([]byte(text))
	}
	_ = binary.Write(h, binary.BigEndian, at.UnixNano()) // writes to a hash do not fail
	return h.Sum(nil)
}

// The names of fields.
const (
	fieldShard       = "leasehold.shard"
	fieldGroup       = "leasehold.group"
	fieldSlot        = "leasehold.slot"
	fieldInstance    = "leasehold.instance"
	fieldReplacement = "leasehold.replacement"
	fieldVerdict     = "leasehold.verdict"
	fieldRule        = "leasehold.rule"
	fieldCause       = "leasehold.cause"
	fieldRevision    = "leasehold.revision"
)

// because returns the fields that say what decided an entry.
func because(e *store.JournalEntry) []attribute.KeyValue {
	fields := []attribute.KeyValue{
		attribute.String(fieldInstance, e.Instance), attribute.String(fieldRule, e.Rule),
		attribute.Int64(fieldRevision, int64(e.Revision)),
	}
	if e.Cause.Kind != "" {
		fields = append(fields, attribute.String(fieldCause, string(e.Cause.Kind)))
	}
	return fields
}
