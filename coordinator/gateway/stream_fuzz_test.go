package gateway_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// FuzzStream has an agent send arbitrary messages on its stream: each is a length and as many
// bytes. For any input, another agent is served as before, and nothing is left when the first one
// has gone.
//
// proves SEC-5
func FuzzStream(f *testing.F) {
	seed := func(messages ...*protocol.AgentMessage) {
		var out []byte
		for _, m := range messages {
			data, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			out = append(append(out, byte(len(data))), data...)
		}
		f.Add(out)
	}
	report := func(n uint64) *protocol.AgentMessage {
		return &protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
			Sequence: n,
			Healthy:  true,
		}}}
	}
	goodbye := func(k protocol.Goodbye_Kind) *protocol.AgentMessage {
		return &protocol.AgentMessage{Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{
			Kind:    k,
			Message: "so long",
		}}}
	}
	seed(report(1), report(2), goodbye(protocol.Goodbye_RESTART), report(3))
	seed(report(5), report(4))
	seed(goodbye(protocol.Goodbye_MOVING), goodbye(protocol.Goodbye_SHUTDOWN), &protocol.AgentMessage{})
	seed(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: hello("web-0", "boot", 2)}})
	seed(
		&protocol.AgentMessage{
			Kind: &protocol.AgentMessage_RenewCertificate{RenewCertificate: &protocol.RenewCertificate{Request: []byte("x")}},
		},
		report(1),
	)
	f.Add([]byte{3, 0x12, 0xff, 0xff, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		inWorld(t, func(w *world) {
			r := w.serve("one")
			defer r.stop()
			w.record("web-0", store.Running)
			w.record("web-1", store.Running)
			good, bad := r.welcomed(hello("web-1", "boot", 1)), r.welcomed(hello("web-0", "boot", 1))
			defer good.hangUp()
			defer bad.hangUp()
			for len(script) > 0 {
				n := min(int(script[0]), len(script)-1)
				if bad.stream.SendMsg(rawMessage(script[1:1+n])) != nil {
					break
				}
				script = script[1+n:]
			}
			pass(time.Second)
			good.reports()
		})
	})
}
