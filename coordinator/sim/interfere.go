package sim

import "github.com/leasehold/leasehold/store"

// Interfere changes, before so many of a hundred commits, the very instances that are concerned:
// the one that is to go returns or gets healthy, or the one that replaces it fails. So the decision
// and the change race, and one of them wins (SAFE-4).
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

// returnNow has an agent speak again at once, and be well.
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
	a.report()
	a.touch()
}

// failNow has an instance fail at once: its checks, or its stream.
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
