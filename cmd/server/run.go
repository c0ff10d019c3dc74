package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/cmd/supervised"
	"github.com/leasehold/leasehold/store/embedetcd"
)

// supervise runs both parts, and completes the first start. Once the member is healthy and the
// replica serves, the host is ready.
func (c *Command) supervise(ctx context.Context, h *services.Host, place Place, r Record) (err error) {
	log := h.Logger(c.LogLevel)
	var parts kept
	var telling sync.WaitGroup
	defer telling.Wait()
	watched, endWatch := context.WithCancel(ctx)
	defer endWatch()
	starting, started := context.WithCancel(watched)
	defer started()
	telling.Go(func() { h.Service.Start(starting, parts.turning) })
	if r, err = place.enter(ctx, r, log); err != nil {
		return err
	}
	ended := &ends{place: place, log: log, now: time.Now}
	defer ended.begin()()
	member := c.part("member", h, ended)
	replica := c.part("replica", h, ended)
	// The replica ends before the member, so that it can resign.
	memberCtx, endMember := context.WithCancel(context.WithoutCancel(ctx))
	replicaCtx, endReplica := context.WithCancel(ctx)
	failed := make(chan error, 2)
	var members, replicas sync.WaitGroup
	defer members.Wait()
	defer endMember()
	defer replicas.Wait()
	defer endReplica()
	keep := func(of *sync.WaitGroup, ctx context.Context, p *part) {
		parts.add(p)
		of.Go(func() {
			if err := p.keep(ctx); err != nil {
				failed <- err
			}
		})
	}
	keep(&members, memberCtx, member)
	const waits = "etcd is starting: it serves once a majority of members does"
	h.Service.Status(waits)
	waiting := time.AfterFunc(3*time.Second, func() { log.Info(waits) })
	defer waiting.Stop()
	select {
	case <-member.ready:
		waiting.Stop()
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
	was := r.Phase
	if r, err = c.complete(ctx, h, place, r); err != nil {
		return explain(err)
	}
	h.Service.Status("the replica is starting")
	keep(&replicas, replicaCtx, replica)
	serves := replica.ready
	if r.Restore && was == beginning { // it serves once the shard is restored
		serves = make(chan string, 1)
		serves <- ""
	}
	select {
	case <-serves:
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
	started()
	h.Service.Ready()
	h.Service.Status(fmt.Sprintf("host %s serves agents at %s, etcd at %s", r.Name, r.at(r.Port), r.at(r.EtcdPort)))
	telling.Go(func() { h.Service.Watch(watched, parts.turning) })
	if err := c.say(ctx, h, place, r, was); err != nil {
		return place.explainOwn(ctx, r, explain(err))
	}
	return c.followUntil(ctx, h, place, r, failed)
}

// explainOwn adds to the error of a first host where its own name leads, if that is elsewhere: the
// host reaches its etcd by that name.
func (p Place) explainOwn(ctx context.Context, r Record, err error) error {
	if ctx.Err() != nil || len(r.Members) > 1 {
		return err
	}
	hint := elsewhere(ctx, r.Address)
	if hint == "" {
		return err
	}
	next := "if that is another host, correct the address, then run leasehold server; or empty " + p.Dir +
		" and begin again with --address"
	var known *services.Problem
	if errors.As(err, &known) && known.Next != "" {
		next = known.Next + "; " + next
	}
	return problem(next, "%s; %s", err, hint)
}

// enter prepares the host's directory and, on the first start of a host that joins, makes it a
// learner. It fails if the other hosts have removed this one.
func (p Place) enter(ctx context.Context, r Record, log *slog.Logger) (Record, error) {
	if err := p.prepare(r); err != nil {
		return r, explain(err)
	}
	if r.Phase == joining && !embedetcd.HasLog(p.etcd()) {
		var err error
		if r, err = p.becomeLearner(ctx, r, log); err != nil {
			return r, explain(err)
		}
	}
	if (r.Phase == joined || r.Phase == learning) && len(r.Members) > 1 && p.wasRemoved(ctx, r) {
		return r, p.removed(r)
	}
	return r, nil
}

// followUntil follows the other hosts until ctx ends or a part has failed.
func (c *Command) followUntil(ctx context.Context, h *services.Host, place Place, r Record, failed chan error) error {
	following, end := context.WithCancel(ctx)
	var follower sync.WaitGroup
	defer follower.Wait()
	defer end()
	follower.Go(func() {
		if err := c.follow(following, h, place, r); err != nil {
			failed <- err
		}
	})
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		h.Service.Stopping()
		return nil
	}
}

// kept are the parts under supervision.
type kept struct {
	mu  sync.Mutex
	all []*part
}

func (k *kept) add(p *part) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, p)
}

// turning reports whether the loops that supervise the parts make progress. Whether a part itself
// hangs is for those loops to detect.
func (k *kept) turning(ctx context.Context) bool {
	k.mu.Lock()
	all := slices.Clone(k.all)
	k.mu.Unlock()
	return !slices.ContainsFunc(all, func(p *part) bool { return !p.turning(ctx) })
}

// complete finishes a first start once the member serves: the first host creates the shard, any
// other becomes a voting member.
func (c *Command) complete(ctx context.Context, h *services.Host, place Place, r Record) (Record, error) {
	switch r.Phase {
	case joined:
		return r, nil
	case beginning:
		if err := place.found(ctx, r, !r.Restore); err != nil {
			return r, err
		}
	case joining, learning:
		// From here on the cluster counts on what this member has: without its data it must not start
		// again (SAFE-15), also if it votes and this host has not heard of it.
		r.Phase = learning
		if err := place.save(r); err != nil {
			return r, err
		}
		log := h.Logger(c.LogLevel)
		if err := place.promote(ctx, r, func(why string) {
			log.Info("this host catches up with the others, and votes after that", "now", why)
		}); err != nil {
			return r, err
		}
	}
	r.Phase = joined
	if !slices.Contains(r.Members, r.self()) {
		r.Members = append(r.Members, r.self())
	}
	if err := place.save(r); err != nil {
		return r, err
	}
	return r, place.writeSettings(r)
}

// part describes one of the two parts, with the flags of this process.
func (c *Command) part(name string, h *services.Host, ended *ends) *part {
	p := &part{
		name: name, args: append(append([]string{}, h.Args...), "--part="+name), out: h.Stderr,
		log: h.Logger(c.LogLevel), hang: c.HangLimit, ready: make(chan string, 1), turns: make(chan struct{}),
		ended: ended.add,
	}
	if h.SecretsKey != "" && name == "replica" {
		p.env = append(p.env, "LEASEHOLD_SECRETS_KEY="+h.SecretsKey)
	}
	return p
}

// runPart runs one part in this process until its standard input ends.
func (c *Command) runPart(ctx context.Context, h *services.Host, place Place) error {
	to, err := openPipe()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	r, err := place.load()
	if err == nil {
		ready := func(address string) { to.send(message{Ready: address}) }
		host := *h
		host.Service = supervised.Part(c.HangLimit, func() { to.send(message{Alive: true}) })
		if c.Part == "member" {
			err = runMember(ctx, place, r, h.Logger(c.LogLevel), ready, host.Service)
		} else {
			err = c.runReplica(ctx, &host, place, r, ready)
		}
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	to.failed(err)
	return services.ErrReported
}
