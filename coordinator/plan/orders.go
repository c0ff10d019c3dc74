package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// orders carries out operators' requests, or refuses them; either removes the request in the same
// transaction (REC-16). Carrying one out marks the record: the work itself follows from the mark,
// the next leader.
func (d *draft) orders() {
	for _, r := range d.g.Requests {
		switch {
		case r.Record.Kind == store.RequestAdopt && d.find(r.Record.Instance) == nil:
			d.adopt(r)
		case r.Record.Instance == "":
			d.orderGroup(r)
		default:
			d.orderInstance(r)
		}
	}
}

// orderGroup carries out an order for a whole group.
func (d *draft) orderGroup(r store.Versioned[store.Request]) {
	if d.spec == nil {
		d.actions = append(d.actions, refuse(r, "no spec of the group was ever in force"))
		return
	}
	switch r.Record.Kind {
	case store.RequestRetry:
		d.retry(r, d.order)
	case store.RequestOverrideStorm:
		if d.storm == nil || d.storm.Ended != "" {
			d.actions = append(d.actions, refuse(r, "there is no storm"))
			return
		}
		d.endStorm("overridden by "+r.Record.By, r.Record.By)
		d.settled = append(d.settled, r)
	case store.RequestCreate:
		d.createOnDemand(r)
	default:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("this version knows no order %q", r.Record.Kind)))
	}
}

// retry has flapping and errored slots start afresh (FLAP-3).
func (d *draft) retry(r store.Versioned[store.Request], slots []*slot) {
	a := Action{
		Group: d.g.Name, Rule: "REC-16", What: "slots start afresh",
		Why: reason.Short(orderedBy(r.Record.By)), Cause: orderedBy(r.Record.By),
		Evidence:       []string{"request " + r.Record.ID},
		Counterfactual: counterfactual("REC-16", ""), Conditions: []store.Condition{r.Unchanged()},
		Writes: []store.Write{store.Delete(r.Key)},
	}
	n := 0
	for _, sl := range slots {
		if len(sl.Record.Failures) == 0 && sl.Record.Flapping == 0 && sl.Record.Errored == "" {
			continue
		}
		if sl.touched || n == mostSlotsAtOnce-1 {
			return // decided on the next cache
		}
		rec := &sl.Record
		rec.Failures, rec.Retry, rec.GiveUp, rec.Flapping, rec.Errored = nil, nil, nil, 0, ""
		sl.retry, sl.giveUp = time.Time{}, time.Time{}
		d.writeSlot(&a, sl)
		n++
	}
	if n == 0 {
		d.actions = append(d.actions, refuse(r, "no slot flaps or is given up"))
		return
	}
	a.What = number(n, "slot") + " to start afresh"
	d.actions = append(d.actions, a)
}

// createOnDemand makes an instance that is neither counted nor healed (REC-2).
func (d *draft) createOnDemand(r store.Versioned[store.Request]) {
	switch {
	case d.spec.Deleting || d.spec.Stopped:
		d.actions = append(d.actions, refuse(r, "the group is stopped, or being deleted"))
		return
	case !d.mayAct():
		return // carried out when things may be made again
	case len(d.zones()) == 0:
		d.actions = append(d.actions, refuse(r, "all zones of the group are evacuated"))
		return
	}
	rec := d.newRecord(nil, "REC-2", reason.Short(orderedBy(r.Record.By)))
	m := d.join(rec)
	a := Action{
		Group: d.g.Name, Instance: rec.ID, Rule: "REC-2", What: "requested on demand", Why: rec.Last.Why,
		Cause: orderedBy(r.Record.By),
		To:    store.Pending, Counterfactual: counterfactual("REC-16", ""),
		Evidence:   []string{"request " + r.Record.ID},
		Conditions: append(d.common(), store.Absent(m.Key), r.Unchanged()),
		Writes:     []store.Write{store.Put(m.Key, store.Encode(rec)), store.Delete(r.Key)},
	}
	d.madeFrom(&a, &rec)
	d.actions = append(d.actions, a)
}

// orderInstance carries out an order for one instance.
func (d *draft) orderInstance(r store.Versioned[store.Request]) {
	m := d.find(r.Record.Instance)
	switch {
	case m == nil:
		d.actions = append(d.actions, refuse(r, "there is no such instance"))
		return
	case m.touched:
		return // decided on the next cache
	case m.gone():
		d.actions = append(d.actions, refuse(r, "it is being deleted already"))
		return
	}
	switch r.Record.Kind {
	case store.RequestReplace, store.RequestDelete, store.RequestDrain:
		d.condemn(r, m)
	case store.RequestRestart:
		d.restartOrdered(r, m)
	case store.RequestDrained:
		d.acknowledge(r, m)
	case store.RequestProtect:
		d.protect(r, m)
	case store.RequestRetry:
		if m.slot == nil {
			d.actions = append(d.actions, refuse(r, "it is on demand: nobody heals it"))
			return
		}
		d.retry(r, []*slot{m.slot})
	default:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("this version knows no order %q", r.Record.Kind)))
	}
}

// condemn notes that an instance has to go: with a replacement first, or now.
func (d *draft) condemn(r store.Versioned[store.Request], m *member) {
	order := store.Condemned{
		By: r.Record.By, Why: reason.Short(orderedBy(r.Record.By)), At: d.now.UTC(),
		Now: r.Record.Kind != store.RequestReplace,
	}
	what := "ordered to be " + map[store.RequestKind]string{
		store.RequestReplace: "replaced",
		store.RequestDelete:  "deleted", store.RequestDrain: "drained",
	}[r.Record.Kind]
	switch c := m.Record.Condemned; {
	case m.phase == store.Draining:
		d.actions = append(d.actions, refuse(r, "it drains already"))
		return
	case c != nil && (c.Now || !order.Now):
		d.actions = append(d.actions, refuse(r, "it was ordered before, by "+c.By))
		return
	case !m.Record.Managed && !order.Now:
		d.actions = append(d.actions, refuse(r, "it is on demand: nobody replaces it; delete it, and create another"))
		return
	}
	d.obey(r, m, what, func(rec *store.Instance) { rec.Condemned = &order })
}

// obey changes a record as ordered.
func (d *draft) obey(r store.Versioned[store.Request], m *member, what string, change func(*store.Instance)) {
	a := d.step(m, m.phase, "REC-16", what, orderedBy(r.Record.By), []string{"request " + r.Record.ID}, change)
	a.Conditions = append(a.Conditions, r.Unchanged())
	a.Writes = append(a.Writes, store.Delete(r.Key))
}

// restartOrdered restarts a machine by order: at once, without a budget.
func (d *draft) restartOrdered(r store.Versioned[store.Request], m *member) {
	switch {
	case d.spec == nil:
		d.actions = append(d.actions, refuse(r,
			"its group is gone; it can only be deleted: leasehold instance delete "+m.ID()))
		return
	case m.phase != store.Running && m.phase != store.Checking && m.phase != store.Booting && m.phase != store.Starting:
		d.actions = append(d.actions, refuse(r,
			"it is "+string(m.phase)+": only what runs or comes up can be restarted"))
		return
	case !d.mayAct():
		return // carried out when things may be done again
	}
	a := d.restart(m, store.RestartMachine, "REC-16", "restarting its machine", orderedBy(r.Record.By), false, nil)
	a.Evidence = append(a.Evidence, "request "+r.Record.ID)
	a.Conditions = append(a.Conditions, r.Unchanged())
	a.Writes = append(a.Writes, store.Delete(r.Key))
}

// acknowledge notes that a drain need not be waited for any more.
func (d *draft) acknowledge(r store.Versioned[store.Request], m *member) {
	if m.phase != store.Draining || m.Record.Drain == nil {
		d.actions = append(d.actions, refuse(r, "it does not drain"))
		return
	}
	d.obey(r, m, "drained", func(rec *store.Instance) {
		drain := *rec.Drain
		drain.Done = "acknowledged by " + r.Record.By
		rec.Drain = &drain
	})
}

// protect notes that an instance is not to be touched, or may be again (REC-13).
func (d *draft) protect(r store.Versioned[store.Request], m *member) {
	mode := r.Record.Mode
	switch mode {
	case store.ProtectOff:
		mode = ""
	case store.ProtectRemoval, store.ProtectHeal:
	default:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("this version knows no protection %q", mode)))
		return
	}
	what := "protected"
	if mode == store.ProtectHeal {
		what = "protected, also from healing"
	} else if mode == "" {
		what = "protected no more"
	}
	d.obey(r, m, what, func(rec *store.Instance) { rec.Protected = mode })
}

func refuse(r store.Versioned[store.Request], why string) Action {
	return Action{
		Group: fmt.Sprintf("%.100s", r.Record.Group), Instance: fmt.Sprintf("%.100s", r.Record.Instance),
		Rule: "REC-16", Kind: store.EntryRefusal,
		// An order may contain anything: the journal takes no more of it than helps.
		What: fmt.Sprintf("order to %.40s refused", r.Record.Kind), Why: fmt.Sprintf("%.300s", why),
		Evidence:   []string{fmt.Sprintf("request %.60s by %.100s", r.Record.ID, r.Record.By)},
		Conditions: []store.Condition{r.Unchanged()},
		Writes:     []store.Write{store.Delete(r.Key)},
	}
}

func (d *draft) find(id string) *member {
	for _, m := range d.members {
		if m.ID() == id {
			return m
		}
	}
	return nil
}
