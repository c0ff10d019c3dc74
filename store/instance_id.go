package store

import (
	"strconv"
	"strings"
)

// PlaceOf reads from an instance's ID which group and slot it was created for. The leader's IDs are
// GROUP-SLOT-LETTERS, with an x where the slot would be for an instance on demand.
func PlaceOf(id string) (group string, slot int, onDemand, known bool) {
	rest, letters, ok := cutLast(id)
	if !ok || letters == "" {
		return "", 0, false, false
	}
	group, place, ok := cutLast(rest)
	if !ok || group == "" {
		return "", 0, false, false
	}
	if place == "x" {
		return group, -1, true, true
	}
	slot, err := strconv.Atoi(place) // never negative: a minus sign would be the hyphen before it
	return group, slot, false, err == nil
}

func cutLast(s string) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, '-'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
