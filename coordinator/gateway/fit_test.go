package gateway

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// anyReport returns what checks, workloads and clouds may make an agent want to say.
func anyReport(t *rapid.T) *protocol.Report {
	text := func(most int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.StringN(0, 20, -1).Draw(t, "text"), rapid.IntRange(0, most/10).Draw(t, "times"))
		})
	}
	raw := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "raw")) })
	words := rapid.OneOf(text(5000), raw)
	now := timestamppb.Now()
	r := &protocol.Report{
		Sequence: 1, Sent: now, MachineUptime: durationpb.New(time.Hour), Healthy: rapid.Bool().Draw(t, "healthy"),
		Why:        words.Draw(t, "why"),
		ConfigHash: strings.Repeat("h", 64), Restarted: strings.Repeat("r", 60), Drained: strings.Repeat("d", 60),
		Trust:       strings.Repeat("t", 32),
		Certificate: &protocol.OwnCertificate{Issuer: strings.Repeat("i", 32), Ends: now},
		Host:        &protocol.Host{CpuPercent: 1},
	}
	for range rapid.IntRange(0, 100).Draw(t, "checks") {
		r.Checks = append(r.Checks, &protocol.Check{
			Name: words.Draw(t, "name"), Kind: "http", Optional: true, Healthy: true, Pending: true,
			Why: words.Draw(t, "why"), Since: now, Against: 1, Threshold: 2,
			Took: durationpb.New(time.Second),
		})
	}
	for range rapid.IntRange(0, 5).Draw(t, "windows") {
		r.Host.Windows = append(r.Host.Windows,
			&protocol.HostWindow{
				Span: durationpb.New(time.Minute), Covered: durationpb.New(time.Minute), CpuPercent: 1,
				NetworkSent: 1 << 60,
			})
	}
	for range rapid.IntRange(0, 20).Draw(t, "roots") {
		r.FilesRoots = append(r.FilesRoots, "/"+words.Draw(t, "root"))
	}
	if rapid.Bool().Draw(t, "ended") {
		r.WorkloadExit = &protocol.WorkloadExit{
			Code: -1, Signal: words.Draw(t, "signal"), At: now,
			Output: []byte(strings.Repeat(raw.Draw(t, "output"), 100)),
		}
	}
	if rapid.Bool().Draw(t, "notice") {
		r.Notice = &protocol.Notice{
			Kind: words.Draw(t, "kind"), Why: words.Draw(t, "why"),
			In: durationpb.New(time.Minute), At: now,
		}
	}
	return r
}

// The gateway accepts whatever an agent reports: the agent cuts it to at most half of what the
// gateway accepts.
//
// proves SEC-5
func TestWhatAgentsSendIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyReport(t).Fit()
		data, err := proto.Marshal(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: r}})
		if err != nil {
			t.Fatalf("it cannot be sent: %v", err)
		}
		if len(data) > protocol.MaxMessage*3/4 {
			t.Errorf("it has %d bytes", len(data))
		}
		fourfold := bytes.Repeat(data, 4)
		if err := guard.CountFields(fourfold, (&protocol.AgentMessage{}).ProtoReflect().Descriptor()); err != nil {
			t.Errorf("it has more than a quarter of the allowed fields: %v", err)
		}
		msg, err := decode(data)
		if err != nil {
			t.Fatalf("it is not read: %v", err)
		}
		if err := (&session{}).violationIn(msg); err != nil {
			t.Errorf("it is a violation: %v", err)
		}
	})
}

// What is weighed as too much takes less to weigh than to read.
//
// proves SEC-5
func TestPartsAreCountedBeforeTheyAreRead(t *testing.T) {
	many := &protocol.Report{Checks: make([]*protocol.Check, protocol.MaxParts)}
	for i := range many.Checks {
		many.Checks[i] = &protocol.Check{}
	}
	data, err := proto.Marshal(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: many}})
	if err != nil {
		t.Fatal(err)
	}
	if allocated := testing.AllocsPerRun(10, func() {
		if _, err := decode(data); err == nil {
			t.Fatal("it is read")
		}
	}); allocated > 20 {
		t.Errorf("%v allocations for a message that is not read", allocated)
	}
}

// FuzzAgentMessage gives the gateway any bytes for a message.
//
// proves SEC-5
func FuzzAgentMessage(f *testing.F) {
	for _, m := range []*protocol.AgentMessage{
		{},
		{Kind: &protocol.AgentMessage_Hello{Hello: &protocol.Hello{
			Protocol: 1, Shard: "s", Instance: "web-0",
			BootId: "b", Epoch: 1,
		}}},
		{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
			Sequence: 1,
			Checks:   []*protocol.Check{{Name: "c", Took: durationpb.New(-1)}},
		}}},
		{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{Sent: &timestamppb.Timestamp{
			Seconds: -1 << 62,
			Nanos:   -1,
		}, Host: &protocol.Host{Windows: []*protocol.HostWindow{{}}}}}},
		{Kind: &protocol.AgentMessage_Heartbeat{Heartbeat: &protocol.Heartbeat{Sequence: 2, Report: 1}}},
		{Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{Kind: 99, Message: "x"}}},
		{Kind: &protocol.AgentMessage_RenewCertificate{RenewCertificate: &protocol.RenewCertificate{Request: []byte{1}}}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte{0x13, 0x13, 0x13, 0x14})
	f.Fuzz(func(t *testing.T, data []byte) {
		var left protocol.AgentMessage
		told := proto.Unmarshal(data, &left)
		msg, err := decode(data)
		if err != nil {
			if told == nil && !errors.Is(err, guard.MessageTooManyFields) {
				t.Errorf("%v, but it can be read", err)
			}
			return
		}
		if told != nil {
			t.Fatalf("it is read, but %v", told)
		}
		if !proto.Equal(msg.AgentMessage, &left) {
			t.Errorf("it is read as %v, and is %v", msg.AgentMessage, &left)
		}
		if h := msg.GetHello(); h != nil {
			malformed(h)
		}
		s := &session{g: &Gateway{cfg: Config{Replica: "one"}}, instance: "web-0", hello: &protocol.Hello{}}
		if s.violationIn(msg) != nil || msg.GetReport() == nil {
			return
		}
		rec := *s.record(msg.GetReport())
		if _, err := store.Decode[store.Report](store.KV{Key: "reports/web-0", Value: store.Encode(rec)}); err != nil {
			t.Errorf("what is stored cannot be read: %v", err)
		}
		news(rec, rec)
	})
}
