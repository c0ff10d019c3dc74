package coordinator_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider/fake"
)

// agent is what runs on a machine, as far as a coordinator can tell.
type agent struct {
	w            *world
	boot         fake.Boot
	epoch        uint64
	lease        int64
	coordinators []string
	*work
}

// runMachine is an agent that never gives up, until its machine goes down or it is retired.
func (w *world) runMachine(ctx context.Context, boot fake.Boot) {
	a := &agent{w: w, boot: boot, coordinators: boot.Bootstrap.Coordinators, work: w.boots(boot)}
	wait := time.Second
	for turn := 0; ctx.Err() == nil; turn++ {
		if m, changed := w.moodOf(boot.Bootstrap.Instance); m.mute {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		began := time.Now()
		refused := a.session(ctx, a.coordinators[turn%len(a.coordinators)])
		w.noteRefused(boot.Bootstrap.Instance, refused)
		if refused == protocol.Refused_RETIRED {
			break
		}
		if time.Since(began) > time.Minute {
			wait = time.Second
		}
		if (turn+1)%len(a.coordinators) == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
				wait = min(2*wait, 30*time.Second)
			}
		}
	}
	<-ctx.Done()
}

// session holds one stream for as long as it serves, and says why it was refused, if it was.
func (a *agent) session(ctx context.Context, address string) (refused protocol.Refused_Reason) {
	secured := a.credentials(ctx, address)
	if secured == nil {
		return 0
	}
	host := identity.Host(a.boot.Bootstrap.Shard, identity.Coordinator)
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secured),
		grpc.WithContextDialer(a.w.net.dial), grpc.WithAuthority(host))
	if err != nil {
		a.w.t.Errorf("new client: %v", err)
		return 0
	}
	defer conn.Close()
	var receiving sync.WaitGroup
	defer receiving.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := protocol.NewGatewayClient(conn).Session(ctx)
	if err != nil {
		return 0
	}
	a.epoch++
	b := a.boot.Bootstrap
	if stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: &protocol.Hello{
		Protocol: 1, Shard: b.Shard, Instance: b.Instance, BootId: a.boot.ID, Epoch: a.epoch, Lease: a.lease,
		AgentVersion: "test",
	}}}) != nil {
		return 0
	}
	messages := make(chan *protocol.GatewayMessage)
	receiving.Go(func() {
		defer close(messages)
		for {
			msg, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case messages <- msg:
			case <-ctx.Done():
				return
			}
		}
	})
	sequence, acked := uint64(0), uint64(0)
	var waits time.Time         // since when a report waits for its answer
	interval := 5 * time.Second // until the welcome
	report := time.NewTimer(interval)
	defer report.Stop()
	hook := a.hookTimer()
	defer hook.Stop()
	for {
		mood, moodChanged := a.w.moodOf(b.Instance)
		select {
		case <-ctx.Done():
			return 0
		case <-moodChanged:
			if a.lease != 0 {
				report.Reset(0) // DET-1
			}
		case <-hook.C:
			if a.hookEnds() {
				report.Reset(0)
			}
		case <-report.C:
			if mood.leaves {
				_ = stream.Send(
					&protocol.AgentMessage{
						Kind: &protocol.AgentMessage_Goodbye{
							Goodbye: &protocol.Goodbye{Kind: protocol.Goodbye_EVACUATING, Message: "the host is to be mended"},
						},
					},
				)
				a.w.setMood(b.Instance, mood.silenced())
				_ = stream.CloseSend()
				for range messages { // the gateway ends the stream once it has heard
					continue
				}
				return 0
			}
			// A report that something new brings forward does not cut the wait for the last one short.
			unanswered := sequence != acked && time.Since(waits) >= interval
			if unanswered || a.lease == 0 || mood.mute {
				return 0 // DET-14: perhaps another replica answers
			}
			if sequence == acked {
				waits = time.Now()
			}
			sequence++
			if stream.Send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: a.report(sequence,
				mood)}}) != nil {
				return 0
			}
			report.Reset(interval)
		case msg, open := <-messages:
			if !open {
				return 0
			}
			switch kind := msg.GetKind().(type) {
			case *protocol.GatewayMessage_Welcome:
				a.lease, interval = kind.Welcome.GetLease(), kind.Welcome.GetReportInterval().AsDuration()
				a.meet(kind.Welcome.GetCoordinators())
				report.Reset(0)
			case *protocol.GatewayMessage_Refused:
				if kind.Refused.GetReason() == protocol.Refused_STALE_EPOCH {
					a.epoch = kind.Refused.GetStoredEpoch()
				}
				return kind.Refused.GetReason()
			case *protocol.GatewayMessage_Ack:
				acked, a.lease = kind.Ack.GetSequence(), kind.Ack.GetLease()
			case *protocol.GatewayMessage_Coordinators:
				a.meet(kind.Coordinators.GetAddresses())
			case *protocol.GatewayMessage_Move:
				return 0
			case *protocol.GatewayMessage_Wanted:
				if a.obey(kind.Wanted, mood, hook) {
					report.Reset(0)
				}
			}
		}
	}
}

// meet remembers replicas. Those that it knew before stay: they may come back.
func (a *agent) meet(addresses []string) {
	for _, address := range addresses {
		if !slices.Contains(a.coordinators, address) {
			a.coordinators = append(slices.Clone(a.coordinators), address)
		}
	}
}
