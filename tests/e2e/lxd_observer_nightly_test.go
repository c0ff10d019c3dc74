//go:build nightly

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
	faults "github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/faults/judge"
	"github.com/leasehold/leasehold/tests/faults/witness"
)

// observer writes the history of a cluster of containers for the judge of tests/faults: what LXD
// shows of the machines, what etcd held, and what was done to either. It sees no provider calls and
// no transactions, so the judge cannot ask about those.
type observer struct {
	c       *containers
	log     *faults.Log
	watcher *witness.Watcher
	stop    context.CancelFunc
	work    sync.WaitGroup
	trouble int
	seen    map[string]*sight
}

// sight is what was last seen of an instance's container.
type sight struct {
	up     bool
	start  string // LXD's time of its last start
	byCall bool   // Leasehold has asked for its end
	boots  int
}

// machineLook is how often LXD is asked for its containers: well within what the judge tolerates.
const machineLook = 100 * time.Millisecond

func newObserver(c *containers) *observer {
	c.t.Helper()
	log, err := faults.Open(filepath.Join(c.dir, "history"))
	if err != nil {
		c.t.Fatal(err)
	}
	o := &observer{c: c, log: log, seen: map[string]*sight{}}
	o.watcher, err = witness.New(witness.Config{Endpoints: []string{c.endpoint}, Prefix: c.h.keys.Prefix(), Log: log})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	o.work.Go(func() { o.watcher.Run(ctx) })
	o.work.Go(func() {
		tick := time.NewTicker(machineLook)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				o.look()
			}
		}
	})
	c.t.Cleanup(o.close)
	return o
}

func (o *observer) close() {
	if o.stop == nil {
		return
	}
	o.stop()
	o.stop = nil
	o.work.Wait()
	if err := o.log.Close(); err != nil {
		o.c.t.Error(err)
	}
}

// look notes how LXD's containers differ from those that were seen before.
func (o *observer) look() {
	var all []struct {
		Status   string
		LastUsed time.Time `json:"last_used_at"`
		Config   map[string]string
	}
	if err := o.c.lxd.Do(http.MethodGet, "/1.0/instances?recursion=1", nil, &all); err != nil {
		o.c.t.Errorf("list the containers: %v", err)
		return
	}
	there := map[string]bool{}
	for _, m := range all {
		id := m.Config["user.leasehold.instance"]
		if id == "" {
			continue
		}
		there[id] = true
		s := o.seen[id]
		if s == nil {
			s = &sight{}
			o.seen[id] = s
			o.step(id, faults.Made, "", 0, m.Config["user.leasehold.zone"])
		}
		start := m.LastUsed.UTC().Format(time.RFC3339Nano)
		up := m.Status == "Running" || m.Status == "Frozen"
		step, _, _ := strings.Cut(m.Config["user.leasehold.step"], " ")
		s.byCall = m.Config["user.leasehold.stopped"] == start || step == "starting"
		if s.up && (!up || s.start != start) {
			o.ended(id, s)
		}
		if up && !s.up {
			s.up, s.start = true, start
			s.boots++
			o.step(id, faults.Booted, "", s.boots, m.Config["user.leasehold.zone"])
		}
	}
	for id, s := range o.seen {
		if there[id] {
			continue
		}
		if s.up {
			s.byCall = true
			o.ended(id, s)
		}
		o.step(id, faults.Removed, "", 0, "")
		delete(o.seen, id)
	}
}

func (o *observer) ended(id string, s *sight) {
	why := faults.BySelf // or by a fault, which the log has
	if s.byCall {
		why = faults.ByCall
	}
	s.up = false
	o.step(id, faults.Ended, why, s.boots, "")
}

func (o *observer) step(id string, what faults.Step, why string, boot int, zone string) {
	o.log.Add(faults.Event{Machine: &faults.Machine{Instance: id, What: what, Why: why, Boot: boot, Zone: zone}})
}

// harm notes that a machine has a fault from now on, or no more.
func (o *observer) harm(id string, kind faults.HarmKind, ends bool) {
	o.log.Add(faults.Event{Harm: &faults.Harm{Instance: id, Kind: kind, Ends: ends}})
}

// during notes a fault of the cluster that lasts as long as what is done.
func (o *observer) during(kind, what string, do func()) {
	o.trouble++
	t := faults.Trouble{ID: o.trouble, Kind: kind, What: what}
	o.log.Add(faults.Event{Trouble: &t})
	do()
	over := t
	over.Ends = true
	o.log.Add(faults.Event{Trouble: &over})
}

// calm reports whether the group is as its spec says, and nothing is to be done for it.
func (o *observer) calm(size int) bool {
	status, spec := o.c.h.status("web"), currentOf[store.Group](o.c.h, store.KindGroups)["web"]
	return o.c.h.complete("web", size) && len(o.c.h.ids("web")) == size && status.Record.Outdated == 0 &&
		status.Record.AcceptedRevision == spec.Modified
}

// verdict waits until all is quiet, once all faults have ended, and has the judge decide.
func (o *observer) verdict(size int) {
	t := o.c.t
	t.Helper()
	groups := map[string]int{"web": size}
	o.log.Add(faults.Event{Mark: &faults.Mark{What: faults.Healed, Groups: groups}})
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	var leases map[string][]string
	for calm := false; !calm; calm = o.calm(size) { // nothing was under way while the leases were read
		o.c.exact("the end", size)
		o.c.await("nothing being under way any more", func() bool { return o.calm(size) })
		var err error
		if leases, err = o.watcher.Leases(ctx); err == nil {
			err = o.watcher.Settle(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var machines []string
	for _, m := range o.c.listed() {
		machines = append(machines, m.Config["user.leasehold.instance"])
	}
	slices.Sort(machines)
	o.log.Add(faults.Event{Mark: &faults.Mark{
		What: faults.Quiet, Groups: groups, Machines: machines, Leases: leases,
	}})
	events := o.log.Events()
	terms := judge.Terms{
		Bound: longest, LeaseTTL: leaseTTL, SessionTTL: 2 * time.Second, Interval: interval, Reconnect: reconnect,
		Poll: time.Second, CallTimeout: 20 * time.Second,
	}
	found := judge.Judge(events, terms)
	counts := map[string]int{}
	for _, e := range events {
		switch {
		case e.Machine != nil:
			counts[string(e.Machine.What)]++
		case e.Change != nil:
			counts["changes"]++
		case e.Harm != nil && !e.Harm.Ends:
			counts["harms"]++
		}
	}
	t.Logf("the judge examined %d events: %s", len(events), fmt.Sprint(counts))
	if counts["changes"] == 0 || counts[string(faults.Booted)] < size || counts["harms"] == 0 {
		t.Errorf("the history lacks something: %v", counts)
	}
	// Were the machines that hung or were cut off not harmed, their removal would be a violation.
	silenced := 0
	unharmed := slices.DeleteFunc(slices.Clone(events), func(e faults.Event) bool {
		h := e.Harm
		if h != nil && (h.Kind == faults.Frozen || h.Kind == faults.Cut) {
			if h.Ends {
				silenced--
			} else {
				silenced++
			}
		}
		return h != nil
	})
	if silenced > 0 && len(judge.Judge(unharmed, terms)) == 0 {
		t.Errorf("%d machines fell silent for good, and without that the judge finds nothing wrong either", silenced)
	}
	if len(found) > 0 {
		t.Errorf("the judge found %d violations:\n%s", len(found), judge.Tell(found))
	}
}
