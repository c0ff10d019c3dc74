package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// election makes a history of replicas that lead in turn.
type election struct {
	t      *testing.T
	keys   store.Keys
	events []history.Event
	now    history.Time
	rev    store.Revision
	line   int
	last   uint64
}

func elections(t *testing.T) *election {
	return &election{t: t, keys: store.KeysOf("default"), now: history.Time(time.Minute), line: 1, rev: 10}
}

func (e *election) add(event history.Event) {
	e.now = e.now.Add(time.Millisecond)
	event.At = e.now
	e.events = append(e.events, event)
}

// seen is a revision, seen by the watcher.
func (e *election) seen(values map[string]any, keys ...string) {
	for _, key := range keys {
		c := &history.Change{Line: e.line, Revision: e.rev, Key: key, Deleted: values[key] == nil}
		if !c.Deleted {
			c.Value, c.Created = store.Encode(values[key]), e.rev
		}
		e.add(history.Event{Change: c})
	}
}

// stands puts a replica into the line, and is the fence that it will have.
func (e *election) stands(replica string, lease store.LeaseID) store.Fence {
	e.rev++
	key := e.keys.Leader(lease)
	e.seen(map[string]any{key: store.Leader{Schema: 1, Replica: replica}}, key)
	return store.Fence{Key: key, Created: e.rev}
}

// leaves takes it out again.
func (e *election) leaves(f store.Fence) {
	e.rev++
	e.seen(nil, f.Key)
}

// begins is a transaction that is sent; what it compares may be less than what its replica believes
// in.
func (e *election) begins(replica string, compares, believes store.Fence, keys ...string) *history.Commit {
	e.last++
	c := &history.Commit{ID: e.last, Replica: replica, Process: 1, Fence: compares, Believed: believes, Keys: keys}
	e.add(history.Event{Commit: c})
	return c
}

func (e *election) ends(c *history.Commit, outcome history.Outcome) {
	ended := *c
	ended.Ended, ended.Outcome = true, outcome
	if outcome == history.Happened {
		ended.At = e.rev
	}
	e.add(history.Event{Commit: &ended})
}

// lands makes it happen.
func (e *election) lands(c *history.Commit) {
	e.rev++
	values := map[string]any{}
	for _, key := range c.Keys {
		values[key] = store.JournalEntry{Schema: 1, By: c.Replica}
	}
	e.seen(values, c.Keys...)
}

// writes is all of it.
func (e *election) writes(replica string, f store.Fence) {
	c := e.begins(replica, f, f, e.keys.Instance("web-0"), e.entry())
	e.lands(c)
	e.ends(c, history.Happened)
}

func (e *election) entry() string {
	return e.keys.Event(time.Unix(0, int64(e.last)), fmt.Sprint(e.last))
}

func (e *election) judged() []Violation {
	in := &inquiry{terms: Terms{}.withDefaults(), keys: e.keys, events: e.events}
	in.steps = in.replay()
	in.fences()
	return in.found
}

// broken fails unless there are so many violations, all of SAFE-7, each with evidence and with
// words that tell who.
func (e *election) broken(times int, who string) {
	e.t.Helper()
	found := e.judged()
	if len(found) != times {
		e.t.Fatalf("%d violations, and there should be %d: %+v", len(found), times, found)
	}
	for _, v := range found {
		if v.Rule != "SAFE-7" || len(v.Evidence) != 2 || !strings.HasPrefix(v.What, who) {
			e.t.Fatalf("%+v", v)
		}
	}
}

// without leaves out what a history may lack.
func (e *election) without(lacks func(history.Event) bool) {
	e.events = slices.DeleteFunc(slices.Clone(e.events), lacks)
}

func commits(e history.Event) bool { return e.Commit != nil }
func changes(e history.Event) bool { return e.Change != nil }

// proves SAFE-7: what follows is seen where it is broken, and only there.
func TestLeadersThatFollowEachOther(t *testing.T) {
	e := elections(t)
	a := e.stands("a", 1)
	b := e.stands("b", 2)
	e.writes("a", a)
	late := e.begins("a", a, a, e.keys.Served())
	lost := e.begins("a", a, a, e.keys.Slot("web", 1), e.entry()) // its answer is lost
	e.leaves(a)
	e.writes("b", b)
	e.ends(late, history.Refused) // deposed, and it could not write
	refused := e.begins("a", a, a, e.keys.Instance("web-0"))
	e.ends(refused, history.Refused)
	unknown := e.begins("a", a, a, e.keys.Instance("web-0"))
	e.ends(unknown, history.Unknown)
	e.begins("a", a, a, e.keys.Instance("web-1"))
	e.writes("b", b)
	e.ends(lost, history.Unknown)
	again := e.stands("a", 3)
	e.leaves(b)
	e.writes("a", again)
	e.broken(0, "")
	e.without(commits)
	e.broken(0, "")
}

func TestADeposedLeaderThatWrites(t *testing.T) {
	tell := func() *election {
		e := elections(t)
		a := e.stands("a", 1)
		b := e.stands("b", 2)
		e.writes("a", a)
		e.leaves(a)
		e.writes("b", b)
		c := e.begins("a", store.Fence{}, a, e.keys.Instance("web-0"), e.entry())
		e.lands(c)
		e.ends(c, history.Happened)
		e.writes("b", b)
		return e
	}
	e := tell()
	e.broken(2, "a (process 1") // by both ways
	e = tell()
	e.without(commits)
	e.broken(1, "a wrote as leader")
	e = tell()
	e.without(changes)
	e.broken(1, "a (process 1")
}

func TestADeposedLeaderThatWritesBeforeItsSuccessorDoes(t *testing.T) {
	e := elections(t)
	a := e.stands("a", 1)
	e.stands("b", 2)
	e.leaves(a)
	c := e.begins("a", store.Fence{}, a, e.keys.Served())
	e.lands(c)
	e.ends(c, history.Happened)
	e.broken(1, "a (process 1") // by the clock alone nothing is wrong
}

func TestALeaderThatNobodyElected(t *testing.T) {
	e := elections(t)
	a := e.stands("a", 1)
	e.leaves(a)
	c := e.begins("b", store.Fence{}, store.Fence{}, e.keys.Turn("web"))
	e.lands(c)
	e.ends(c, history.Happened)
	e.broken(1, "b (process 1, with no fence)")
}

func TestADeposedLeaderWhoseAnswerWasLost(t *testing.T) {
	for _, killed := range []bool{false, true} {
		e := elections(t)
		a := e.stands("a", 1)
		b := e.stands("b", 2)
		c := e.begins("a", a, a, e.keys.Served())
		if !killed {
			e.ends(c, history.Unknown)
		}
		e.leaves(a)
		e.writes("b", b)
		e.broken(0, "")
		e.writes("b", b)
		e.lands(c) // after all: begun in time, and so no matter of the clock
		e.broken(1, "a (process 1")
	}
}

// A lost answer is found again by what was seen in etcd, if only one can be meant, and that was
// begun by then.
func TestAnUnknownWriteIsKnownByWhatWasSeen(t *testing.T) {
	tell := func() (*election, store.Fence, store.Fence) {
		e := elections(t)
		a, b := e.stands("a", 1), e.stands("b", 2)
		e.leaves(a)
		e.writes("b", b)
		return e, a, b
	}
	e, a, _ := tell()
	c := e.begins("a", store.Fence{}, a, e.keys.Served())
	e.ends(c, history.Unknown)
	e.lands(c)
	e.broken(2, "a (process 1") // by both ways

	e, a, b := tell()
	d, c := e.begins("b", b, b, e.keys.Served()), e.begins("a", store.Fence{}, a, e.keys.Served())
	e.lands(d)
	e.ends(c, history.Unknown)
	e.ends(d, history.Unknown)
	e.broken(0, "")

	e, a, _ = tell()
	e.lands(&history.Commit{Keys: []string{e.keys.Served()}}) // by hand
	e.ends(e.begins("a", store.Fence{}, a, e.keys.Served()), history.Unknown)
	e.broken(0, "")
}

// What was sent before the leadership ended, and happened before, may be answered when another
// leads already.
func TestALateAnswerIsNoLateWrite(t *testing.T) {
	e := elections(t)
	a := e.stands("a", 1)
	b := e.stands("b", 2)
	c := e.begins("a", a, a, e.keys.Served())
	e.lands(c)
	at := e.rev
	e.leaves(a)
	e.writes("b", b)
	c.At = at
	ended := *c
	c.At = 0
	ended.Ended, ended.Outcome = true, history.Happened
	e.add(history.Event{Commit: &ended})
	e.broken(0, "")
}

// A restored etcd has revisions from before, and so have its fences: what is newer in it has a
// smaller number.
func TestAnotherLineHasLeadersOfItsOwn(t *testing.T) {
	e := elections(t)
	e.rev = 1000
	a := e.stands("a", 1)
	e.writes("a", a)
	e.line, e.rev = 2, 20
	b := e.stands("b", 2)
	e.writes("b", b)
	e.broken(0, "")
	c := e.begins("a", store.Fence{}, a, e.keys.Served())
	e.lands(c)
	e.ends(c, history.Happened)
	e.broken(1, "a (process 1")
}

// A key that had ended comes back with an older copy of etcd's data: no replica goes by it any
// more, and the leader since goes on.
func TestAKeyThatIsBackFromBeforeLeadsNobody(t *testing.T) {
	e := elections(t)
	a, b := e.stands("a", 1), e.stands("b", 2)
	e.writes("a", a)
	e.leaves(a)
	e.writes("b", b)
	e.line, e.rev = 2, 11
	for replica, f := range map[string]store.Fence{"a": a, "b": b} {
		e.add(history.Event{Change: &history.Change{
			Line: 2, Revision: f.Created, Created: f.Created, Key: f.Key,
			Value: store.Encode(store.Leader{Schema: 1, Replica: replica}), Found: true,
		}})
	}
	e.rev = 20
	e.writes("b", b)
	e.broken(0, "")
	c := e.stands("c", 3)
	e.writes("c", c)
	e.broken(1, "c (process 1")
}

// A write that does not compare the fence is a violation, even if its writer leads.
func TestAWriteOfALeaderComparesTheFence(t *testing.T) {
	e := elections(t)
	a := e.stands("a", 1)
	e.writes("a", a)
	e.ends(e.begins("a", store.Fence{}, a, e.keys.Alive("web-0")), history.Happened)
	in := &inquiry{keys: e.keys, events: e.events}
	if in.unfenced(); len(in.found) != 0 {
		t.Fatal(in.found)
	}
	for range 2 { // once for each process is enough
		e.ends(e.begins("a", store.Fence{}, a, e.keys.Instance("web-0")), history.Happened)
	}
	in = &inquiry{keys: e.keys, events: e.events}
	if in.unfenced(); len(in.found) != 1 || in.found[0].Rule != "SAFE-7" {
		t.Fatal(in.found)
	}
}

// What others write is no matter of leaders.
func TestWhatIsNoLeadersWrite(t *testing.T) {
	e := elections(t)
	a := e.stands("a", 1)
	e.writes("a", a)
	c := e.begins("b", store.Fence{}, store.Fence{}, e.keys.Alive("web-0"), e.entry())
	e.lands(c)
	e.ends(c, history.Happened)
	e.rev++
	e.seen(map[string]any{e.keys.Status("web"): "by hand"}, e.keys.Status("web"))
	e.broken(0, "")
}

// Of a write that was only found later, the writer and the leader at that time are not known.
func TestAWriteThatWasOnlyFoundIsNoViolation(t *testing.T) {
	e := elections(t)
	a := e.stands("a", 1)
	b := e.stands("b", 2)
	e.leaves(a)
	e.writes("b", b)
	unknown := e.begins("a", a, a, e.keys.Instance("web-1"))
	e.ends(unknown, history.Unknown) // and it never happened
	seen := len(e.events)
	e.rev++
	e.seen(map[string]any{e.keys.Instance("web-1"): "of b"}, e.keys.Instance("web-1"))
	e.rev++
	e.seen(map[string]any{e.keys.Instance("web-2"): "of another", e.entry(): store.JournalEntry{Schema: 1, By: "c"}},
		e.keys.Instance("web-2"), e.entry())
	for _, event := range e.events[seen:] {
		event.Change.Found = true
	}
	e.broken(0, "")
}

// By the clock alone, what was under way at one time may have happened in either order.
func TestWhatWasUnderWayTogetherHasNoOrder(t *testing.T) {
	e := elections(t)
	old, newer := store.Fence{Key: e.keys.Leader(1), Created: 5}, store.Fence{Key: e.keys.Leader(2), Created: 6}
	c := e.begins("b", newer, newer, e.keys.Served())
	d := e.begins("a", old, old, e.keys.Served())
	e.ends(d, history.Happened)
	e.ends(c, history.Happened)
	e.broken(0, "")
	late := e.begins("a", old, old, e.keys.Served())
	e.ends(late, history.Happened)
	e.broken(1, "a (process 1")
}

// The few that the search looks at say of any history what all would.
func TestTheEdgesOfLeadershipsSayAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []deed
		for range rapid.IntRange(0, 14).Draw(t, "deeds") {
			from := history.Time(rapid.IntRange(0, 40).Draw(t, "from"))
			all = append(all, deed{
				w:    &transaction{begun: history.Event{Commit: &history.Commit{}}},
				term: term{created: store.Revision(rapid.IntRange(1, 4).Draw(t, "fence"))},
				from: from, until: from.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "long"))),
			})
		}
		possible := true
		for _, old := range all {
			for _, d := range all {
				possible = possible && (d.term.created <= old.term.created || d.until >= old.from)
			}
		}
		in := &inquiry{}
		in.row(all)
		few := &inquiry{}
		few.row(edges(all))
		if (len(in.found) == 0) != possible || (len(few.found) == 0) != possible {
			t.Fatalf("possible %t, of all %v, of the edges %v", possible, in.found, few.found)
		}
	})
}
