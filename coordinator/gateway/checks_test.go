package gateway

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// proves DET-9
func TestChecksAreSentInFull(t *testing.T) {
	second := store.Duration(time.Second)
	got := checkSpecs([]store.Check{
		{
			Name: "a", Interval: 5 * second, Timeout: second, UnhealthyThreshold: 3, HealthyThreshold: 4, Optional: true,
			HTTP: &store.HTTPCheck{
				Scheme: "https", Host: "h", Port: "1", Path: "/p", Method: "HEAD", Headers: map[string]string{"X": "y"},
				Status: []string{"200-299"}, Body: "b", BodyRegexp: "r",
				FollowRedirects: true, SkipVerify: true, CAFile: "c", ServerName: "s",
			},
		},
		{Name: "b", TCP: &store.TCPCheck{Host: "h", Port: "${port}"}},
		{Name: "c", GRPC: &store.GRPCCheck{Host: "h", Port: "2", Service: "v", TLS: true, CAFile: "c"}},
		{Name: "d", Exec: &store.ExecCheck{Run: []string{"x", "y"}}},
		{Name: "e", Process: &store.ProcessCheck{Name: "n", PIDFile: "f"}},
	})
	none := durationpb.New(0)
	want := []*protocol.CheckSpec{
		{
			Name: "a", Interval: durationpb.New(5 * time.Second), Timeout: durationpb.New(time.Second),
			UnhealthyThreshold: 3, HealthyThreshold: 4, Optional: true,
			Kind: &protocol.CheckSpec_Http{Http: &protocol.HTTPCheck{
				Scheme: "https", Host: "h", Port: "1", Path: "/p", Method: "HEAD", Headers: map[string]string{"X": "y"},
				Status: []string{"200-299"}, Body: "b", BodyRegexp: "r",
				FollowRedirects: true, Tls: &protocol.TLSOptions{SkipVerify: true, CaFile: "c", ServerName: "s"},
			}},
		},
		{
			Name: "b", Interval: none, Timeout: none,
			Kind: &protocol.CheckSpec_Tcp{Tcp: &protocol.TCPCheck{Host: "h", Port: "${port}"}},
		},
		{
			Name: "c", Interval: none, Timeout: none,
			Kind: &protocol.CheckSpec_Grpc{Grpc: &protocol.GRPCCheck{
				Host: "h", Port: "2", Service: "v",
				Encrypted: true, Tls: &protocol.TLSOptions{CaFile: "c"},
			}},
		},
		{
			Name: "d", Interval: none, Timeout: none,
			Kind: &protocol.CheckSpec_Exec{Exec: &protocol.ExecCheck{Run: []string{"x", "y"}}},
		},
		{
			Name: "e", Interval: none, Timeout: none,
			Kind: &protocol.CheckSpec_Process{Process: &protocol.ProcessCheck{Name: "n", PidFile: "f"}},
		},
	}
	if len(got) != len(want) {
		t.Fatalf("%d checks, want %d", len(got), len(want))
	}
	for i := range want {
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("got %v\nwant %v", got[i], want[i])
		}
	}
}
