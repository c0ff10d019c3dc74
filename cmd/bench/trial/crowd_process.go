package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// ServeCrowd runs a crowd as a part of a trial. It receives the crowd's configuration at its
// socket, once.
func ServeCrowd(ctx context.Context, socket string, ready func(parts.Ready) error) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("serve agents: %w", err)
	}
	defer listener.Close()
	service := &crowdService{ctx: ctx}
	server := rpc.NewServer()
	if err := server.RegisterName("Crowd", service); err != nil {
		return err
	}
	if err := ready(parts.Ready{Address: socket}); err != nil {
		return err
	}
	conn, err := listener.Accept() // one connection, from the parent process
	if err != nil {
		return err
	}
	go func() { // ends with the process
		<-ctx.Done()
		_ = conn.Close()
	}()
	server.ServeConn(conn)
	service.running.Wait()
	return nil
}

// crowdService holds the calls that a crowd's process answers.
type crowdService struct {
	ctx     context.Context //nolint:containedctx // net/rpc brings none with a call
	crowd   *crowd.Crowd
	running sync.WaitGroup
}

// Begin creates the crowd.
func (s *crowdService) Begin(cfg crowd.Config, _ *bool) error {
	if s.crowd != nil {
		return errors.New("the crowd has begun")
	}
	c, err := crowd.New(cfg, crowd.Deps{})
	if err != nil {
		return err
	}
	s.crowd = c
	s.running.Go(func() { _ = c.Run(s.ctx) }) // ends with its context
	return nil
}

// Add starts agents.
func (s *crowdService) Add(ids []string, _ *bool) error { return s.crowd.Add(ids) }

// Silencing says which agents fall silent, and how.
type Silencing struct {
	Instances []string
	How       crowd.How
}

// Silence silences agents.
func (s *crowdService) Silence(o Silencing, _ *bool) error {
	return s.crowd.Silence(o.Instances, o.How)
}

// Return lets silenced agents go on.
func (s *crowdService) Return(ids []string, _ *bool) error { return s.crowd.Return(ids) }

// Remove removes agents.
func (s *crowdService) Remove(ids []string, _ *bool) error { return s.crowd.Remove(ids) }

// Stats returns the crowd's counts.
func (s *crowdService) Stats(_ bool, out *crowd.Stats) error {
	*out = s.crowd.Stats()
	return nil
}

// remote is a crowd in another process.
type remote struct{ client *rpc.Client }

func dialCrowd(socket string, cfg crowd.Config) (*remote, error) {
	client, err := rpc.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("find the agents' process: %w", err)
	}
	r := &remote{client}
	if err := r.call("Begin", cfg, new(bool)); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return r, nil
}

func (r *remote) call(method string, what, answer any) error {
	if err := r.client.Call("Crowd."+method, what, answer); err != nil {
		return fmt.Errorf("agents' process: %w", err)
	}
	return nil
}

func (r *remote) Add(ids []string) error    { return r.call("Add", ids, new(bool)) }
func (r *remote) Return(ids []string) error { return r.call("Return", ids, new(bool)) }
func (r *remote) Remove(ids []string) error { return r.call("Remove", ids, new(bool)) }
func (r *remote) Close() error              { return r.client.Close() }

func (r *remote) Silence(ids []string, how crowd.How) error {
	return r.call("Silence", Silencing{ids, how}, new(bool))
}

func (r *remote) Stats() (s crowd.Stats, err error) {
	err = r.call("Stats", false, &s)
	return s, err
}
