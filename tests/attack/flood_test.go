package attack

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/tests/tier"
)

// halfOpen is how many connections are opened and never finished, at least.
var halfOpen = tier.Pick(1000, 10_000)

// An agent that sends as many reports as a replica takes is cut off after 30 s, if these are more
// than an agent may send.
const (
	talkingTime = 2 * time.Minute
	maxRate     = 25 // reports a second: 20, and the 100 that it may send at once
)

// floods all come at once, for longer than a lease lasts: an honest agent that cannot report would
// be lost.
func floods(t *testing.T, s *siege) {
	rogues := s.rogues(t, "flood", 3)
	talker, asker, comer, stranger := rogues[0], rogues[1], rogues[2], s.attacker()
	before := s.calm()
	talking, asking := talker.opened(t), asker.opened(t)
	request := requestOf(t, newKey(t))

	ctx, stop := context.WithTimeout(t.Context(), 2*s.TTL)
	defer stop()
	var all sync.WaitGroup
	var open halfOpened
	var certificates, reports atomic.Int64
	var sessions map[string]int
	var how string
	all.Go(func() { open = stranger.flood(ctx) })
	all.Go(func() { sessions = comer.reconnects(ctx, t) })
	all.Go(func() {
		go drain(asking, func(m *protocol.GatewayMessage) {
			if m.GetCertificate() != nil {
				certificates.Add(1)
			}
		})
		m := &protocol.AgentMessage{
			Kind: &protocol.AgentMessage_RenewCertificate{RenewCertificate: &protocol.RenewCertificate{Request: request}},
		}
		for ctx.Err() == nil && asking.Send(m) == nil {
		}
	})
	var rate float64 // of reports that the replica took, a second
	var took time.Duration
	all.Go(func() { // goes on until it is cut off, which takes longer than the rest
		began := time.Now()
		go func() {
			for n := uint64(1); time.Since(began) < talkingTime && say(talking, reportOf(n)) == nil; n++ {
				reports.Store(int64(n))
			}
			_ = talking.CloseSend()
		}()
		how = drain(talking, func(*protocol.GatewayMessage) {})
		took = time.Since(began)
		rate = float64(reports.Load()) / took.Seconds()
	})
	s.Apply("late", 1) // a machine that is created meanwhile joins
	all.Wait()

	t.Logf("half-open: %d begun, at most %d at once, %d cut off", open.begun, open.most, open.shut)
	if open.begun < halfOpen || open.shut == 0 {
		t.Errorf("%d connections were begun and %d cut off: this is no flood, or it was not limited",
			open.begun, open.shut)
	}
	s.recorded(t, before, "SEC-5", stranger.from)
	t.Logf("sessions: %v", sessions)
	if sessions["welcome"] > 100 {
		t.Errorf("welcomed %d times in %s", sessions["welcome"], 2*s.TTL)
	}
	s.recorded(t, before, "SEC-5", comer.instance)
	t.Logf("%d certificates were issued to one agent", certificates.Load())
	if n := certificates.Load(); n > 60 {
		t.Errorf("%d certificates were issued to one agent", n)
	}
	s.recorded(t, before, "SEC-5", asker.instance)
	t.Logf("the replica took %d reports, %.0f a second, until %s", reports.Load(), rate, how)
	switch {
	case strings.Contains(how, "cut off"):
		s.recorded(t, before, "SEC-5", talker.instance)
	case took < talkingTime:
		t.Errorf("the session ended after %s, and not because of its reports: %s", took, how)
	case rate > maxRate: // a replica that waits for a processor takes fewer, and nothing is too much for it
		t.Errorf("an agent that sends %.0f reports a second is not cut off: %s", rate, how)
	}
	s.honestUntouched(t, before)
	s.remove("late")
	s.remove("flood")
}

// drain reads a stream to its end, and returns the reason.
func drain(stream protocol.Gateway_SessionClient, heard func(*protocol.GatewayMessage)) string {
	told := ""
	for {
		m, err := stream.Recv()
		if err != nil {
			return strings.Trim(told+"; "+err.Error(), "; ")
		}
		if r := m.GetRefused(); r != nil {
			told = r.GetReason().String() + ": " + r.GetMessage()
		}
		heard(m)
	}
}

// halfOpened is the result of a flood of silent connections.
type halfOpened struct{ begun, most, shut int }

// flood opens connections and sends nothing on them, until ctx ends.
func (e *attacker) flood(ctx context.Context) (came halfOpened) {
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	places := make(chan struct{}, halfOpen)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				c, err := e.dial(ctx, e.to)
				if err != nil {
					<-places
					continue
				}
				mu.Lock()
				open[c] = true
				came.begun++
				came.most = max(came.most, len(open))
				mu.Unlock()
				all.Go(func() { // until the coordinator has had enough, or the flood is over
					over := context.AfterFunc(ctx, func() { _ = c.Close() })
					_, _ = c.Read(make([]byte, 1))
					_ = c.Close()
					mu.Lock()
					defer mu.Unlock()
					delete(open, c)
					if over() {
						came.shut++
					}
					<-places
				})
			}
		})
	}
	all.Wait()
	return came
}

// reconnects opens session after session with the same certificate, until ctx ends, and counts the
// results.
func (r *rogue) reconnects(ctx context.Context, t *testing.T) map[string]int {
	var all sync.WaitGroup
	var mu sync.Mutex
	came := map[string]int{}
	var epoch atomic.Uint64
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := r.line(r.with(r.pair))
				if err != nil {
					t.Error(err)
					return
				}
				h := r.s.helloOf(r.instance)
				h.Epoch = epoch.Add(1)
				_, err = r.hello(t, conn, h)
				conn.Close()
				mu.Lock()
				came[outcome(err)]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return came
}

// line is a raw connection.
func (e *attacker) line(c credentials.TransportCredentials) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+e.to, grpc.WithTransportCredentials(c), grpc.WithContextDialer(e.dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(64<<20)))
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "welcome"
	case errors.Is(err, errRefused):
		reason, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), errRefused.Error()+": "), ":")
		return reason
	default:
		return status.Code(err).String()
	}
}
