package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/protocol"
)

// pace is how fast an agent may speak. Messages count, and so do their bytes.
type pace struct {
	messages, bytes rate.Limiter
	pressed         time.Time // since when there was always more than that; zero: there is not
}

func (p *pace) begin() {
	bound(&p.messages, reportRate, reportBurst)
	bound(&p.bytes, byteRate, byteBurst)
}

// bound makes a limiter of one that is zero and lies where it is needed: rate.NewLimiter makes each by itself.
func bound(l *rate.Limiter, each rate.Limit, burst int) {
	long := time.Time{} // ago: all that may come at once may come now
	l.SetLimitAt(long, each)
	l.SetBurstAt(long, burst)
}

// take takes note of a message and returns how long to wait before the next is read. It is an offence if that goes on for long.
func (p *pace) take(now time.Time, bytes int) (time.Duration, error) {
	wait := max(p.messages.ReserveN(now, 1).DelayFrom(now), p.bytes.ReserveN(now, min(bytes, byteBurst)).DelayFrom(now))
	switch {
	case wait == 0:
		p.pressed = time.Time{}
	case p.pressed.IsZero():
		p.pressed = now
	case now.Sub(p.pressed) >= floodFor:
		return wait, offenceFlood
	}
	return wait, nil
}

// offensive says what of a message no agent says.
func (s *session) offensive(msg letter) error {
	switch kind := msg.GetKind().(type) {
	case *protocol.AgentMessage_Hello:
		return offenceTwice
	case *protocol.AgentMessage_Report:
		n := kind.Report.GetSequence()
		if n <= s.sequence {
			return fmt.Errorf("%w: %d comes after %d", offenceBackward, n, s.sequence)
		}
		s.sequence = n
		if what := beyond(kind.Report); what != "" {
			return fmt.Errorf("%w: %s", offenceReport, what)
		}
	}
	return nil
}

// beyond says what of a report is more than an agent can have, by far; "" if nothing is. What is more by less than that is cut to its bound when it is
// written down.
func beyond(r *protocol.Report) string {
	for _, count := range []struct {
		of      string
		n, most int
	}{
		{"checks", len(r.GetChecks()), protocol.MostChecks},
		{"windows", len(r.GetHost().GetWindows()), protocol.MostWindows},
		{"bytes of output", len(r.GetWorkloadExit().GetOutput()), protocol.MostOutput},
		{"bytes in why", len(r.GetWhy()), protocol.MostText},
		{"bytes in the notice's why", len(r.GetNotice().GetWhy()), protocol.MostText},
		{"bytes in the notice's kind", len(r.GetNotice().GetKind()), protocol.MostName},
		{"bytes in config_hash", len(r.GetConfigHash()), protocol.MostName},
		{"bytes in restarted", len(r.GetRestarted()), protocol.MostName},
		{"bytes in drained", len(r.GetDrained()), protocol.MostName},
		{"bytes in trust", len(r.GetTrust()), protocol.MostName},
		{"bytes in certificate.issuer", len(r.GetCertificate().GetIssuer()), protocol.MostName},
		{"bytes in workload_exit.signal", len(r.GetWorkloadExit().GetSignal()), protocol.MostName},
	} {
		if count.n > protocol.Leeway*count.most {
			return fmt.Sprintf("%d %s", count.n, count.of)
		}
	}
	for _, c := range r.GetChecks() {
		switch {
		case max(len(c.GetName()), len(c.GetKind())) > protocol.Leeway*protocol.MostName:
			return "a check's name or kind is too long"
		case len(c.GetWhy()) > protocol.Leeway*protocol.MostText:
			return fmt.Sprintf("%d bytes in a check's why", len(c.GetWhy()))
		}
	}
	return ""
}

// failed ends a session whose stream has, or whose agent has misbehaved.
func (s *session) failed(err error, goodbye *protocol.Goodbye) error {
	var bad offence
	if !errors.As(err, &bad) {
		s.ended(err, goodbye)
		return nil
	}
	cool := s.g.cutOff(s, bad, err)
	s.ended(err, nil) // a goodbye excuses nothing
	return s.stream.Send(cutOffMessage(cool, err))
}

func cutOffMessage(cool time.Duration, why error) *protocol.GatewayMessage {
	return refusedMessage(protocol.Refused_MALFORMED, fmt.Sprintf("cut off for %s: %s", cool.Round(time.Second), why), 0)
}

// cutOff names an agent that has misbehaved, and has it kept out for a while (SEC-5).
func (g *Gateway) cutOff(s *session, bad offence, detail error) time.Duration {
	cool := g.conduct.offend(s.instance, time.Now())
	g.tellCutOff(s, bad, detail, cool)
	return cool
}

func (g *Gateway) tellCutOff(s *session, bad offence, detail error, cool time.Duration) {
	g.refusals.Add(Refusal{
		Rule: "SEC-5", What: "agent cut off", Why: bad.Error(), Address: s.from(), Claimed: s.instance, Proved: s.proof.peer != nil,
		Detail: fmt.Sprintf("%s; refused for %s", detail, cool.Round(time.Second)),
	})
}

// behaves says why an agent is not listened to: it was cut off, or comes too often. Such a hello costs us nothing but the memory of it, and
// is answered late, so that the next one comes later: a connection has few streams, and an agent few connections.
func (s *session) behaves() *protocol.GatewayMessage {
	cool, often, bad := s.g.conduct.hello(s.instance, time.Now())
	var answer *protocol.GatewayMessage
	switch {
	case bad != nil:
		var what offence
		errors.As(bad, &what)
		s.g.tellCutOff(s, what, bad, cool)
		answer = cutOffMessage(cool, bad)
	case cool > 0:
		answer = refusedMessage(protocol.Refused_MALFORMED, fmt.Sprintf("cut off for another %s: see the journal", cool.Round(time.Second)), 0)
	case often:
		answer = refusedMessage(protocol.Refused_UNAVAILABLE, "too many hellos of this instance: come again later", 0)
	default:
		return nil
	}
	s.g.answerLate(s.ctx)
	return answer
}

// noHello ends a stream that did not begin with a hello, and tells of it.
func (g *Gateway) noHello(ctx context.Context, err error) error {
	var bad offence
	switch {
	case errors.As(err, &bad):
		err = status.Error(codes.InvalidArgument, bad.Error())
	case status.Code(err) == codes.InvalidArgument:
		bad = "a stream does not begin with a hello"
	case status.Code(err) == codes.DeadlineExceeded && status.Convert(err).Message() == errNoHello.Error():
		bad = "no hello came in time"
	default:
		return err // the caller has gone
	}
	who, address := peerOf(ctx)
	f := Refusal{Rule: "SEC-5", What: "stream refused", Why: bad.Error(), Address: address, Detail: err.Error()}
	if who != nil {
		f.Claimed, f.Proved = who.Identity.Name, who.Identity.Name != ""
	}
	g.refusals.Add(f)
	g.answerLate(ctx)
	return err
}

// answerLate waits before a stream is refused.
func (g *Gateway) answerLate(ctx context.Context) {
	late := time.NewTimer(deniedWait)
	defer late.Stop()
	select {
	case <-late.C:
	case <-ctx.Done():
	case <-g.life.Done():
	}
}
