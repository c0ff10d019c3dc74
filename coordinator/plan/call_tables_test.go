package plan

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Healing is asked for before rolls and expiry, these before growth, and removals come last.
//
// proves REC-9
func TestWhichCallsComeFirst(t *testing.T) {
	for name, c := range map[string]struct {
		kind     CallKind
		purpose  store.Purpose
		replaces string
		heals    bool
		want     int
	}{
		"a replacement":               {CallCreate, store.PurposeHeal, "a", false, 0},
		"a restart":                   {CallRestart, store.PurposeSize, "", true, 0},
		"a replacement of a roll":     {CallCreate, store.PurposeRoll, "a", false, 1},
		"a restart of a roll":         {CallRestart, store.PurposeSize, "", false, 1},
		"a replacement of an old one": {CallCreate, store.PurposeAge, "a", false, 1},
		"one more":                    {CallCreate, store.PurposeSize, "", false, 2},
		"a removal":                   {CallRemove, store.PurposeHeal, "a", false, 3},
		"a removal of a roll":         {CallRemove, store.PurposeRoll, "", false, 3},
	} {
		m := &member{Instance: &Instance{}}
		m.Record.Purpose, m.Record.Replaces = c.purpose, c.replaces
		m.Record.Restart = &store.Restart{Heals: c.heals}
		if got := rank(c.kind, m); got != c.want {
			t.Errorf("%s: rank %d, want %d", name, got, c.want)
		}
	}
}

// Nothing is asked of a provider for a group of which no spec is in force, but what removes
// machines.
//
// proves REC-7
func TestCallsOfAGroupWithoutASpec(t *testing.T) {
	w := newTestWorld(t)
	w.place("a", 0, store.Pending)
	w.place("b", 1, store.Creating)
	w.place("c", 2, store.Stopping, func(r *store.Instance) {
		r.Restart = &store.Restart{Level: store.RestartMachine, Token: "t"}
	})
	w.place("d", 3, store.Deleting)
	s := w.snapshot()
	s.Groups = []Group{w.groupOf(w.group)}
	calls := Compute(s, w.now).Calls
	if len(calls) != 1 || calls[0].Instance != "d" || calls[0].Kind != CallRemove {
		t.Errorf("asked is %+v", calls)
	}
}

// What a provider says to each instance of a group is one text, without the instance's name.
//
// proves PROV-5
func TestAProvidersProblemNamesNoInstance(t *testing.T) {
	for problem, want := range map[string]string{
		"create machine web-0-a: invalid template: no image": "invalid template: no image",
		"500 internal error": "500 internal error",
	} {
		m := &member{Instance: &Instance{Calls: Calls{Problem: problem}}}
		m.Record.ID = "web-0-a"
		if got := problemOf(m); got != want {
			t.Errorf("%s: %q", problem, got)
		}
	}
}
