package store_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Without a setting one may be taken down where instances are restarted in their place, and else
// none.
//
// proves HEAL-3
func TestMaxUnavailable(t *testing.T) {
	said := func(n store.Amount) *store.Amount { return &n }
	for _, c := range []struct {
		policy   string
		set      *store.Amount
		restarts bool
		want     int
	}{
		{store.HealRecreate, nil, false, 0},
		{store.HealNone, nil, false, 0},
		{store.HealRestart, nil, false, 1},
		{store.HealRecreate, nil, true, 1},
		{store.HealRestart, said(0), true, 0},
		{store.HealRecreate, said(7), false, 7},
	} {
		g := web()
		g.Heal.Policy, g.Budget.MaxUnavailable = c.policy, c.set
		if got := g.MaxUnavailable(c.restarts); got != c.want {
			t.Errorf("policy %s, restarts %v: %d, want %d", c.policy, c.restarts, got, c.want)
		}
	}
}

// proves REC-18
func TestPercentagesOfBudgets(t *testing.T) {
	amount := func(text string) *store.Amount {
		var a store.Amount
		if err := a.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return &a
	}
	for _, c := range []struct {
		size                   int
		expansion, unavailable string
		most, down             int
	}{
		{10, "25%", "25%", 3, 2},
		{3, "10%", "10%", 1, 0}, // a replacement can be made first
		{3, "0", "10%", 0, 1},   // nothing else could be replaced
		{3, "0", "0%", 0, 0},
		{0, "100%", "100%", 0, 0},
		{100_000, "100%", "100%", 100_000, 100_000},
		{8, "2", "3", 2, 3},
	} {
		g := web()
		g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = c.size, *amount(c.expansion), amount(c.unavailable)
		if most, down := g.MaxExpansion(), g.MaxUnavailable(false); most != c.most || down != c.down {
			t.Errorf("%+v: %d beyond size and %d down", c, most, down)
		}
	}
	// a kind of work never gets more than the group
	g := web()
	g.Size, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 20, 2, amount("30%")
	for _, c := range []struct {
		expansion, unavailable string
		most, down             int
	}{{"1", "10%", 1, 2}, {"9", "50%", 2, 6}, {"0", "1%", 0, 1}} {
		w := store.WorkBudget{MaxExpansion: amount(c.expansion), MaxUnavailable: amount(c.unavailable)}
		if most, down := g.MaxExpansionFor(w), g.MaxUnavailableFor(w, false); most != c.most || down != c.down {
			t.Errorf("%+v: %d beyond size and %d down", c, most, down)
		}
	}
	if most, down := g.MaxExpansionFor(store.WorkBudget{}), g.MaxUnavailableFor(store.WorkBudget{}, false); most != 2 ||
		down != 6 {
		t.Errorf("without limits of its own: %d and %d", most, down)
	}
}

// A number is stored as the release before did, and limits that are not set are not stored at all:
// it refuses fields that it does not know.
//
// proves REC-18
func TestBudgetsAreStoredAsBefore(t *testing.T) {
	g := web()
	g.Budget.MaxUnavailable = new(store.Amount(2))
	if text := string(store.Encode(g.Budget)); strings.ReplaceAll(text, " ",
		"") != `{"max_unavailable":2,"max_expansion":1,"max_creating":0,"max_deleting":0}` {
		t.Errorf("stored as %s", text)
	}
	for _, wrong := range []string{`-1`, `"-1%"`, `"x"`, `1.5`, `""`, `"%"`, `null1`} {
		var a store.Amount
		if err := a.UnmarshalJSON([]byte(wrong)); err == nil {
			t.Errorf("%s is read as %s", wrong, a)
		}
	}
}
