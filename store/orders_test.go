package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// An operator who ends a hold has seen its reason: the next hold needs more of the same. A release
// that is about one kind of reason says nothing of the other.
//
// proves SAFE-12, SAFE-15
func TestWhatAReleaseAcknowledges(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	earlier := &store.Reviewed{Extras: 5, Damage: 6, Seen: 70, At: at.Add(-time.Hour)}
	for name, test := range map[string]struct {
		hold         *store.Hold
		before, want *store.Reviewed
	}{
		"no hold":              {nil, nil, nil},
		"no hold, reviewed":    {nil, earlier, earlier},
		"an operator's":        {&store.Hold{Why: "maintenance"}, nil, nil},
		"an operator's, later": {&store.Hold{Why: "maintenance"}, earlier, earlier},
		"extras":               {&store.Hold{Extras: 2}, nil, &store.Reviewed{Extras: 2, At: at}},
		"extras, later":        {&store.Hold{Extras: 2}, earlier, &store.Reviewed{Extras: 2, Damage: 6, Seen: 70, At: at}},
		"damage":               {&store.Hold{Damage: 3, Seen: 80}, nil, &store.Reviewed{Damage: 3, Seen: 80, At: at}},
		"one damaged":          {&store.Hold{Damage: 1, Seen: 80}, nil, &store.Reviewed{Damage: 1, Seen: 80, At: at}},
		"one extra":            {&store.Hold{Extras: 1}, nil, &store.Reviewed{Extras: 1, At: at}},
		"damage, later": {&store.Hold{Damage: 3, Seen: 80}, earlier, &store.Reviewed{
			Extras: 5, Damage: 3, Seen: 80,
			At: at,
		}},
		"extras and damage": {&store.Hold{Extras: 1, Damage: 1, Seen: 90}, earlier, &store.Reviewed{
			Extras: 1, Damage: 1,
			Seen: 90, At: at,
		}},
	} {
		s := store.Shard{Hold: test.hold, Reviewed: test.before}
		s.Release(at)
		if s.Hold != nil || (s.Reviewed == nil) != (test.want == nil) || s.Reviewed != nil && *s.Reviewed != *test.want {
			t.Errorf("%s: hold %+v, reviewed %+v, want %+v", name, s.Hold, s.Reviewed, test.want)
		}
	}
	for _, test := range []struct {
		reviewed *store.Reviewed
		seen     store.Revision
		want     bool
	}{{nil, 1, false}, {earlier, 69, true}, {earlier, 70, true}, {earlier, 71, false}} {
		d := store.Damaged{Seen: test.seen}
		if got := d.Reviewed(&store.Shard{Reviewed: test.reviewed}); got != test.want {
			t.Errorf("damage of revision %d, reviewed %+v: %t", test.seen, test.reviewed, got)
		}
	}
}

// The agent carries out a restart of its workload, and after one of the machine the new boot is
// told as well.
func TestWhichRestartAnAgentIsSent(t *testing.T) {
	for _, test := range []struct {
		phase  store.Phase
		order  *store.Restart
		wanted string
	}{
		{store.Stopping, nil, ""},
		{store.Stopping, &store.Restart{Level: store.RestartWorkload, Token: "t"}, "t"},
		{store.Starting, &store.Restart{Level: store.RestartWorkload, Token: "t"}, "t"},
		{store.Checking, &store.Restart{Level: store.RestartWorkload, Token: "t"}, "t"},
		{store.Running, &store.Restart{Level: store.RestartWorkload, Token: "t"}, ""},
		{store.Starting, &store.Restart{Level: store.RestartMachine, Token: "t"}, ""},
		{store.Stopping, &store.Restart{Level: store.RestartMachine, Token: "t", Renews: true}, ""},
		{store.Starting, &store.Restart{Level: store.RestartMachine, Token: "t", Renews: true}, "t"},
		{store.Checking, &store.Restart{Level: store.RestartMachine, Token: "t", Renews: true}, "t"},
	} {
		in := store.Instance{Phase: test.phase, Restart: test.order}
		if got := in.RestartWanted(); got != test.wanted {
			t.Errorf("%s, %+v: %q, want %q", test.phase, test.order, got, test.wanted)
		}
	}
}

// Bounds of one field by another are told with both, and with the other's value where a file sets
// it. Ages that are not set bound nothing.
func TestFieldsThatBoundEachOther(t *testing.T) {
	age := func(d time.Duration) *store.Duration { v := store.Duration(d); return &v }
	valid := func() store.Group {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Size = "web", "process", 1
		return g
	}
	for _, test := range []struct {
		name string
		edit func(*store.Group)
		says string // "": it is valid
	}{
		{"delays", func(g *store.Group) {
			g.Flap.MinDelay, g.Flap.MaxDelay = store.Duration(time.Minute), store.Duration(time.Minute)
		}, ""},
		{
			"delays the wrong way round",
			func(g *store.Group) {
				g.Flap.MinDelay, g.Flap.MaxDelay = store.Duration(2*time.Minute), store.Duration(time.Minute)
			},
			"flap.m",
		},
		{"ages", func(g *store.Group) { g.Expiry.EligibleAge, g.Expiry.ForcedAge = age(time.Hour), age(time.Hour) }, ""},
		{"one age", func(g *store.Group) { g.Expiry.EligibleAge = age(time.Hour) }, ""},
		{"the other age", func(g *store.Group) { g.Expiry.ForcedAge = age(time.Hour) }, ""},
		{
			"one age switched off", func(g *store.Group) { g.Expiry.EligibleAge, g.Expiry.ForcedAge = age(time.Hour), age(0) },
			"",
		},
		{
			"the other switched off", func(g *store.Group) { g.Expiry.EligibleAge, g.Expiry.ForcedAge = age(0), age(time.Hour) },
			"",
		},
		{
			"ages the wrong way round",
			func(g *store.Group) { g.Expiry.EligibleAge, g.Expiry.ForcedAge = age(2*time.Hour), age(time.Hour) },
			"expiry.eligible_age",
		},
	} {
		g := valid()
		test.edit(&g)
		g.Complete()
		err := g.Validate()
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.name, err, test.says)
		}
	}
}

// Each timer of a status is one of its own.
func TestTimersOfAStatus(t *testing.T) {
	wait := store.Timer{For: store.Duration(time.Minute)}
	s := store.Status{Rebalance: &store.Rebalance{Wait: &wait}}
	if got := s.Timers(); len(got) != 1 || got[0] != (store.NamedTimer{Name: store.TimerRebalance, Timer: wait}) {
		t.Errorf("%+v", got)
	}
	if got := (&store.Status{}).Timers(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestWhatFollowsAGroupIsRefused(t *testing.T) {
	g := store.DefaultGroup()
	g.Name, g.Provider = "web", "process"
	text := string(store.Encode(g))
	if _, err := store.ReadGroup([]byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"{}", "null", "1"} {
		if _, err := store.ReadGroup([]byte(text + more)); err == nil {
			t.Errorf("a group followed by %s is read", more)
		}
	}
	keys := store.KeysOf("test")
	if key := keys.Gone(keys.Instance("i")); keys.OfGone(strings.TrimPrefix(key,
		keys.Of(store.KindGone))) != keys.Instance("i") {
		t.Errorf("the note %s is not of %s", key, keys.Instance("i"))
	}
	if !slices.Contains(store.DurableKinds(), store.KindInstances) {
		t.Error("instances are not durable")
	}
}
