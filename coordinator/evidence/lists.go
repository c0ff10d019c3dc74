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
	l := e.byInstance(machines)
	wrong := sync.OnceValue(func() bool { return e.disproved(name, &l) })
	recorded, poll := 0, c.Shard.Record.Settings.ProviderPoll.D() // machines that have a record
	for id, w := range e.instances {
		if !e.listedBy(name, w) {
			continue
		}
		if l.again(id, w, begun, poll) {
			recorded++
			continue
		}
		now := l.sighting(id, w, begun, c)
		if now.Listed {
			recorded++
		}
		e.seeSighting(w, now, poll, wrong)
	}
	if len(e.instances) != len(c.Instances) {
		recorded = 0 // not all that was seen has a record still
	}
	e.listExtras(name, l, recorded, c)
	e.listForeign(name, machines, c)
	e.mu.Unlock()
	e.cfg.Wake()
}

// again records that the List shows the only machine of an instance as the last one did.
func (l *listing) again(id string, w *observed, begun time.Time, poll time.Duration) bool {
	at, there := l.find(id, w.place)
	w.place = at
	return there && len(l.several) == 0 && len(l.foreign) == 0 && w.listedAgain(&l.machines[at], begun, poll)
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

// seeSighting records what a List shows of an instance, and has its group be planned if that may
// matter.
func (e *Evidence) seeSighting(w *observed, now plan.Sighting, poll time.Duration, wrong func() bool) {
	old := w.sighting
	same := w.seenAgain(&now, poll, wrong)
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

// seenAgain counts how often, and since when, Lists have shown the same of an instance, and reports
// whether this one does. Its absence counts for sure if the List is not wrong about another one.
func (w *observed) seenAgain(now *plan.Sighting, poll time.Duration, wrong func() bool) (same bool) {
	old := &w.sighting
	// two boots do not confirm each other
	same = !old.Begun.IsZero() && old.Listed == now.Listed && old.Down == now.Down &&
		(!now.Down || old.BootID == now.BootID)
	now.Since = old.Since
	switch {
	case !same:
		w.counted, now.Since = now.Begun, now.Begun
	case now.Begun.Sub(w.counted) < poll:
		now.Times = old.Times // asked again so soon, it is the same answer: one glitch of the provider's
	default:
		now.Times, w.counted = old.Times+1, now.Begun
	}
	if !now.Listed && !wrong() {
		now.Sure = old.Sure + now.Times - old.Times
		if !same {
			now.Sure = 1
		}
	}
	return same
}

// listing finds the machines of a List by their instance. Nearly every List comes in the order of
// instances, and most of a List is where it was in the last one.
type listing struct {
	machines []provider.Machine
	places   map[string]int   // nil: they are in order
	several  map[string][]int // machines of an instance that has more than one
	foreign  map[string][]int // machines that the provider did not make
}

// byInstance returns the machines of a List by their instance: of two with one name, the last.
func (e *Evidence) byInstance(machines []provider.Machine) listing {
	l := listing{machines: machines, several: map[string][]int{}, foreign: map[string][]int{}}
	if !ordered(machines) {
		clear(e.places)
		l.places = e.places
	}
	for i := range l.unordered() {
		id := machines[i].Instance
		if machines[i].Foreign {
			l.foreign[id] = append(l.foreign[id], i)
			continue
		}
		if first, more := l.add(id, i); more {
			if l.several[id] == nil {
				l.several[id] = []int{first}
			}
			l.several[id] = append(l.several[id], i)
		}
	}
	return l
}

// ordered reports whether machines are in the order of their instances, one for each.
func ordered(machines []provider.Machine) bool {
	for i := range machines {
		if machines[i].Foreign || i > 0 && machines[i-1].Instance >= machines[i].Instance {
			return false
		}
	}
	return true
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

// sighting returns what the List shows of an instance, and remembers where its machine is.
func (l *listing) sighting(id string, w *observed, begun time.Time, c *cache.Content) plan.Sighting {
	at, there := l.find(id, w.place)
	w.place = at
	s := plan.Sighting{Begun: begun, Listed: there, Times: 1}
	if there {
		l.describe(&s, id, at, c)
	}
	for _, i := range l.foreign[id] {
		s.Copies = append(s.Copies, plan.Copy{Ref: l.machines[i].Ref})
	}
	slices.SortFunc(s.Copies, func(a, b plan.Copy) int { return cmp.Compare(a.Ref, b.Ref) })
	if begun.Before(w.copiesFrom) {
		s.Copies = nil
	}
	return s
}

// describe adds the machine of an instance to what is shown of it, and its other machines.
func (l *listing) describe(s *plan.Sighting, id string, at int, c *cache.Content) {
	joined := c.Joined[id].Record
	if l.several[id] != nil {
		at = own(l.several[id], l.machines, c.Instances[id].Record.Ref, joined)
	}
	m := &l.machines[at]
	s.Down, s.State, s.Ref, s.Address, s.BootID = m.State.Down(), string(m.State), m.Ref, m.Address, m.BootID
	if s.Down && m.Why != "" {
		s.State += " (" + m.Why + ")"
	}
	s.Copies = copies(l.several[id], at, l.machines, joined)
	if anothers(m, joined) {
		s.Down, s.Address = false, "" // it says nothing about the machine that registered
		s.State += " (another call's machine)"
	}
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
func (e *Evidence) disproved(name string, l *listing) bool {
	for id, w := range e.instances {
		if !e.listedBy(name, w) || !w.hasAlive || w.stream != store.StreamOpen || w.phase == store.Deleting {
			continue
		}
		if _, there := l.find(id, w.place); !there && l.foreign[id] == nil {
			return true
		}
	}
	return false
}

// listExtras records machines that have our tag and no record, and since when. recorded is how many
// are known to have one. The content is newer than the list: a record is created before its machine
// and deleted after it.
func (e *Evidence) listExtras(name string, l listing, recorded int, c *cache.Content) {
	for id, x := range e.extras {
		if _, there := l.find(id, 0); x.Provider == name && (!there || e.recorded(c, id)) {
			e.dropExtra(x)
			e.recheck[x.Group] = true
			e.markOrders(c, c.ToInstance[id])
		}
	}
	machines := l.machines
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
