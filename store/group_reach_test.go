package store_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// How far a change reaches is what the records and the template's hash make of it: an instance
// keeps what is in its record, and a roll comes for what is in the hash.
//
// proves ROLL-1
func TestReachFollowsRecordAndTemplate(t *testing.T) {
	recorded := map[string]store.Reach{}
	empty := store.InstanceSpec{}.TemplateHash()
	spec := reflect.TypeFor[store.InstanceSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		var changed store.InstanceSpec
		setSomething(t, reflect.ValueOf(&changed).Elem().Field(i))
		reach := store.ReachLater
		if changed.TemplateHash() != empty {
			reach = store.ReachByRoll
		}
		if name == "spot" {
			recorded["spot.enabled"] = reach
			continue
		}
		if name != "notices" {
			recorded[name] = reach
			continue
		}
		// In a group they stand beside what else there is to say of spot machines.
		part := reflect.TypeFor[store.NoticeSpec]()
		for i := range part.NumField() {
			below, _, _ := strings.Cut(part.Field(i).Tag.Get("json"), ",")
			recorded["spot."+below] = reach
		}
	}
	recorded["busy.timeout"] = store.ReachAtOnce // no part of what the agent is asked
	known := map[string]bool{"busy.timeout": true}
	for _, f := range store.Fields {
		field, _, _ := strings.Cut(strings.Replace(f.Path, "[]", "", 1), ".")
		if _, own := recorded[f.Path]; own {
			field = f.Path
		}
		want, kept := recorded[field]
		if !kept {
			want = store.ReachAtOnce
		}
		if known[field] = true; store.ReachOf(f.Path) != want {
			t.Errorf("%s reaches instances %q, and by record and hash it is %q", f.Path, store.ReachOf(f.Path), want)
		}
	}
	for field := range recorded {
		if !known[field] {
			t.Errorf("an instance's record has %s, and the table of fields does not", field)
		}
	}
	if got := store.ReachOf("workload.run[2]"); got != store.ReachByRoll {
		t.Errorf("a part of a list reaches instances %q", got)
	}
}

// setSomething makes a value other than zero.
func setSomething(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "y"}))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setSomething(t, v.Index(0))
	case reflect.Struct:
		setSomething(t, v.Field(0))
	default:
		t.Fatalf("nothing is known to set a %s to", v.Kind())
	}
}
