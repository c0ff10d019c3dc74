package store_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// The first slot has a name like the others.
//
// proves SLOT-1
func TestNameOfTheFirstSlot(t *testing.T) {
	s := store.InstanceSpec{Slots: store.SlotsSpec{Name: "${group}-${slot}"}}
	if got := s.NameIn("web", 0, "web-0-abc"); got != "web-0" {
		t.Errorf("got %s", got)
	}
}

// The longest name is the last slot's: a host name has at most 63 characters.
//
// proves SLOT-1
func TestNameOfTheLastSlot(t *testing.T) {
	for size, allowed := range map[int]bool{0: true, 1: true, 10: true, 11: false} {
		g := validGroup()
		g.Slots.Name, g.Size = strings.Repeat("x", 62)+"${slot}", size
		if err := g.Validate(); (err == nil) != allowed {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

// Every fact that an instance has whatever its provider can be used in a group's file.
func TestFactsOfEveryMachine(t *testing.T) {
	for name := range (&store.Instance{}).Facts("main") {
		g := web()
		g.Workload.Run = []string{"./web", "${" + name + "}"}
		if got := refusalOf(g); got != "" {
			t.Errorf("${%s} is refused: %s", name, got)
		}
	}
}
