package store

import (
	"reflect"
	"testing"
)

// A status of one group does not make the spec of another one forgotten.
func TestGroupSpecsOfSeveralGroups(t *testing.T) {
	var specs GroupSpecs
	read := func(name string, healthy int) *Group {
		g := DefaultGroup()
		g.Name, g.Provider = name, "mem"
		g.Complete()
		got, err := specs.Decode(KV{
			Key: "/status/" + name, Value: Encode(Status{Schema: Schema, Group: name, Accepted: &g, Healthy: healthy}),
		})
		if err != nil || got.Record.Healthy != healthy || got.Record.Accepted.Name != name {
			t.Fatalf("%s: %+v, %v", name, got.Record, err)
		}
		return got.Record.Accepted
	}
	web, api := read("web", 1), read("api", 1)
	for healthy := range 3 {
		if read("web", healthy) != web || read("api", healthy) != api {
			t.Fatal("a spec that has not changed was read again")
		}
	}
}

// Many specs that are in use, in turn, stay shared.
func TestInstanceSpecsInUseAreShared(t *testing.T) {
	var specs InstanceSpecs
	const many = 1_000
	held := make([]uintptr, many)
	for round := range 6 {
		for n := range many {
			vars := reflect.ValueOf(specs.specOf(t, n).Vars).Pointer()
			if round == 0 {
				held[n] = vars
			}
			if vars != held[n] {
				t.Fatalf("round %d: the spec %d was read again", round, n)
			}
		}
	}
}
