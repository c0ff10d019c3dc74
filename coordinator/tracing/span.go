package tracing

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/leasehold/leasehold/store"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// The steps of a healing, in their order. A restart in place stops what a replacement creates.
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

// span is a step of a healing that is over.
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

// traceOf is the ID of the trace of a healing. An instance that is restarted in its place may be
// healed more than once, so the time of the first sign is a part of it.
func traceOf(shard, instance string, began time.Time) (id trace.TraceID) {
	copy(id[:], digest("trace", shard, instance, began))
	return id
}

// spanOf is the ID of a step that ended at a time.
func spanOf(of trace.TraceID, step, instance string, end time.Time) (id trace.SpanID) {
	copy(id[:], digest(string(of[:]), step, instance, end))
	return id
}

// rootOf is the ID of the root of a trace. It is known before the healing is over.
func rootOf(of trace.TraceID) trace.SpanID { return spanOf(of, stepHeal, "", time.Time{}) }

// digest hashes what tells an ID from others. It is never all zero in practice.
func digest(kind, of, instance string, at time.Time) []byte {
	h := sha256.New()
	for _, text := range []string{kind, of, instance} {
		_ = binary.Write(h, binary.BigEndian, uint32(len(text))) // so that no two lists of texts are the same bytes
		h.Write([]byte(text))
	}
	_ = binary.Write(h, binary.BigEndian, at.UnixNano()) // a hash takes all that is written to it
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

// because are the fields that say by what an entry was decided.
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
