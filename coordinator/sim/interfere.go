package sim

import "github.com/leasehold/leasehold/store"

// Interfere changes the affected instances just before a percentage of commits: an instance that is
// to be removed returns or becomes healthy, or its replacement fails. So the decision and the
// change race, and one of them wins (SAFE-4).
func (w *World) Interfere(percent int) { w.interferes = percent }

func (w *World) interfere(id string) {
	rec := w.instance(id)
	if !rec.Present() {
		return
	}
	if w.chance.happens(50) {
		w.returnNow(id)
		return
	}
	for _, other := range w.Names(store.KindInstances) {
		o := w.instance(other).Record
		if other == id || o.Group != rec.Record.Group || o.Slot != rec.Record.Slot || !o.Managed {
			continue
		}
		w.failNow(other)
	}
}

// returnNow makes an agent connect again at once, healthy.
func (w *World) returnNow(id string) {
	a := w.agents[id]
	if a == nil || !a.up || a.retired {
		return
	}
	w.note("agent %s is back in the last moment", id)
	a.frozen, a.cut, a.ill = false, false, healthy
	a.stir()
	if !a.open {
		a.connect()
		return
	}
	if a.late {
		a.catchUp()
	}
	a.report()
	a.touch()
}

// failNow makes an instance fail at once: its checks, or its stream.
func (w *World) failNow(id string) {
	a := w.agents[id]
	if a == nil || !a.open {
		return
	}
	if w.chance.happens(50) {
		w.Sicken(id, CuredByItself)
		return
	}
	w.note("the stream of %s breaks in the last moment", id)
	a.setState(store.StreamLost, "", "the connection broke without goodbye")
	a.fallSilent(true)
	a.cut = true
}
