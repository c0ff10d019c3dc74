package store_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// staticWeb returns a group as config apply stores it.
func staticWeb() store.Group {
	g := web()
	g.Size = 3
	g.Template.InstanceType = "small"
	g.Vars = map[string]string{"greeting": "hello", "colour": "red"}
	return g
}

// What is in force of a static group is the merge with its override.
//
// proves REC-6
func TestTheOverrideIsLaidOverTheStaticGroup(t *testing.T) {
	for _, c := range []struct {
		name, override string
		change         func(g *store.Group)
	}{
		{"none", "", func(*store.Group) {}},
		{"empty", `{"schema": 1, "name": "web"}`, func(*store.Group) {}},
		{"size", `{"schema": 1, "name": "web", "size": 8}`, func(g *store.Group) { g.Size = 8 }},
		{"size 0", `{"schema": 1, "name": "web", "size": 0}`, func(g *store.Group) { g.Size = 0 }},
		{
			"instance type", `{"schema": 1, "name": "web", "template": {"instance_type": "large"}}`,
			func(g *store.Group) { g.Template.InstanceType = "large" },
		},
		{
			"no instance type", `{"schema": 1, "name": "web", "template": {"instance_type": ""}}`,
			func(g *store.Group) { g.Template.InstanceType = "" },
		},
		{"vars", `{"schema": 1, "name": "web", "vars": {"colour": "blue", "shape": "round"}}`, func(g *store.Group) {
			g.Vars = map[string]string{"greeting": "hello", "colour": "blue", "shape": "round"}
		}},
		{
			"what commands set",
			`{"schema": 1, "name": "web", "paused": true, "stopped": true, "relaunch": {"number": 2, "action": "restart"}}`,
			func(g *store.Group) {
				g.Paused, g.Stopped, g.Relaunch = true, true, store.Relaunch{Number: 2, Action: store.ActionRestart}
			},
		},
		{"deletion", `{"schema": 1, "name": "web", "deleting": true}`, func(g *store.Group) { g.Deleting = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			static, want := staticWeb(), staticWeb()
			c.change(&want)
			var dynamic []byte
			if c.override != "" {
				dynamic = []byte(c.override)
			}
			got, err := store.ReadInForce(store.Encode(static), dynamic)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
		})
	}
}

// Laying an override over a group leaves the group as it was.
//
// proves REC-6
func TestTheStaticGroupIsNotChangedByItsOverride(t *testing.T) {
	static := staticWeb()
	store.Override{Vars: map[string]string{"colour": "blue"}}.Over(static)
	if static.Vars["colour"] != "red" {
		t.Errorf("the static group has %v", static.Vars)
	}
	bare := web()
	if g := (store.Override{Vars: map[string]string{"a": "b"}}).Over(bare); g.Vars["a"] != "b" || bare.Vars != nil {
		t.Errorf("got %v, and the static group has %v", g.Vars, bare.Vars)
	}
}

// A static group that is to be deleted is, whatever its override says.
//
// proves REC-7
func TestAnOverrideDoesNotEndADeletion(t *testing.T) {
	static := staticWeb()
	static.Deleting, static.Paused = true, true
	g := store.Override{}.Over(static)
	if !g.Deleting {
		t.Error("it is no longer deleted")
	}
	if g.Paused {
		t.Error("a pause is not the static group's to say, where there is an override")
	}
}

// Whatever else an override says is refused, and so is a merge that no group may be.
//
// proves REC-6
func TestAnOverrideThatSaysMoreIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ override, says string }{
		"a field of a group":    {`{"schema": 1, "name": "web", "provider": "qemu"}`, `"provider"`},
		"a field of a template": {`{"schema": 1, "name": "web", "template": {"zones": ["a"]}}`, `"zones"`},
		"no field at all":       {`{"schema": 1, "name": "web", "sise": 3}`, `"sise"`},
		"a whole group":         {string(store.Encode(web())), "the group is static"},
		"another name": {
			`{"schema": 1, "name": "api"}`,
			`the override's name is "api", the static group's "web"`,
		},
		"no name":                {`{"schema": 1, "size": 3}`, `the override's name is ""`},
		"a size that none has":   {`{"schema": 1, "name": "web", "size": -1}`, "size: -1: must be 0 to 100000"},
		"a variable's bad name":  {`{"schema": 1, "name": "web", "vars": {"a.b": ""}}`, "vars: "},
		"no JSON":                {`web`, "invalid character"},
		"a value of wrong types": {`{"schema": 1, "name": "web", "size": "3"}`, "size"},
	} {
		if _, err := store.ReadInForce(store.Encode(staticWeb()), []byte(c.override)); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
		}
	}
	if _, err := store.ReadInForce(store.Encode(staticWeb()), []byte(`{"schema": 2, "name": "web"}`)); !errors.Is(err,
		store.ErrSchema) {
		t.Errorf("a newer schema: %v", err)
	}
	if _, err := store.ReadInForce([]byte(`{"schema": 1, "name": "web"}`), nil); err == nil ||
		!strings.HasPrefix(err.Error(), "static: ") {
		t.Errorf("a static group that cannot be: %v", err)
	}
}

// Without a static group, groups/ has the whole spec.
func TestADynamicGroupIsReadAsItIs(t *testing.T) {
	g, err := store.ReadInForce(nil, store.Encode(staticWeb()))
	if err != nil || !reflect.DeepEqual(g, staticWeb()) {
		t.Errorf("got %+v, %v", g, err)
	}
}
