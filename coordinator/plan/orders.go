package plan

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// orders carries out operators' requests, or refuses them; either removes the request in the same transaction
// (REC-16). Carrying one out marks the record: the work itself follows from the mark, whoever leads then.
func (d *draft) orders() {
	for _, r := range d.g.Requests {
		d.order(r)
	}
}

func (d *draft) order(r store.Versioned[store.Request]) {
	m := d.find(r.Record.Instance)
	switch {
	case m == nil:
		d.actions = append(d.actions, refuse(r, "there is no such instance"))
		return
	case m.touched:
		return // decided on the next picture
	case m.gone():
		d.actions = append(d.actions, refuse(r, "it is being deleted already"))
		return
	case !m.Record.Managed:
		d.actions = append(d.actions, refuse(r, "it is not one of those that its group keeps"))
		return
	}
	order := store.Condemned{By: r.Record.By, Why: "ordered by " + r.Record.By, At: d.now.UTC()}
	what := "ordered to be replaced"
	switch r.Record.Kind {
	case store.RequestReplace:
	case store.RequestDelete:
		order.Now, what = true, "ordered to be deleted"
	default:
		d.actions = append(d.actions, refuse(r, fmt.Sprintf("this version knows no order %q", r.Record.Kind)))
		return
	}
	if c := m.Record.Condemned; c != nil && (c.Now || !order.Now) {
		d.actions = append(d.actions, refuse(r, "it was ordered before, by "+c.By))
		return
	}
	a := d.step(m, m.phase, "REC-16", what, order.Why, []string{"request " + r.Record.ID}, func(rec *store.Instance) { rec.Condemned = &order })
	a.Conditions = append(a.Conditions, r.Unchanged())
	a.Writes = append(a.Writes, store.Delete(r.Key))
}

func refuse(r store.Versioned[store.Request], why string) Action {
	return Action{
		Group: r.Record.Group, Instance: r.Record.Instance, Rule: "REC-16",
		What: fmt.Sprintf("order to %s refused", r.Record.Kind), Why: why, Evidence: []string{"request " + r.Record.ID + " by " + r.Record.By},
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
