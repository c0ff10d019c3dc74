package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// The table is written out as a person reads the life of an instance: rows from, columns to, in the
// order of store.Phases; x is a step that is allowed.
const steps = `
            pending creating booting checking running stopping starting draining deleting finished
(none)      x       .        x       .        .       .        .        .        x        .
pending     .       x        .       .        .       .        .        .        x        .
creating    .       .        x       .        .       .        .        .        x        .
booting     .       .        .       x        .       x        .        x        x        .
checking    .       .        .       .        x       x        .        x        x        x
running     .       .        .       x        .       x        .        x        x        x
stopping    .       .        .       .        .       .        x        x        x        .
starting    .       .        .       x        .       x        .        x        x        .
draining    .       .        .       x        x       .        .        .        x        .
deleting    .       .        .       .        .       .        .        .        .        .
finished    .       .        .       .        .       .        .        x        x        .
`

func TestValidateTransition(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(steps), "\n")
	columns := strings.Fields(lines[0])
	if len(columns) != len(store.Phases) || len(lines) != len(store.Phases)+2 {
		t.Fatalf("the table has %d columns and %d rows for %d phases", len(columns), len(lines)-2, len(store.Phases))
	}
	for _, line := range lines[1:] {
		row := strings.Fields(line)
		from := store.Phase(strings.Trim(row[0], "()"))
		if from == "none" {
			from = ""
		} else if !slices.Contains(store.Phases, from) {
			t.Errorf("the table has %s, which is no phase", from)
		}
		for i, column := range columns {
			err := store.ValidateTransition(from, store.Phase(column))
			if allowed := row[i+1] == "x"; allowed != (err == nil) {
				t.Errorf("%s to %s: %v, want allowed %v", row[0], column, err, allowed)
			}
			if err != nil && !strings.Contains(err.Error(), column) {
				t.Errorf("%q does not name %s", err, column)
			}
		}
	}
	for _, step := range [][2]store.Phase{
		{"nonsense", store.Pending},
		{store.Running, "nonsense"},
		{"", "nonsense"},
		{store.Running, ""},
	} {
		if store.ValidateTransition(step[0], step[1]) == nil {
			t.Errorf("%q to %q is allowed", step[0], step[1])
		}
	}
}

// Deleting is the point of no return, and every life can end.
func TestEveryPhaseLeadsToDeletion(t *testing.T) {
	for _, p := range store.Phases {
		if err := store.ValidateTransition(p, store.Deleting); p != store.Deleting && err != nil {
			t.Error(err)
		}
	}
}

func TestPhasesThatFillAndAreRegistered(t *testing.T) {
	fills, registered := "", ""
	for _, p := range store.Phases {
		if p.Fills() {
			fills += " " + string(p)
		}
		if p.Registered() {
			registered += " " + string(p)
		}
	}
	if want := " pending creating booting checking running stopping starting"; fills != want {
		t.Errorf("filling a slot:%s, want%s", fills, want)
	}
	if want := " checking running stopping starting draining"; registered != want {
		t.Errorf("registered:%s, want%s", registered, want)
	}
}

func TestVerdictsThatCallForHealing(t *testing.T) {
	for verdict, want := range map[store.Verdict]bool{
		store.Unborn: false, store.Live: false, store.Suspect: false, store.Doomed: false,
		store.Unhealthy: true, store.Lost: true, store.Dead: true, store.Stuck: true,
	} {
		if verdict.Failed() != want {
			t.Errorf("%s calls for healing: %v", verdict, !want)
		}
	}
}
