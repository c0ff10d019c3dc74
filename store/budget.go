package store

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Amount is a number of instances or, if it is negative, a percentage of a group's size (REC-18):
// -25 is 25%.
type Amount int

// Percent returns a percentage of a group's size.
func Percent(n int) Amount { return Amount(-n) }

// Up returns the number of instances, rounded up.
func (a Amount) Up(size int) int {
	if a >= 0 {
		return int(a)
	}
	return (size*int(-a) + 99) / 100
}

// Down returns the number of instances, rounded down.
func (a Amount) Down(size int) int {
	if a >= 0 {
		return int(a)
	}
	return size * int(-a) / 100
}

func (a Amount) String() string {
	if a < 0 {
		return strconv.Itoa(int(-a)) + "%"
	}
	return strconv.Itoa(int(a))
}

// MarshalJSON writes a number as the release before did, which knows no percentages.
func (a Amount) MarshalJSON() ([]byte, error) {
	if a < 0 {
		return []byte(strconv.Quote(a.String())), nil
	}
	return []byte(a.String()), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Amount) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		var n int
		if err := json.Unmarshal(data, &n); err != nil {
			return err
		}
		if n < 0 {
			return fmt.Errorf("%d is below 0", n)
		}
		*a = Amount(n)
		return nil
	}
	return a.UnmarshalText([]byte(text))
}

// UnmarshalText reads a number or a percentage.
func (a *Amount) UnmarshalText(text []byte) error {
	digits, percent := strings.CutSuffix(string(text), "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return fmt.Errorf("%q is neither a number nor a percentage like 25%%", text)
	}
	*a = Amount(n)
	if percent {
		*a = Percent(int(n))
	}
	return nil
}

// inRange reports whether it is 0 to a number, or 0% to 100%.
func (a Amount) inRange(most int) bool { return a >= -100 && int(a) <= most }

// Budget bounds what happens at once (HEAL-2, HEAL-3, HEAL-7).
type Budget struct {
	MaxUnavailable *Amount `json:"max_unavailable,omitempty"` // nil: the default, see Group.MaxUnavailable
	MaxExpansion   Amount  `json:"max_expansion"`
	MaxCreating    int     `json:"max_creating"`
	MaxDeleting    int     `json:"max_deleting"`
	// what one kind of work may use of these (REC-18)
	Heal   WorkBudget `json:"heal,omitzero"`
	Roll   WorkBudget `json:"roll,omitzero"`
	Expiry WorkBudget `json:"expiry,omitzero"`
}

// WorkBudget narrows a group's budgets for one kind of work: it begins nothing that would have more
// in use, whatever uses it. Nil: the group's.
type WorkBudget struct {
	MaxUnavailable *Amount `json:"max_unavailable,omitempty"`
	MaxExpansion   *Amount `json:"max_expansion,omitempty"`
}

// MaxExpansion returns how many machines above size may exist at once.
func (g *Group) MaxExpansion() int { return g.Budget.MaxExpansion.Up(g.Size) }

// MaxUnavailable returns how many of the group's instances may be taken down at once. Unless the
// operator says, it is none; one where instances are restarted in their place, which takes them
// down (HEAL-3). A percentage is at least one instance only if no machine may be made beyond size.
func (g *Group) MaxUnavailable(restarts bool) int {
	switch a := g.Budget.MaxUnavailable; {
	case a != nil:
		return a.unavailable(g.Size, g.MaxExpansion())
	case restarts || g.Heal.Policy == HealRestart:
		return 1
	default:
		return 0
	}
}

func (a Amount) unavailable(size, expansion int) int {
	if n := a.Down(size); n > 0 || a >= 0 || expansion > 0 || size == 0 {
		return n
	}
	return 1
}

// MaxExpansionFor returns how many machines above size may exist for a kind of work to make
// another.
func (g *Group) MaxExpansionFor(w WorkBudget) int {
	if w.MaxExpansion == nil {
		return g.MaxExpansion()
	}
	return min(g.MaxExpansion(), w.MaxExpansion.Up(g.Size))
}

// MaxUnavailableFor returns how many instances may be down for a kind of work to take another one
// down.
func (g *Group) MaxUnavailableFor(w WorkBudget, restarts bool) int {
	if w.MaxUnavailable == nil {
		return g.MaxUnavailable(restarts)
	}
	return min(g.MaxUnavailable(restarts), w.MaxUnavailable.unavailable(g.Size, g.MaxExpansionFor(w)))
}
