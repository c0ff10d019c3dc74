package providertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Crowd creates and removes many machines as coordinators do, while their provider's API fails, and
// judges the result: each instance has one machine, which runs, and in the end nothing is left.
type Crowd struct {
	Leaders  []provider.Provider // they take turns in the attempts of a call
	Shard    string
	Machines int
	AtOnce   int           // calls
	Timeout  time.Duration // of a call
	// OneByOne removes each machine before the next one is created, AtOnce of them at a time.
	// Without it all machines exist together.
	OneByOne bool

	// Pauses are a coordinator's waits after errors of kinds that may pass. An error of another
	// kind would end the call, and fails the test.
	Pauses map[provider.Kind]time.Duration
	Settle time.Duration // how long a List may be out of date

	Request func(instance string, attempt int) provider.CreateRequest
	// Created is called when all Creates have succeeded, before the count. May be nil.
	Created func()
	// There returns the number of machines on the platform itself.
	There func() int
	// Doubles returns the instances that had two machines at once, according to the platform. May
	// be nil.
	Doubles func() []string
	// Remains returns what is left of a removed machine, or "". May be nil.
	Remains func(m provider.Machine) string

	Meter *Meter // counts requests

	t     testing.TB
	calls atomic.Int64

	mu   sync.Mutex
	made map[string]provider.Machine // the machine that Create returned, by instance
}

// Figures are the results of a Crowd.
type Figures struct {
	Machines int // wanted
	Made     int // after all Creates had succeeded; Copies is the surplus
	Copies   int
	Doubles  int // instances with two machines after the removal of copies
	Left     int // machines after the removal of all
	Calls    int64
	Requests int
	Busiest  int // most requests in one minute
	Creating time.Duration
	Whole    time.Duration
}

func (f Figures) String() string {
	return fmt.Sprintf("%d machines: %d made in %s, %d copies removed, %d doubles, %d left after %s; %d calls, "+
		"%d requests, at most %d in a minute", f.Machines, f.Made, f.Creating.Round(time.Millisecond), f.Copies,
		f.Doubles, f.Left, f.Whole.Round(time.Millisecond), f.Calls, f.Requests, f.Busiest)
}

// Run creates the machines, judges them, and removes them.
func (c *Crowd) Run(t testing.TB) (f Figures) {
	t.Helper()
	c.t, c.made, f.Machines = t, map[string]provider.Machine{}, c.Machines
	begun := time.Now()
	if c.OneByOne {
		var mu sync.Mutex
		c.all(func(id string) {
			c.create(id)
			doubles := c.judge(c.listed(id), 1)
			c.delete(id)
			if left := c.listed(id); len(left) > 0 {
				t.Errorf("after its removal %s is listed as %+v", id, left)
			}
			mu.Lock()
			defer mu.Unlock()
			f.Doubles += doubles
		})
		f.Made, f.Creating = len(c.made), time.Since(begun)
	} else {
		c.all(c.create)
		if c.Created != nil {
			c.Created()
		}
		f.Made, f.Creating = c.There(), time.Since(begun)
		f.Copies = c.removeCopies()
		f.Doubles = c.judge(c.list(), c.Machines)
		if there := c.There(); there != c.Machines {
			t.Errorf("%d machines are there, want %d", there, c.Machines)
		}
		c.all(c.delete)
	}
	c.deleteAgain()
	f.Left, f.Whole = c.There(), time.Since(begun)
	if f.Left > 0 {
		t.Errorf("%d machines are left", f.Left)
	}
	if c.Doubles != nil {
		if doubles := c.Doubles(); len(doubles) > 0 {
			t.Errorf("instances that had two machines: %v", doubles)
		}
	}
	if c.Remains != nil {
		for _, m := range c.made {
			if left := c.Remains(m); left != "" {
				t.Errorf("of machine %s is left %s", m.Ref, left)
			}
		}
	}
	f.Calls, f.Requests, f.Busiest = c.calls.Load(), c.Meter.Count(), c.Meter.Busiest(time.Minute)
	return f
}

func (c *Crowd) all(do func(id string)) {
	ids := make(chan string)
	var wg sync.WaitGroup
	for range c.AtOnce {
		wg.Go(func() {
			for id := range ids {
				do(id)
			}
		})
	}
	for i := range c.Machines {
		ids <- fmt.Sprintf("web-%d", i)
	}
	close(ids)
	wg.Wait()
}

// persist repeats a call until it succeeds, each time by the next leader.
func (c *Crowd) persist(what string, call func(ctx context.Context, p provider.Provider, attempt int) error) {
	const most = 200
	var err error
	for attempt := range most {
		ctx, cancel := context.WithTimeout(c.t.Context(), c.Timeout)
		c.calls.Add(1)
		err = call(ctx, c.Leaders[attempt%len(c.Leaders)], attempt)
		cancel()
		if err == nil {
			return
		}
		pause, passes := c.Pauses[provider.KindOf(err)]
		if !passes {
			c.t.Errorf("%s: an error that would end it: %v", what, err)
			return
		}
		if after, throttled := provider.RetryAfter(err); throttled {
			pause = max(pause, after)
		}
		<-time.After(pause)
	}
	c.t.Errorf("%s: %d attempts: %v", what, most, err)
}

func (c *Crowd) create(id string) {
	c.persist("create "+id, func(ctx context.Context, p provider.Provider, attempt int) error {
		m, err := p.Create(ctx, c.Request(id, attempt))
		if err == nil {
			c.mu.Lock()
			c.made[id] = m
			c.mu.Unlock()
		}
		return err
	})
}

func (c *Crowd) delete(id string) {
	c.persist("delete "+id, func(ctx context.Context, p provider.Provider, _ int) error {
		return p.Delete(ctx, c.Shard, id)
	})
}

// list lists the machines when no answer can be out of date any more.
func (c *Crowd) list() (machines []provider.Machine) {
	<-time.After(c.Settle)
	c.persist("list", func(ctx context.Context, p provider.Provider, _ int) (err error) {
		machines, err = p.List(ctx, c.Shard)
		return err
	})
	return machines
}

// registered returns the machine that an instance's Create returned: its agent registers, and it
// stays.
func (c *Crowd) registered(id string) provider.Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[id]
}

// removeCopies acts as a leader: if an instance has several machines, it removes those whose agent
// never registered.
func (c *Crowd) removeCopies() (copies int) {
	if !c.Leaders[0].Capabilities().Copies {
		return 0
	}
	for _, m := range c.list() {
		if c.registered(m.Instance).Ref == m.Ref {
			continue
		}
		copies++
		c.persist("remove a copy of "+m.Instance, func(ctx context.Context, p provider.Provider, _ int) error {
			remover, is := p.(provider.CopyRemover)
			if !is {
				return &provider.Error{Kind: provider.Invalid, Message: "it has copies, and no RemoveCopy"}
			}
			return remover.RemoveCopy(ctx, c.Shard, m.Instance, m.Ref, m.Call)
		})
	}
	return copies
}

// listed returns the listed machines of one instance.
func (c *Crowd) listed(id string) []provider.Machine {
	return slices.DeleteFunc(c.list(), func(m provider.Machine) bool { return m.Instance != id })
}

// judge fails the test unless each instance has one machine, which runs and is the one that its
// Create returned. It returns the number of instances with more.
func (c *Crowd) judge(machines []provider.Machine, instances int) (doubles int) {
	found := map[string][]provider.Machine{}
	for _, m := range machines {
		found[m.Instance] = append(found[m.Instance], m)
	}
	for id, all := range found {
		if len(all) > 1 {
			doubles++
		}
		if len(all) > 1 || all[0].State != provider.StateRunning || all[0].Ref != c.registered(id).Ref {
			c.t.Errorf("%s is listed as %+v; its Create returned %+v", id, all, c.registered(id))
		}
	}
	if len(found) != instances {
		c.t.Errorf("%d instances are listed, want %d", len(found), instances)
	}
	return doubles
}

// deleteAgain acts as a leader: it removes machines that are still listed.
func (c *Crowd) deleteAgain() {
	const rounds = 10
	for range rounds {
		left := c.list()
		if len(left) == 0 {
			return
		}
		for _, m := range left {
			c.delete(m.Instance)
		}
	}
}
