package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A leader runs the timers that a record names. One that is left out would not run, and two of one
// name would be one.
//
// proves SAFE-13
func TestARecordNamesEachOfItsTimers(t *testing.T) {
	instance, slot, status := filled[store.Instance](), filled[store.Slot](), filled[store.Status]()
	for _, c := range []struct {
		record any
		timers []store.NamedTimer
	}{
		{instance, instance.Timers()}, {slot, slot.Timers()}, {status, status.Timers()},
	} {
		var there, named, names []string
		eachTimer(reflect.ValueOf(c.record), func(timer store.Timer) { there = append(there, fmt.Sprint(timer)) })
		for _, n := range c.timers {
			named, names = append(named, fmt.Sprint(n.Timer)), append(names, n.Name)
		}
		slices.Sort(there)
		slices.Sort(named)
		if len(there) == 0 || !slices.Equal(named, there) {
			t.Errorf("%T has the timers %q, and names %q: %q", c.record, there, named, names)
		}
		slices.Sort(names)
		if names[0] == "" || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("%T: a name is missing, or there twice: %q", c.record, names)
		}
	}
}

// eachTimer visits all timers in a value, at every depth.
func eachTimer(v reflect.Value, visit func(store.Timer)) {
	if timer, ok := v.Interface().(store.Timer); ok {
		visit(timer)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachTimer(v.Field(i), visit)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachTimer(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachTimer(v.Index(i), visit)
		}
	default: // there is none in a plain value
	}
}

// What has no end, or is not there, has no timer.
func TestWhatHasNoTimer(t *testing.T) {
	ordered := store.Instance{Protection: &store.Protection{By: "eva"}}
	ends := store.Instance{Protection: &store.Protection{Ends: &store.Timer{For: store.Duration(time.Minute)}}}
	for name, c := range map[string]struct {
		timers []store.NamedTimer
		want   []string
	}{
		"an instance":              {(&store.Instance{}).Timers(), nil},
		"a protection by order":    {ordered.Timers(), nil},
		"a protection with an end": {ends.Timers(), []string{"protection"}},
		"a drain of an idle one":   {(&store.Instance{Drain: &store.Drain{}}).Timers(), []string{"drain"}},
		"a slot":                   {(&store.Slot{}).Timers(), nil},
		"a group":                  {(&store.Status{}).Timers(), nil},
		"a group that is well": {(&store.Status{
			Storm: &store.Storm{}, Breaker: &store.Breaker{}, Rollout: &store.Rollout{}, Rebalance: &store.Rebalance{},
			Shares: &store.Shares{}, Scale: &store.Scale{},
		}).Timers(), nil},
	} {
		var names []string
		for _, n := range c.timers {
			names = append(names, n.Name)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s has the timers %q, want %q", name, names, c.want)
		}
	}
}

// A roll that rests goes on when its wait ends, or later where the group has a grace then.
func TestUntilWhenARollRests(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	rests := &store.Timer{Start: at, For: store.Duration(time.Hour)}
	for name, c := range map[string]struct {
		roll store.Rollout
		want time.Time
	}{
		"it does not rest":         {store.Rollout{GraceUntil: at}, time.Time{}},
		"no grace":                 {store.Rollout{Rests: rests}, at.Add(time.Hour)},
		"a grace that ends before": {store.Rollout{Rests: rests, GraceUntil: at.Add(time.Minute)}, at.Add(time.Hour)},
		"a grace that ends after":  {store.Rollout{Rests: rests, GraceUntil: at.Add(2 * time.Hour)}, at.Add(2 * time.Hour)},
	} {
		if got := c.roll.RestsTo(); !got.Equal(c.want) {
			t.Errorf("%s: it goes on at %s, want %s", name, got, c.want)
		}
	}
}
