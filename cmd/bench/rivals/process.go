package rivals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// Role is the role of a contender's process: agents, or else the detector.
type Role struct {
	Socket   string // socket for its figures
	Agents   *AgentsConfig
	Detector string // etcd's address
	Patience time.Duration
}

// RoleOf parses a role from a process's argument.
func RoleOf(text string) (r Role, err error) {
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("read the role of a rival's process: %w", err)
	}
	if (r.Agents == nil) == (r.Detector == "") {
		return r, errors.New("read the role of a rival's process: it has agents or is a detector")
	}
	return r, nil
}

// Part runs a process of a contender, as package parts starts it.
func (r Role) Part(ctx context.Context, ready func(parts.Ready) error) error {
	if r.Agents != nil {
		a, err := NewAgents(*r.Agents)
		if err != nil {
			return err
		}
		err = r.serve(ctx, agentsCalls{a}, ready, func(ctx context.Context) error { a.Run(ctx); return nil })
		return errors.Join(err, a.Close())
	}
	d, err := NewDetector(r.Detector, r.Patience)
	if err != nil {
		return err
	}
	err = r.serve(ctx, detectorCalls{d}, ready, d.Run)
	if ctx.Err() != nil {
		err = nil // we ended it
	}
	_ = d.Close() // its own context has ended
	return err
}

// serve answers calls while the process runs.
func (r Role) serve(ctx context.Context, calls any, ready func(parts.Ready) error,
	do func(context.Context) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", r.Socket)
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName(service, calls); err != nil {
		return errors.Join(err, listener.Close())
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			serving.Go(func() {
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				defer stop()
				server.ServeConn(conn)
			})
		}
	})
	err = ready(parts.Ready{Address: r.Socket})
	if err == nil {
		err = do(ctx)
	}
	cancel()
	_ = listener.Close()
	serving.Wait()
	return err
}

const service = "Rival"

type agentsCalls struct{ of *Agents }

// Stats returns the state of the agents.
func (c agentsCalls) Stats(_ bool, s *AgentsStats) error {
	*s = c.of.Stats()
	return nil
}

type detectorCalls struct{ of *Detector }

// Stats returns what a detector knows.
func (c detectorCalls) Stats(_ bool, s *DetectorStats) error {
	*s = c.of.Stats()
	return nil
}

// remote is the parent's side of such a process.
type remote struct {
	*parts.Part
	calls *rpc.Client
}

// ask requests its figures. A paused process answers when it is resumed.
func (r *remote) ask(ctx context.Context, stats any) error {
	call := r.calls.Go(service+".Stats", true, stats, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		if call.Error != nil {
			return fmt.Errorf("ask a rival's process: %w: see %s", call.Error, r.Log())
		}
		return nil
	case <-r.Ended():
		return fmt.Errorf("a rival's process has ended: see %s", r.Log())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
