package gateway_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// raw sends a message unchanged.
func (a *agent) raw(data []byte) {
	a.t.Helper()
	if err := a.stream.SendMsg(rawMessage(data)); err != nil {
		a.t.Fatalf("send %d bytes: %v", len(data), err)
	}
}

// rawMessage returns a message whose fields are all unknown on this side: they are sent unchanged.
func rawMessage(data []byte) proto.Message {
	m := &protocol.AgentMessage{}
	m.ProtoReflect().SetUnknown(data)
	return m
}

// emptyParts returns a report with so many empty parts in it.
func emptyParts(n int) []byte {
	var parts []byte
	for range n {
		parts = protowire.AppendTag(parts, 6, protowire.BytesType) // checks
		parts = protowire.AppendVarint(parts, 0)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), parts)
}

// entriesOf returns the entries of the journal under a rule, once what was to be written is.
func (r *replica) entriesOf(rule string) []store.JournalEntry {
	pass(time.Millisecond)
	var out []store.JournalEntry
	for _, e := range r.entries() {
		if e.Rule == rule {
			out = append(out, e)
		}
	}
	return out
}

// An agent that violates the protocol is cut off with a reason and named; its hellos are refused
// for a while, and other clients are not affected.
//
// proves SEC-5
func TestOffendersAreCutOffAndNamed(t *testing.T) {
	report := func(r *protocol.Report) func(*agent) {
		return func(a *agent) { a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: r}}) }
	}
	heartbeat := func(h *protocol.Heartbeat) func(*agent) {
		return func(a *agent) { a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Heartbeat{Heartbeat: h}}) }
	}
	for _, c := range []struct {
		name, why string
		do        func(a *agent)
	}{
		{"hello twice", "it says hello twice", func(a *agent) {
			a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: hello("web-0", "boot1", 2)}})
		}},
		{
			"sequence again", "its reports are not numbered upwards",
			report(&protocol.Report{Sequence: 1, Healthy: true}),
		},
		{
			"heartbeat before a report", "its heartbeat refers to a report that it has not sent",
			heartbeat(&protocol.Heartbeat{Sequence: 9}),
		},
		{
			"heartbeat of a later report", "its heartbeat refers to a report that it has not sent",
			heartbeat(&protocol.Heartbeat{Sequence: 9, Report: 8}),
		},
		{
			"sequence of a heartbeat again", "its reports are not numbered upwards",
			heartbeat(&protocol.Heartbeat{Sequence: 1, Report: 1}),
		},
		{"no sequence", "its reports are not numbered upwards", report(&protocol.Report{Healthy: true})},
		{
			"checks", "a report has more of something than an agent has",
			report(&protocol.Report{Sequence: 9, Checks: make([]*protocol.Check, 300)}),
		},
		{
			"windows", "a report has more of something than an agent has",
			report(&protocol.Report{Sequence: 9, Host: &protocol.Host{Windows: make([]*protocol.HostWindow, 13)}}),
		},
		{
			"why", "a report has more of something than an agent has",
			report(&protocol.Report{Sequence: 9, Why: strings.Repeat("x", 5000)}),
		},
		{
			"a check's name", "a report has more of something than an agent has",
			report(&protocol.Report{Sequence: 9, Checks: []*protocol.Check{{Name: strings.Repeat("x", 500)}}}),
		},
		{
			"a check's why", "a report has more of something than an agent has",
			report(&protocol.Report{Sequence: 9, Checks: []*protocol.Check{{Why: strings.Repeat("x", 5000)}}}),
		},
		{"too long", "a message is too long", report(&protocol.Report{Sequence: 9, Why: strings.Repeat("x", 300<<10)})},
		{
			"a hundred thousand empty checks", "a message has too many parts",
			func(a *agent) { a.raw(emptyParts(100_000)) },
		},
		{"no message", "a message cannot be read", func(a *agent) { a.raw([]byte{0x12, 0xff, 0xff, 0xff, 0x01, 'x'}) }},
		{"no text", "a message cannot be read", func(a *agent) { a.raw([]byte{0x12, 0x04, 0x2a, 0x02, 0xff, 0xfe}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				w.record("web-1", store.Running)
				bad, good := r.welcomed(hello("web-0", "boot1", 1)), r.welcomed(hello("web-1", "boot1", 1))
				defer bad.hangUp()
				defer good.hangUp()
				bad.reports()
				c.do(bad)
				if c.name == "too long" {
					bad.ends() // gRPC itself ends the stream
				} else if refusal := bad.next().GetRefused(); refusal.GetReason() != protocol.Refused_MALFORMED ||
					!strings.Contains(refusal.GetMessage(), "cut off for 10s: "+c.why) {
					t.Errorf("it is told %v", refusal)
				}
				bad.ends()
				synctest.Wait()
				entries := r.entriesOf("SEC-5")
				if len(entries) != 1 || entries[0].Instance != "web-0" || entries[0].Why != c.why ||
					entries[0].What != "agent cut off" {
					t.Errorf("the journal has %+v", entries)
				}
				w.shows("web-0", "one", 1, store.StreamLost)
				good.reports()

				came := time.Now()
				if text := r.refused(hello("web-0", "boot1", 2),
					protocol.Refused_MALFORMED).GetMessage(); !strings.Contains(text, "cut off for another 10s") {
					t.Errorf("its next hello is answered with %q", text)
				}
				if took := time.Since(came); took < time.Second {
					t.Errorf("its next hello is answered after %s: it could come again at once", took)
				}
				pass(10 * time.Second)
				defer r.welcomed(hello("web-0", "boot1", 3)).hangUp()
			})
		})
	}
}

// Each violation has an agent cut off for longer. After ten minutes without one that starts over.
//
// proves SEC-5
func TestViolationsAddUp(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		epoch := uint64(0)
		offend := func() string {
			epoch++
			a := r.welcomed(hello("web-0", "boot1", epoch))
			defer a.hangUp()
			a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{}}})
			text := a.next().GetRefused().GetMessage()
			return strings.TrimSuffix(strings.Fields(text)[3], ":")
		}
		for _, seconds := range []int{10, 20, 40, 80, 160, 300, 300} {
			want := time.Duration(seconds) * time.Second
			if got := offend(); got != want.String() {
				t.Fatalf("violation %d: cut off for %s, want %s", epoch, got, want)
			}
			pass(want)
		}
		pass(10 * time.Minute)
		if got := offend(); got != "10s" {
			t.Errorf("after ten minutes without a violation it is cut off for %s", got)
		}
	})
}

// A client that says hello too often is ignored while that lasts; an agent that looks for a replica
// never reaches that limit.
//
// proves SEC-5
func TestHellosAreBoundedInRate(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.record("web-1", store.Running)
		for i := range uint64(10) {
			r.welcomed(hello("web-0", "boot1", i+1)).hangUp()
		}
		var many []*agent
		for range 20 {
			many = append(many, r.call(hello("web-0", "boot1", 100)))
		}
		for _, a := range many {
			if refusal := a.next().GetRefused(); refusal.GetReason() != protocol.Refused_UNAVAILABLE ||
				!strings.Contains(refusal.GetMessage(), "too many hellos") {
				w.t.Fatalf("a hello too many is answered with %v", refusal)
			}
			a.hangUp()
		}
		r.welcomed(hello("web-1", "boot1", 1)).hangUp() // another is welcome
		// It gets one through in a second: the others are too many still.
		for i := 0; len(r.entriesOf("SEC-5")) == 0; i++ {
			var flood []*agent
			for range 5 {
				flood = append(flood, r.call(hello("web-0", "boot1", 200+uint64(i))))
			}
			for _, a := range flood {
				a.next()
				a.hangUp()
			}
			if i > 100 {
				w.t.Fatal("a flood of hellos is no violation")
			}
		}
		if e := r.entriesOf("SEC-5")[0]; e.Why != "it says hello too often" || e.Instance != "web-0" {
			t.Errorf("the journal has %+v", e)
		}
	})
}

// An agent that has always more to say than an agent can have is held up first, and then cut off.
//
// proves SEC-5
func TestFloodsAreCutOff(t *testing.T) {
	for _, c := range []struct {
		name    string
		message *protocol.AgentMessage
	}{
		{"reports", nil},
		{"unknown kinds", &protocol.AgentMessage{}},
		{
			"large messages",
			&protocol.AgentMessage{Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{
				Kind:    protocol.Goodbye_MOVING,
				Message: strings.Repeat("x", 200<<10),
			}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				w.record("web-1", store.Running)
				bad, good := r.welcomed(hello("web-0", "boot1", 1)), r.welcomed(hello("web-1", "boot1", 1))
				defer bad.hangUp()
				defer good.hangUp()
				began, sent := time.Now(), 0
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for {
						msg := c.message
						if msg == nil {
							msg = &protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{Sequence: uint64(sent +
								1), Healthy: true}}}
						}
						if bad.stream.Send(msg) != nil {
							return
						}
						sent++
					}
				}()
				for i := 0; ; i++ {
					msg := bad.next()
					if why := msg.GetRefused(); why != nil {
						if !strings.Contains(why.GetMessage(), "it sends more than an agent can") {
							t.Errorf("it is told %v", why)
						}
						break
					}
					if i%100 == 0 {
						came := time.Now()
						good.reports()
						if took := time.Since(came); took > 0 {
							t.Errorf("meanwhile another waits %s for an acknowledgement", took)
						}
					}
				}
				if took := time.Since(began); took < 30*time.Second || took > 50*time.Second {
					t.Errorf("it was cut off after %s", took)
				}
				<-ended
				if e := r.entriesOf("SEC-5"); len(e) != 1 || e[0].Instance != "web-0" {
					t.Errorf("the journal has %+v", e)
				}
			})
		})
	}
}
