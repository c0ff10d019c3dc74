package coordinator_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/tracing"
	"github.com/leasehold/leasehold/store"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// collector takes spans of all replicas that are alive.
type collector struct {
	mu    sync.Mutex
	spans []sdk.ReadOnlySpan
	dead  map[string]bool // replicas
}

// exporter is the way to the collector from one replica.
type exporter struct {
	*collector
	replica string
}

func (e exporter) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.dead[e.replica] {
		e.spans = append(e.spans, spans...)
	}
	return nil
}

func (exporter) Shutdown(context.Context) error { return nil }

// traces are the spans by trace, each once, in the order of their ends, the root last.
func (c *collector) traces(t *testing.T) map[trace.TraceID][]sdk.ReadOnlySpan {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	traces := map[trace.TraceID][]sdk.ReadOnlySpan{}
	seen := map[trace.SpanID]sdk.ReadOnlySpan{}
	for _, s := range c.spans {
		id := s.SpanContext().SpanID()
		if same := seen[id]; same != nil {
			if same.Name() != s.Name() || !same.StartTime().Equal(s.StartTime()) || !same.EndTime().Equal(s.EndTime()) {
				t.Errorf("span %s was sent as %s and as %s", id, same.Name(), s.Name())
			}
			continue
		}
		seen[id] = s
		of := s.SpanContext().TraceID()
		traces[of] = append(traces[of], s)
	}
	for _, spans := range traces {
		slices.SortStableFunc(spans, func(a, b sdk.ReadOnlySpan) int {
			if a.Parent().IsValid() != b.Parent().IsValid() {
				return map[bool]int{true: -1, false: 1}[a.Parent().IsValid()]
			}
			return a.EndTime().Compare(b.EndTime())
		})
	}
	return traces
}

// sendsTo has a replica send its traces to a collector.
func (w *world) sendsTo(c *collector, id string) func(*coordinator.Config, *coordinator.Deps) {
	s := tracing.NewSender(exporter{c, id}, tracing.About{Shard: "test", Replica: id}, w.log)
	w.t.Cleanup(s.Close)
	return func(_ *coordinator.Config, d *coordinator.Deps) { d.Traces = s }
}

// A leader that dies in the middle of a healing leaves one trace, to which the next one adds.
//
// proves OBS-3
func TestHealingIsOneTraceUnderTwoLeaders(t *testing.T) {
	inWorld(t, callsOf(3*time.Second), func(w *world) {
		c := &collector{dead: map[string]bool{}}
		one := w.start("one", w.sendsTo(c, "one"))
		w.leads(time.Minute, "one")
		w.start("two", w.sendsTo(c, "two"))
		w.apply(w.group("web", 3))
		ids := w.up(3)
		w.provider.Crash(ids[0], "exit 1")
		heir := ""
		w.until(time.Minute, "a replacement is requested", func() bool {
			for _, in := range w.instances() {
				if in.Record.Replaces == ids[0] && in.Record.Phase == store.Creating {
					heir = in.Record.ID
				}
			}
			return heir != ""
		})
		w.pass(2 * time.Second) // what was decided is sent every second
		c.mu.Lock()
		c.dead["one"] = true
		c.mu.Unlock()
		one.kill()
		w.leads(time.Minute, "two")
		w.up(3)
		w.pass(5 * time.Second)

		traces := c.traces(t)
		if len(traces) != 1 {
			t.Fatalf("%d traces, want one", len(traces))
		}
		for _, spans := range traces {
			var names []string
			root := spans[len(spans)-1]
			for i, s := range spans {
				names = append(names, s.Name())
				if i < len(spans)-1 && s.Parent().SpanID() != root.SpanContext().SpanID() {
					t.Errorf("the parent of %s is not the root", s.Name())
				}
				if i > 0 && i < len(spans)-1 && !s.StartTime().Equal(spans[i-1].EndTime()) {
					t.Errorf("%s does not begin where %s ends", s.Name(), spans[i-1].Name())
				}
			}
			if want := []string{"detect", "decide", "create", "boot", "healthy", "heal"}; !slices.Equal(names, want) {
				t.Errorf("the spans are %v, want %v", names, want)
			}
			if !root.StartTime().Equal(spans[0].StartTime()) || !root.EndTime().Equal(spans[len(spans)-2].EndTime()) {
				t.Errorf("the root lasts from %s to %s", root.StartTime(), root.EndTime())
			}
			fields := map[string]string{}
			for _, f := range root.Attributes() {
				fields[string(f.Key)] = f.Value.String()
			}
			if fields["leasehold.instance"] != ids[0] || fields["leasehold.replacement"] != heir ||
				fields["leasehold.rule"] != "DET-4" || fields["leasehold.group"] != "web" ||
				fields["leasehold.verdict"] != "dead" {
				t.Errorf("the root has %v", fields)
			}
		}
	})
}

// A leader whose collector takes nothing decides as ever, also when no more spans can wait.
//
// proves OBS-3
func TestHealingWaitsForNoCollector(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		stuck := &stuckExporter{free: make(chan struct{})}
		defer close(stuck.free)
		var lines strings.Builder
		log := slog.New(slog.NewTextHandler(&lines, nil))
		s := tracing.NewSender(stuck, tracing.About{Shard: "test", Replica: "one"}, log)
		w.t.Cleanup(s.Close)
		w.start("one", func(_ *coordinator.Config, d *coordinator.Deps) { d.Traces = s })
		w.apply(w.group("web", 3))
		w.up(3)
		w.heals(1_100) // in four spans each
		w.pass(time.Second)
		if !strings.Contains(lines.String(), "does not fit into the queue") {
			t.Fatalf("the queue is not full: %s", lines.String())
		}
		for range 3 {
			id := w.ids()[0]
			w.provider.Crash(id, "exit 1")
			w.until(time.Minute, "it is replaced", func() bool { return w.settled(3) && !slices.Contains(w.ids(), id) })
		}
	})
}

// heals adds as many healings of another group to the journal.
func (w *world) heals(n int) {
	w.t.Helper()
	var writes []store.Write
	for i := range n {
		slot, now := i, time.Now().UTC()
		failed := store.JournalEntry{
			Schema: store.Schema, At: now, Group: "other", Slot: &slot, Instance: fmt.Sprint("other-", i, "-a"),
			Verdict: store.Dead, To: store.Deleting, Replacement: fmt.Sprint("other-", i, "-b"),
		}
		works := failed
		works.Instance, works.Verdict, works.Replacement = failed.Replacement, "", ""
		works.From, works.To = store.Checking, store.Running
		for j, e := range []store.JournalEntry{failed, works} {
			writes = append(writes, store.Put(w.keys.Event(now, fmt.Sprintf("%05d-%d", i, j)), store.Encode(e)))
		}
	}
	w.putAll(writes)
}

// stuckExporter answers nothing.
type stuckExporter struct{ free chan struct{} }

func (s *stuckExporter) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	<-s.free
	return nil
}

func (*stuckExporter) Shutdown(context.Context) error { return nil }
