package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// leftovers: when everything has ended, everything is given back; and when all is quiet, etcd holds
// nothing useless.
func (in *inquiry) leftovers() {
	for _, e := range in.events {
		if e.Left != nil {
			in.violation("ELECT-3", e.At, "something was not given back when all had ended: "+e.Left.What, e)
		}
	}
	quiet, there := in.mark(history.Quiet)
	if !there {
		return
	}
	w := in.worldAt(quiet.At)
	in.keysLeft(w, quiet)
	in.tokensLeft(w, quiet)
	in.leasesLeft(quiet)
}

// keysLeft returns keys of instances, groups and orders that no longer exist. Very recent ones are
// tolerated.
func (in *inquiry) keysLeft(w *world, quiet history.Event) {
	used := map[string]int{}
	for _, m := range w.instances {
		used[m.Group]++
	}
	slots := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(w.raw)) {
		e := w.raw[key]
		kind, name, _ := in.keys.Split(key)
		var why string
		switch kind {
		case store.KindRequests:
			why = "this order was neither carried out nor refused (REC-16)"
		case store.KindReports, store.KindAlive, store.KindJoined:
			if w.instances[name] == nil {
				why = "there is no record of its instance"
			}
		case store.KindStrays: // has a lease of a week; an agent without a record may fall silent meanwhile
		case store.KindSlots:
			group, _, _ := strings.Cut(name, "/")
			slots[group]++
			if !in.known(w, group) {
				why = "there is no such group"
			} else if f := w.inForce(group); f.there && slots[group] > max(f.spec.Size, used[group]) {
				why = fmt.Sprintf("the group wants %d slots (REC-4)", f.spec.Size)
			}
		case store.KindTurns:
			if !in.known(w, name) {
				why = "there is no such group"
			}
		}
		// A lease that is not renewed ends by itself, and after a gap in the watcher's cache so
		// does what was found.
		if why != "" && quiet.At.Sub(e.At) > in.terms.recovery() {
			in.violation("ELECT-3", quiet.At, fmt.Sprintf("all is quiet, and %s/%s is left: %s", kind, name, why), e)
		}
	}
}

// known reports whether a group is wanted, or its last accepted spec is kept (SAFE-10).
func (in *inquiry) known(w *world, group string) bool {
	return w.value(in.keys.Group(group)) != nil || w.value(in.keys.Static(group)) != nil || w.statuses[group] != nil
}

// tokensLeft: each Create has a join token of its own, which is used, or ended where the call
// surely made nothing; so an instance has no more tokens than creations were asked for.
//
// Tolerated: one for a call that was recorded and never begun, and one for each call, as its end
// may have been lost in a trouble. They end by themselves.
func (in *inquiry) tokensLeft(w *world, quiet history.Event) {
	tokens, calls := map[string][]history.Event{}, map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(w.raw)) {
		if kind, _, _ := in.keys.Split(key); kind == store.KindTokens {
			if r := as[store.JoinToken](read[store.JoinToken](w.raw[key])); r != nil {
				tokens[r.Instance] = append(tokens[r.Instance], w.raw[key])
			}
		}
	}
	for _, e := range in.events {
		if c := e.Call; c != nil && !c.Ended && c.Method == history.Create {
			calls[c.Instance]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(tokens)) {
		if n := len(tokens[id]); n > calls[id]+1 {
			in.violation("SEC-2", quiet.At,
				fmt.Sprintf("all is quiet, and %s has %d join tokens, for %d creations asked for", id, n, calls[id]),
				tokens[id]...)
		}
	}
}

// maxLeases is how many leases without keys, or of the journal, need no explanation.
const maxLeases = 4

// leasesLeft: a lease that has no key any more is revoked by a replica that knows, or ends soon by
// itself; and the journal's entries of an hour share theirs.
//
// Tolerated: one for each transaction that failed, since its lease was granted before it, and a few
// more for each process that was killed or lost an answer. What is tolerated grows with what went
// wrong, and never with what went well: so a lease that is lost with each report, machine or entry
// shows.
func (in *inquiry) leasesLeft(quiet history.Event) {
	if len(quiet.Mark.Leases) == 0 {
		return
	}
	excused, processes := maxLeases, map[string]bool{}
	for _, e := range in.events {
		c := e.Commit
		switch {
		case e.Trouble != nil && !e.Trouble.Ends:
			excused++
		case c == nil:
		case !c.Ended:
			processes[fmt.Sprint(c.Replica, c.Process)] = true
		case c.Outcome != history.Happened:
			excused++
		}
	}
	excused += 2 * len(processes)
	lastOn := in.lastOn()
	var journals, bare []string
	kinds := map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(quiet.Mark.Leases)) {
		keys := quiet.Mark.Leases[id]
		events := slices.ContainsFunc(keys, func(key string) bool {
			kind, _, _ := in.keys.Split(key)
			return kind == store.KindEvents
		})
		switch {
		case events:
			journals = append(journals, id)
		case len(keys) == 0:
			bare = append(bare, id)
			kinds[lastOn[id]]++
		}
	}
	if len(journals) > excused {
		in.violation("REC-15", quiet.At,
			fmt.Sprintf("all is quiet, and the journal has %d leases, where one for each hour and replica is enough: "+
				"%d are excused", len(journals), excused), quiet)
	}
	if len(bare) > excused {
		var of []string
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			of = append(of, fmt.Sprintf("%d of %s", kinds[kind], orUnknown(kind)))
		}
		in.violation("ELECT-3", quiet.At,
			fmt.Sprintf("all is quiet, and %d leases have no keys (%s): %d are excused", len(bare),
				strings.Join(of, ", "), excused), quiet)
	}
}

func orUnknown(kind string) string {
	if kind == "" {
		return "of unknown use"
	}
	return kind
}

// lastOn returns the last kind of key on each lease.
func (in *inquiry) lastOn() map[string]string {
	out := map[string]string{}
	for _, e := range in.events {
		if c := e.Change; c != nil && c.Lease != 0 {
			out[c.Lease.String()], _, _ = in.keys.Split(c.Key)
		}
	}
	return out
}
