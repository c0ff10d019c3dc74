package evidence

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// ListedBy records a complete List of a provider that began at a time.
func (e *Evidence) ListedBy(name string, begun time.Time, machines []provider.Machine, c *cache.Content) {
	e.mu.Lock()
	o := e.outages[name]
	o.lists = plan.Outage{}
	e.setOutages(name, o)
	byID := e.placesIn(machines)
	several := map[string][]int{} // machines of an instance that has more than one
	foreign := map[string][]int{} // machines that the provider did not make
	for i := range byID.unordered() {
		id := machines[i].Instance
		if machines[i].Foreign {
			foreign[id] = append(foreign[id], i)
			continue
		}
		if first, more := byID.add(id, i); more {
			if several[id] == nil {
				several[id] = []int{first}
			}
			several[id] = append(several[id], i)
		}
	}
	wrong := sync.OnceValue(func() bool { return e.disproved(name, &byID, foreign) })
	recorded, poll := 0, c.Shard.Record.Settings.ProviderPoll.D() // machines that have a record
	for id, w := range e.instances {
		if !e.listedBy(name, w) {
			continue
		}
		at, there := byID.find(id, w.place)
		if w.place = at; there && several[id] != nil {
			at = own(several[id], machines, c.Instances[id].Record.Ref, c.Joined[id].Record)
		}
		if there {
			recorded++
		}
		if there && len(several) == 0 && len(foreign) == 0 && w.listedAgain(&machines[at], begun, poll) {
			continue
		}
		old := w.sighting
		now := plan.Sighting{Begun: begun, Listed: there, Times: 1}
		if there {
			m, joined := &machines[at], c.Joined[id].Record
			now.Down, now.State, now.Ref, now.Address = m.State.Down(), string(m.State), m.Ref, m.Address
			now.BootID = m.BootID
			if now.Down && m.Why != "" {
				now.State += " (" + m.Why + ")"
			}
			now.Copies = copies(several[id], at, machines, joined)
			if anothers(m, joined) {
				now.Down, now.Address = false, "" // it says nothing about the machine that registered
				now.State += " (another call's machine)"
			}
		}
		for _, i := range foreign[id] {
			now.Copies = append(now.Copies, plan.Copy{Ref: machines[i].Ref})
		}
		slices.SortFunc(now.Copies, func(a, b plan.Copy) int { return cmp.Compare(a.Ref, b.Ref) })
		if begun.Before(w.copiesFrom) {
			now.Copies = nil
		}
		// two boots do not confirm each other
		same := !old.Begun.IsZero() && old.Listed == now.Listed && old.Down == now.Down &&
			(!now.Down || old.BootID == now.BootID)
		now.Since = old.Since
		switch {
		case !same:
			w.counted, now.Since = begun, begun
		case begun.Sub(w.counted) < poll:
			now.Times = old.Times // asked again so soon, it is the same answer: one glitch of the provider's
		default:
			now.Times, w.counted = old.Times+1, begun
		}
		if !there && !wrong() {
			now.Sure = old.Sure + now.Times - old.Times
			if !same {
				now.Sure = 1
			}
		}
		if old.Begun.IsZero() && w.phase == store.Stopping && w.works() {
			w.calls.PutOff = e.cfg.Now() // it could not be asked for a restart before
			w.version++
		}
		w.sighting = now
		w.lists++
		if !same || now.Address != old.Address || len(now.Copies)+len(old.Copies) > 0 || now.Down || !now.Listed ||
			w.phase == store.Deleting || w.phase == store.Creating || w.phase == store.Stopping {
			e.dirty[w.group] = true
		}
	}
	if len(e.instances) != len(c.Instances) {
		recorded = 0 // not all that was seen has a record still
	}
	e.listExtras(name, machines, byID, recorded, c)
	e.listForeign(name, machines, c)
	e.mu.Unlock()
	e.cfg.Wake()
}

// listedAgain records that a List shows the one machine of an instance up and as it was in the last
// List. It returns false if something else is to be recorded, or to be decided.
func (w *observed) listedAgain(m *provider.Machine, begun time.Time, poll time.Duration) bool {
	s := &w.sighting
	if s.Begun.IsZero() || !s.Listed || s.Down || len(s.Copies) > 0 || m.State.Down() || s.State != string(m.State) ||
		s.Ref != m.Ref || s.Address != m.Address || s.BootID != m.BootID || m.Call != "" || s.Sure > 0 ||
		w.phase == store.Deleting || w.phase == store.Creating || w.phase == store.Stopping {
		return false
	}
	if s.Begun = begun; begun.Sub(w.counted) >= poll {
		s.Times++
		w.counted = begun
	}
	w.lists++
	return true
}

// listing finds the machines of a List by their instance. Nearly every List comes in the order of
// instances, and most of a List is where it was in the last one.
type listing struct {
	machines []provider.Machine
	places   map[string]int // nil: they are in order
}

// placesIn returns where each machine of a List is; of two with one name, the last. The caller adds
// them.
func (e *Evidence) placesIn(machines []provider.Machine) listing {
	for i := range machines {
		if machines[i].Foreign || i > 0 && machines[i-1].Instance >= machines[i].Instance {
			clear(e.places)
			return listing{machines, e.places}
		}
	}
	return listing{machines: machines}
}

// unordered returns the machines if they are to be added: else each has an instance of its own.
func (l *listing) unordered() []provider.Machine {
	if l.places == nil {
		return nil
	}
	return l.machines
}

// add adds a machine. It returns where another one with its name is, if there is one.
func (l *listing) add(id string, at int) (other int, more bool) {
	other, more = l.places[id]
	l.places[id] = at
	return other, more
}

// find returns where the machine of an instance is. It may be where it was.
func (l *listing) find(id string, was int) (at int, there bool) {
	switch {
	case l.places != nil:
		at, there = l.places[id]
		return at, there
	case was < len(l.machines) && l.machines[was].Instance == id:
		return was, true
	default:
		return slices.BinarySearchFunc(l.machines, id,
			func(m provider.Machine, id string) int { return cmp.Compare(m.Instance, id) })
	}
}

// own returns which of several machines belongs to the instance: the machine whose call's token was
// used, or else the one that the record names, or else a running one, so that a stopped copy says
// nothing about the instance. While machines of several calls may register, the one that the record
// names is only the first of them.
func own(several []int, machines []provider.Machine, ref string, joined store.Joined) int {
	rank := func(m *provider.Machine) (n int) {
		registered := joined.Token != "" && m.Call == store.CallOf(joined.Token)
		named := ref != "" && m.Ref == ref
		for _, is := range []bool{registered, named && (registered || m.Call == ""), !m.State.Down(), named} {
			n *= 2
			if is {
				n++
			}
		}
		return n
	}
	best := several[0]
	for _, i := range several {
		if rank(&machines[i]) > rank(&machines[best]) {
			best = i
		}
	}
	return best
}

// anothers reports whether a call other than the registered machine's made a machine.
func anothers(m *provider.Machine, joined store.Joined) bool {
	return m.Call != "" && joined.Token != "" && m.Call != store.CallOf(joined.Token)
}

// copies returns the other machines of an instance. One may go if one of our calls made it, and the
// machine of another call has registered: then it never will. A machine that has the call of
// another one is a copy of it that an operator made.
func copies(several []int, own int, machines []provider.Machine, joined store.Joined) []plan.Copy {
	if len(several) == 0 {
		return nil
	}
	of := map[string]int{} // machines by call
	for _, i := range several {
		of[machines[i].Call]++
	}
	registered := joined.Token != "" && of[store.CallOf(joined.Token)] == 1
	var list []plan.Copy
	for _, i := range several {
		if m := &machines[i]; i != own {
			list = append(list, plan.Copy{
				Ref: m.Ref, Call: m.Call, Spare: registered && m.Call != "" && of[m.Call] == 1 && m.Ref != "",
			})
		}
	}
	return list
}

// listedBy reports whether a provider's Lists have an instance's machine. Machines of another site
// are not in them.
func (e *Evidence) listedBy(name string, w *observed) bool {
	return w.provider == name && (w.site == "" || w.site == e.cfg.Capabilities[name].Site)
}

// disproved reports whether a List misses a machine whose agent has an open stream: then the
// absence of others proves little.
func (e *Evidence) disproved(name string, byID *listing, foreign map[string][]int) bool {
	for id, w := range e.instances {
		if !e.listedBy(name, w) || !w.hasAlive || w.stream != store.StreamOpen || w.phase == store.Deleting {
			continue
		}
		if _, there := byID.find(id, w.place); !there && foreign[id] == nil {
			return true
		}
	}
	return false
}

// listExtras records machines that have our tag and no record, and since when. recorded is how many
// are known to have one. The content is newer than the list: a record is created before its machine
// and deleted after it.
func (e *Evidence) listExtras(name string, machines []provider.Machine, byID listing, recorded int,
	c *cache.Content,
) {
	for id, x := range e.extras {
		if _, there := byID.find(id, 0); x.Provider == name && (!there || e.recorded(c, id)) {
			e.dropExtra(x)
			e.recheck[x.Group] = true
			e.markOrders(c, c.ToInstance[id])
		}
	}
	if recorded == len(machines) {
		machines = nil // nearly always
	}
	for _, m := range machines {
		if m.Foreign || e.recorded(c, m.Instance) {
			continue
		}
		x, seen := e.extras[m.Instance]
		if seen {
			e.dropExtra(x)
		} else {
			x = plan.Extra{
				Instance: m.Instance, Provider: name, Site: e.cfg.Capabilities[name].Site, Since: e.cfg.Now(),
			}
		}
		x.Group, x.Zone, x.Ref, x.State = m.Group, m.Zone, m.Ref, string(m.State)
		if s, stray := c.Strays[m.Instance]; stray {
			if x.Group == "" && s.Record.Claim != nil {
				x.Group = s.Record.Claim.Group
			}
			x.Stray = true // and stays: its agent stops once it learns that it has no record
		}
		e.addExtra(x)
		e.recheck[x.Group] = true
		e.markOrders(c, c.ToInstance[m.Instance])
		e.dirty[""] = true
	}
	if !e.listed[name] {
		e.listed[name], e.recheckAll = true, true
		e.markSizes(e.unlisted)
		clear(e.unlisted)
		if len(c.Requests) > 0 {
			e.dirty[""] = true // groups may have waited for this List
		}
	}
}

// seeStray treats an agent without a record, on a machine that was set up by hand, as an extra
// machine: no List shows it, but its claim says what it was (PROV-9).
func (e *Evidence) seeStray(c *cache.Content, id string) {
	x, known := e.extras[id]
	s, stray := c.Strays[id]
	claim := s.Record.Claim
	byHand := stray && claim != nil && claim.Provider == store.ProviderNone && !e.recorded(c, id)
	switch {
	case byHand && !known:
		e.addExtra(plan.Extra{
			Instance: id, Group: claim.Group, Provider: store.ProviderNone, Zone: claim.Zone, State: "set up by hand",
			Since: e.cfg.Now(), Stray: true,
		})
	case !byHand && known && x.Provider == store.ProviderNone:
		e.dropExtra(x)
	default:
		return
	}
	e.recheck[x.Group], e.dirty[""] = true, true
	e.markOrders(c, c.ToInstance[id])
}

// recorded reports whether an instance has a record, readable or not.
func (e *Evidence) recorded(c *cache.Content, id string) bool {
	_, there := c.Instances[id]
	return there || c.Unreadable[e.cfg.Keys.Instance(id)] != ""
}

func (e *Evidence) addExtra(x plan.Extra) {
	e.extras[x.Instance] = x
	if e.tagged[x.Group] == nil {
		e.tagged[x.Group] = map[string]bool{}
	}
	e.tagged[x.Group][x.Instance] = true
}

func (e *Evidence) dropExtra(x plan.Extra) {
	delete(e.extras, x.Instance)
	delete(e.tagged[x.Group], x.Instance)
	if len(e.tagged[x.Group]) == 0 {
		delete(e.tagged, x.Group)
	}
}
