package tracing

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// maxOpen bounds the number of remembered instances: those in trouble, and those being healed.
const maxOpen = 20_000

// sign is trouble of an instance that no action has addressed yet.
type sign struct {
	began  time.Time // the first sign
	judged time.Time // the verdict that requires healing; zero: there is none yet
	entry  store.JournalEntry
}

// healing is a healing under way.
type healing struct {
	trace    trace.TraceID
	began    time.Time
	because  store.JournalEntry // the verdict
	failed   string             // the instance that failed first
	now      string             // the instance that the slot waits for
	at       time.Time          // when its last step ended
	restarts bool               // it is restarted in place
	joining  bool               // it is healthy and waits for load balancers
	known    []string           // the instances that refer to it in open
}

// healings finds healings in the journal. It takes entries in the order in which they were made,
// and has no clock.
type healings struct {
	shard string // its ID
	signs map[string]sign
	// by the instance that failed, and by the instance that the slot waits for
	open map[string]*healing
	left map[place]sign   // slots that a failed instance has left, without a replacement yet
	runs map[place]string // the instance that got healthy last
}

type place struct {
	group string
	slot  int
}

func newHealings(shard string) *healings {
	return &healings{
		shard: shard, signs: map[string]sign{}, open: map[string]*healing{}, left: map[place]sign{}, runs: map[place]string{},
	}
}

// follow takes the next entry, and returns the steps that it ends.
func (h *healings) follow(e *store.JournalEntry) []span {
	if e.Instance == "" || e.Claimed || e.Kind == store.EntryRefusal {
		return nil
	}
	if e.Kind == store.EntryVerdict {
		return h.judged(e)
	}
	switch {
	case e.Kind == store.EntryCall:
		return nil
	case e.Verdict.Failed() && (e.Replacement != "" || e.To == store.Stopping):
		return h.decided(e, h.signOf(e), e.Replacement)
	case e.Verdict.Failed() && (e.To == store.Deleting || e.To == store.Draining) && e.Slot != nil && !endsSlot(e):
		return h.leaves(e)
	case e.To == store.Pending && e.From == "" && e.Slot != nil:
		if s, vacated := h.left[placeOf(e)]; vacated {
			delete(h.left, placeOf(e))
			return h.decided(e, s, e.Instance)
		}
		return nil
	}
	switch {
	case e.Slot == nil:
	case e.To == store.Running:
		remember(h.runs, placeOf(e), e.Instance)
	case e.To == store.Deleting && h.runs[placeOf(e)] == e.Instance:
		delete(h.runs, placeOf(e))
	}
	delete(h.signs, e.Instance) // it leaves for another reason, or works again
	if e.Slot != nil && e.To.Fills() && h.left[placeOf(e)].entry.Instance == e.Instance {
		delete(h.left, placeOf(e)) // its agent returned while it drained
	}
	if o := h.open[e.Instance]; o != nil && o.now == e.Instance {
		return h.step(o, e)
	}
	return nil
}

// judged handles a verdict.
func (h *healings) judged(e *store.JournalEntry) []span {
	if e.Verdict != store.Suspect && !e.Verdict.Failed() {
		delete(h.signs, e.Instance)
		o := h.open[e.Instance]
		if o == nil || e.Verdict != store.Live || o.now == e.Instance {
			return nil // restarts and creations end by their phases
		}
		// It is back before its replacement was ready, and keeps its slot.
		return h.end(o, e, "")
	}
	s, known := h.signs[e.Instance]
	if !known && len(h.signs) >= maxOpen {
		return nil
	}
	if !known {
		s.began = e.At
	}
	if s.judged.IsZero() && e.Verdict.Failed() {
		s.judged = e.At
	}
	s.entry = *e
	h.signs[e.Instance] = s
	return nil
}

// signOf returns the trouble that a decision ends. A decision may be the first entry about it.
func (h *healings) signOf(e *store.JournalEntry) sign {
	s, known := h.signs[e.Instance]
	delete(h.signs, e.Instance)
	if !known {
		s = sign{began: e.At, entry: *e}
	}
	if s.judged.IsZero() {
		s.judged = e.At
	}
	return s
}

// leaves handles the removal of a failed instance that has no replacement yet.
func (h *healings) leaves(e *store.JournalEntry) []span {
	s := h.signOf(e)
	if o := h.open[e.Instance]; o != nil && o.now != e.Instance {
		return nil // its replacement is being created
	}
	if other, runs := h.runs[placeOf(e)]; runs && other != e.Instance {
		return nil // its replacement is ready
	}
	delete(h.runs, placeOf(e))
	remember(h.left, placeOf(e), s)
	return nil
}

// decided begins a healing, or its next attempt.
func (h *healings) decided(e *store.JournalEntry, s sign, replacement string) []span {
	failed := s.entry.Instance
	o := h.open[failed]
	switch {
	case o != nil && o.now != failed:
		return nil // its replacement is being created
	case o == nil && len(h.open) >= maxOpen:
		return nil
	case o == nil:
		o = &healing{trace: traceOf(h.shard, failed, s.began), began: s.began, because: s.entry, failed: failed}
		h.opens(o, failed)
	}
	spans := []span{
		o.span(stepDetect, s.began, s.judged, &s.entry, ""), o.span(stepDecide, s.judged, e.At, e, ""),
	}
	o.at, o.now, o.restarts, o.joining = e.At, failed, replacement == "", false
	if replacement != "" {
		o.now = replacement
		h.opens(o, replacement)
	}
	return spans
}

// maxKnown bounds the instances that refer to a healing: the one that failed first, and the last
// two attempts, of which the earlier may still recover and keep the slot.
const maxKnown = 3

// opens records that a healing is about an instance.
func (h *healings) opens(o *healing, instance string) {
	h.open[instance] = o
	if o.known = append(o.known, instance); len(o.known) > maxKnown {
		delete(h.open, o.known[1])
		o.known = slices.Delete(o.known, 1, 2)
	}
}

// step handles an entry about the instance that a slot waits for.
func (h *healings) step(o *healing, e *store.JournalEntry) []span {
	var name string
	switch {
	case e.Cause.Kind == store.CauseWorks && e.To == "":
		name, o.joining = stepHealthy, true
	case e.To == store.Booting:
		name = stepCreate
	case e.To == store.Starting:
		name = stepStop
	case e.To == store.Checking:
		name = stepBoot
	case (e.To == store.Running || e.To == store.Finished) && o.joining:
		name = stepTraffic
	case e.To == store.Running, e.To == store.Finished:
		name = stepHealthy
	case e.To == store.Deleting, e.To == store.Draining:
		return h.end(o, e, "it was withdrawn")
	default:
		return nil
	}
	spans := []span{o.span(name, o.at, e.At, e, "")}
	o.at = e.At
	if e.To == store.Running || e.To == store.Finished {
		spans = append(spans, h.end(o, e, "")...)
	}
	return spans
}

// end ends a healing.
func (h *healings) end(o *healing, e *store.JournalEntry, failed string) []span {
	for _, id := range o.known {
		if h.open[id] == o {
			delete(h.open, id)
		}
	}
	root := o.span(stepHeal, o.began, e.At, &o.because, failed)
	root.id, root.parent = root.parent, trace.SpanID{}
	root.fields = append(root.fields, attribute.String(fieldVerdict, string(o.because.Verdict)),
		attribute.String(fieldGroup, o.because.Group))
	if o.because.Slot != nil {
		root.fields = append(root.fields, attribute.Int(fieldSlot, *o.because.Slot))
	}
	if o.now != o.failed && e.Instance == o.now {
		root.fields = append(root.fields, attribute.String(fieldReplacement, o.now))
	}
	return []span{root}
}

// span returns the step of the healing that an entry ended.
func (o *healing) span(name string, begin, end time.Time, e *store.JournalEntry, failed string) span {
	return span{
		trace: o.trace, id: spanOf(o.trace, name, e.Instance, end), parent: rootOf(o.trace), name: name,
		begin: begin, end: end, failed: failed, fields: slices.Clip(because(e)),
	}
}

// endsSlot reports whether an instance leaves because its slot is no longer wanted.
func endsSlot(e *store.JournalEntry) bool {
	return e.Cause.Kind == store.CauseSmaller || e.Cause.Kind == store.CauseGroupEnds
}

// remember sets an entry of a map, unless the map is full.
func remember[V any](of map[place]V, p place, what V) {
	if _, known := of[p]; known || len(of) < maxOpen {
		of[p] = what
	}
}

func placeOf(e *store.JournalEntry) place { return place{e.Group, *e.Slot} }
