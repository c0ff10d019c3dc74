package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
)

// refusalDelay is how long a refused hello waits for its answer. It slows down a client that
// repeats them: a connection has few streams, and a client few connections.
const refusalDelay = time.Second

// violationIn returns the violation in a message of an open stream, nil if there is none.
func (s *session) violationIn(msg received) error {
	switch kind := msg.GetKind().(type) {
	case *protocol.AgentMessage_Hello:
		return guard.SecondHello
	case *protocol.AgentMessage_Report:
		if err := s.rising(kind.Report.GetSequence()); err != nil {
			return err
		}
		s.reported = s.sequence
		return guard.CheckReport(kind.Report)
	case *protocol.AgentMessage_Heartbeat:
		if n := kind.Heartbeat.GetReport(); n == 0 || n > s.reported {
			return fmt.Errorf("%w: %d, and the last report is %d", guard.HeartbeatOfNoReport, n, s.reported)
		}
		return s.rising(kind.Heartbeat.GetSequence())
	}
	return nil
}

// rising returns a violation unless a sequence number is higher than the last one.
func (s *session) rising(n uint64) error {
	if n <= s.sequence {
		return fmt.Errorf("%w: %d comes after %d", guard.SequenceNotRising, n, s.sequence)
	}
	s.sequence = n
	return nil
}

// failed ends a session whose stream has failed, or whose agent has committed a violation.
func (s *session) failed(err error, goodbye *protocol.Goodbye) error {
	var violation guard.Violation
	if !errors.As(err, &violation) {
		s.ended(err, goodbye)
		return nil
	}
	cutOff := s.g.clients.CutOff(s.instance, time.Now())
	s.recordCutOff(violation, err.Error(), cutOff)
	s.ended(err, nil) // a goodbye does not excuse a violation
	return s.stream.Send(refusedMessage(refusedFor(cutOff, err)))
}

// refusedFor is the refusal of an agent that is cut off for a while.
func refusedFor(cutOff time.Duration, why error) *protocol.Refused {
	return &protocol.Refused{
		Reason: protocol.Refused_MALFORMED, Message: fmt.Sprintf("cut off for %s: %s", cutOff.Round(time.Second), why),
	}
}

// recordCutOff records that an agent is refused for a while because of a violation (SEC-5).
func (s *session) recordCutOff(violation guard.Violation, detail string, cutOff time.Duration) {
	s.g.refusals.Add(guard.Refusal{
		Rule: "SEC-5", What: "agent cut off", Why: violation.Error(),
		Address: s.from(), Claimed: s.instance, Proved: s.proof.peer != nil,
		Detail: fmt.Sprintf("%s; refused for %s", detail, cutOff.Round(time.Second)),
	})
}

// refuseHello returns the refusal of an instance that is cut off or says hello too often, nil if
// the hello may go on. Such a hello costs only a little memory, and the refusal is delayed.
func (s *session) refuseHello() *protocol.Refused {
	decision, cutOff := s.g.clients.Hello(s.instance, time.Now())
	var answer *protocol.Refused
	switch decision {
	case guard.HelloViolates:
		s.recordCutOff(guard.FrequentHellos, guard.FrequentHellos.Error(), cutOff)
		answer = refusedFor(cutOff, guard.FrequentHellos)
	case guard.HelloCutOff:
		text := fmt.Sprintf("cut off for another %s: see the journal", cutOff.Round(time.Second))
		answer = &protocol.Refused{Reason: protocol.Refused_MALFORMED, Message: text}
	case guard.HelloDenied:
		answer = unavailable("too many hellos of this instance: come again later")
	default:
		return nil
	}
	s.g.delayRefusal(s.ctx)
	return answer
}

// recordNoHello records a stream that did not begin with a hello, and returns the error for the
// client.
func (g *Gateway) recordNoHello(ctx context.Context, err error) error {
	var violation guard.Violation
	switch {
	case errors.As(err, &violation):
		err = status.Error(codes.InvalidArgument, violation.Error())
	case status.Code(err) == codes.InvalidArgument:
		violation = "a stream does not begin with a hello"
	case status.Code(err) == codes.DeadlineExceeded && status.Convert(err).Message() == errNoHello.Error():
		violation = "no hello came in time"
	default:
		return err // the client has gone
	}
	who, address := peerOf(ctx)
	f := guard.Refusal{
		Rule: "SEC-5", What: "stream refused", Why: violation.Error(), Address: address,
		Detail: err.Error(),
	}
	if who != nil {
		f.Claimed, f.Proved = who.Identity.Name, who.Identity.Name != ""
	}
	g.refusals.Add(f)
	g.delayRefusal(ctx)
	return err
}

// delayRefusal waits for refusalDelay.
func (g *Gateway) delayRefusal(ctx context.Context) {
	timer := time.NewTimer(refusalDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-g.life.Done():
	}
}
