package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/bootstrap"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/store"
)

// perform carries out a command of the leader. What takes time runs beside the loop, and its
// outcome comes back as an event. An error ends the term.
func (t *term) perform(ctx context.Context, c leader.Command) error {
	switch c := c.(type) {
	case leader.Recall:
		t.beside(func() leader.Event { t.recall(ctx, c.Keys); return leader.Recalled{} })
	case leader.Compute:
		t.beside(func() leader.Event { return leader.Planned{Plan: t.compute(ctx, c)} })
	case leader.Commit:
		t.beside(func() leader.Event { return t.carryOut(ctx, c) })
	case leader.List:
		t.beside(func() leader.Event { return t.list(ctx, c) })
	case leader.Record:
		t.beside(func() leader.Event { return t.record(ctx, c) })
	case leader.Verify:
		t.beside(func() leader.Event { return t.verify(ctx, c) })
	case leader.Invoke:
		t.beside(func() leader.Event { return t.invoke(ctx, c) })
	case leader.ListMembers:
		t.beside(func() leader.Event { return t.listMembers(ctx, c) })
	case leader.CallMember:
		t.beside(func() leader.Event { return t.callMember(ctx, c) })
	case leader.Query:
		t.beside(func() leader.Event { return t.query(ctx, c) })
	case leader.Validate:
		t.beside(func() leader.Event { return t.validate(ctx, c) })
	case leader.Dequeued:
		t.r.deps.Meter.Asked(string(c.Kind), c.Waited)
	case leader.Refused:
		t.refused(c.Action, c.Err)
	case leader.Illegal:
		a := c.Action
		t.log.Error("bug: illegal step planned", "group", a.Group, "instance", a.Instance, "rule", a.Rule, "error",
			c.Err)
	case leader.Stale:
		t.r.deps.Meter.Refused(RefusedStale)
	case leader.Resign:
		return c.Err
	}
	return nil
}

func (t *term) beside(do func() leader.Event) { t.work.Go(func() { t.inbox.post(do()) }) }

// list lists a provider's machines once.
func (t *term) list(ctx context.Context, c leader.List) leader.Listed {
	p := t.r.deps.Providers[c.Provider]
	call, cancel := context.WithTimeout(ctx, p.Capabilities().CallTimeout)
	defer cancel()
	machines, err := p.List(call, t.shard.ID)
	t.r.deps.Meter.Called(c.Provider, "list", time.Since(c.Begun), err)
	failing := t.noteList(ctx, store.Silent{Provider: c.Provider}, err)
	switch {
	case err != nil && !failing && ctx.Err() == nil:
		t.log.Error("provider does not list its machines: nothing is known of them", "provider", c.Provider, "error",
			err)
	case err == nil && failing:
		t.log.Info("provider lists its machines again", "provider", c.Provider, "machines", len(machines))
	}
	return leader.Listed{Provider: c.Provider, Begun: c.Begun, Machines: machines, Err: err}
}

// maxWhy is the longest reason for which a list failed that is kept, in bytes.
const maxWhy = 500

// noteList keeps how a List went, for operators, and reports whether the one before it failed.
func (t *term) noteList(ctx context.Context, of store.Silent, err error) (failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.IndexFunc(t.silent, func(s store.Silent) bool {
		return s.Provider == of.Provider && s.Balancer == of.Balancer
	})
	failed = at >= 0
	switch {
	case ctx.Err() != nil, provider.KindOf(err) == provider.Throttled: // it says nothing, and comes again
	case err == nil && failed:
		t.silent = slices.Delete(t.silent, at, at+1)
	case err != nil:
		of.Why = clip.Start(err.Error(), maxWhy)
		of.Refused = provider.KindOf(err) == provider.Credentials
		if !failed {
			t.silent = append(t.silent, of)
			return false
		}
		t.silent[at] = of
	}
	return failed
}

// verify reads from etcd whether everything that a removal rests on still holds. If so, it keeps
// what the machine leaves behind.
func (t *term) verify(ctx context.Context, c leader.Verify) leader.Verified {
	err := t.stands(ctx, c.Conditions)
	if err != nil {
		t.log.Debug("call not begun", "instance", c.Instance.ID, "error", err)
	} else {
		t.keepConsole(ctx, t.r.deps.Providers[c.Instance.Spec.Provider], c.Instance)
	}
	return leader.Verified{Operation: c.Operation, Err: err}
}

func (t *term) stands(ctx context.Context, conditions []store.Condition) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	for _, condition := range conditions {
		kv, err := t.r.deps.Store.Get(ctx, condition.Key)
		switch {
		case errors.Is(err, store.ErrNotFound) && condition.Absent:
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("read %s: %w", condition.Key, err)
		case store.Unchanged(kv) != condition:
			return &store.ConflictError{Keys: []string{condition.Key}}
		}
	}
	return nil
}

// recordsCall are the boundaries before a call is recorded. A removal is not.
var recordsCall = map[plan.CallKind]string{
	plan.CallCreate: "record creating", plan.CallRestart: "record restarting", plan.CallHalt: "record halting",
	plan.CallRemoveCopy: "record removing copy",
}

// record writes that a provider is about to be called. A creation gets a join token with it.
func (t *term) record(ctx context.Context, c leader.Record) leader.Recorded {
	id, creates := c.Instance.ID, c.Kind == plan.CallCreate
	t.r.deps.Before(recordsCall[c.Kind], id)
	var token joinToken
	if creates {
		before, cancel := context.WithDeadline(ctx, c.Deadline)
		defer cancel()
		var err error
		if token, err = t.newToken(before, c.Instance,
			t.r.deps.Providers[c.Instance.Spec.Provider].Capabilities().CallTimeout); err != nil {
			t.log.Warn("call not begun: no join token", "instance", id, "error", err)
			return leader.Recorded{Operation: c.Operation, Err: err}
		}
	}
	rev, err := t.commit(ctx, c.Conditions, append(token.writes(), c.Writes...), c.Entries...)
	if err != nil {
		token.drop(ctx, t)
		t.log.Debug("call not begun", "instance", id, "error", err)
		return leader.Recorded{Operation: c.Operation, Err: err}
	}
	if creates {
		t.mu.Lock()
		t.tokens[c.Operation] = token
		t.mu.Unlock()
	}
	for _, entry := range c.Entries {
		t.log.Info("decided", "what", entry.What, "group", entry.Group, "instance", id, "rule", entry.Rule, "revision",
			int64(rev))
	}
	return leader.Recorded{Operation: c.Operation, Revision: rev}
}

// invoke calls a provider.
func (t *term) invoke(ctx context.Context, c leader.Invoke) leader.Answered {
	p, rec := t.r.deps.Providers[c.Instance.Spec.Provider], c.Instance
	out := leader.Answered{Operation: c.Operation}
	call, cancel := context.WithDeadline(ctx, c.Deadline)
	defer cancel()
	if own := p.Capabilities().Site; rec.Site != "" && rec.Site != own {
		out.Err = fmt.Errorf("the machine is at site %s, and this coordinator's provider %s sees only "+
			"those at site %s: run a coordinator there",
			rec.Site, rec.Spec.Provider, own)
		return out
	}
	switch c.Method {
	case leader.Create:
		out.Machine, out.Err = t.create(ctx, call, p, c)
	case leader.Restart:
		t.r.deps.Before("provider restart", rec.ID)
		out.Err = p.Restart(call, t.shard.ID, rec.ID, rec.Restart.Listed)
		t.called(ctx, c, plan.CallRestart, out.Err)
		t.r.deps.Before("provider restarted", rec.ID)
	case leader.Stop:
		t.r.deps.Before("provider stop", rec.ID)
		out.Err = p.Stop(call, t.shard.ID, rec.ID, rec.Spec.StopTimeout.D())
		if errors.Is(out.Err, provider.ErrThrottled) {
			t.called(ctx, c, plan.CallRemove, out.Err)
		} else if out.Err != nil && ctx.Err() == nil {
			t.log.Warn("machine did not stop in order and is removed nevertheless", "group", rec.Group, "instance",
				rec.ID, "error", out.Err)
		}
	case leader.Halt:
		t.r.deps.Before("provider halt", rec.ID)
		out.Err = p.Stop(call, t.shard.ID, rec.ID, 0)
		t.called(ctx, c, plan.CallHalt, out.Err)
	case leader.RemoveCopy:
		t.r.deps.Before("provider remove copy", rec.ID)
		if remover, can := p.(provider.CopyRemover); can {
			out.Err = remover.RemoveCopy(call, t.shard.ID, rec.ID, c.Copy.Ref, c.Copy.Call)
		} else {
			out.Err = fmt.Errorf("provider %s lists several machines for one instance, and cannot remove one of them",
				rec.Spec.Provider)
		}
		t.called(ctx, c, plan.CallRemoveCopy, out.Err)
		t.r.deps.Before("provider removed copy", rec.ID)
	case leader.Delete:
		t.r.deps.Before("provider delete", rec.ID)
		out.Err = p.Delete(call, t.shard.ID, rec.ID)
		t.called(ctx, c, plan.CallRemove, out.Err)
		t.r.deps.Before("provider deleted", rec.ID)
		if out.Err == nil {
			t.forget(rec.ID)
		}
	}
	return out
}

func (t *term) create(ctx, call context.Context, p provider.Provider, c leader.Invoke) (provider.Machine, error) {
	t.mu.Lock()
	token := t.tokens[c.Operation]
	delete(t.tokens, c.Operation)
	t.mu.Unlock()
	t.r.deps.Before("provider create", c.Instance.ID)
	m, err := p.Create(call, t.request(c.Instance, token))
	t.called(ctx, c, plan.CallCreate, err)
	t.r.deps.Before("provider created", c.Instance.ID)
	if evidence.NothingMade(err) {
		token.drop(ctx, t)
	}
	return m, err
}

// called reports a finished call.
func (t *term) called(ctx context.Context, c leader.Invoke, kind plan.CallKind, err error) {
	rec := c.Instance
	t.r.deps.Meter.Called(rec.Spec.Provider, string(kind), time.Since(c.Begun), err)
	if err == nil || ctx.Err() != nil && kind != plan.CallCreate {
		return
	}
	t.log.Error("provider call failed", "call", string(kind), "group", rec.Group, "instance", rec.ID,
		"provider", rec.Spec.Provider, "error", err)
}

// request returns what a provider needs to make an instance's machine.
func (t *term) request(rec store.Instance, token joinToken) provider.CreateRequest {
	shard := bootstrap.Shard{ID: t.shard.ID, Name: t.r.cfg.Shard, Settings: t.settings(), CA: t.ca()}
	// This one serves agents, whether the cache has it already or not.
	shard.Replicas = map[string]store.Replica{t.r.cfg.ID: {ID: t.r.cfg.ID, Address: t.r.cfg.Advertise}}
	t.r.cache.View(func(c *cache.Content) {
		for id, r := range c.Replicas {
			shard.Replicas[id] = r.Record
		}
	})
	return provider.CreateRequest{
		Template:  providerTemplate(rec.Spec),
		Zone:      rec.Zone,
		Agent:     shard.Agent(t.r.cfg.ID),
		Call:      store.CallOf(token.hash()),
		Bootstrap: shard.Document(rec, token.secret),
	}
}
