package store_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// What happens to a slot beside a decision is written and rendered as a decision of its own is.
func TestAnEffectOnASlotIsOneOfItsOwn(t *testing.T) {
	slot := filled[store.SlotEffect]()
	if beside, own := string(store.Encode(slot)), string(store.Encode(slot.Effect())); own != beside {
		t.Errorf("%s becomes %s", beside, own)
	}
}

// The schema of a record is known however it was written.
func TestSchemaOfARecord(t *testing.T) {
	for value, want := range map[string]int{
		string(store.Encode(store.Slot{Schema: store.Schema})): store.Schema,
		`{ "schema": 1 }`: 1, `{"group":"web","schema":7}`: 7, `{"schema":10}`: 10, `{"schema":1,"a":1}`: 1, `{}`: 0,
	} {
		if got, err := store.SchemaOf([]byte(value)); err != nil || got != want {
			t.Errorf("the schema of %s is %d, %v, want %d", value, got, err, want)
		}
	}
	for _, value := range []string{"", "[]", `{"schema":"1"}`} {
		if got, err := store.SchemaOf([]byte(value)); err == nil {
			t.Errorf("the schema of %s is %d", value, got)
		}
	}
}

// A day says nothing of what never happened in it, and keeps what happened once.
func TestADayKeepsWhatHappened(t *testing.T) {
	day := store.Day{Schema: store.Schema, Heal: store.DaySpread{Times: 1, Took: []store.Duration{5}}}
	text := string(store.Encode(day))
	if !strings.Contains(text, `"heal":{"times":1,`) || strings.Contains(text, "detect") {
		t.Errorf("of a day with one healing is written %s", text)
	}
}
