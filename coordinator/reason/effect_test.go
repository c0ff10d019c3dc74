package reason

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// effectKinds are the constants in the source of package store.
func effectKinds(t *testing.T) (all []store.EffectKind) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../store/record_effect.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, store.EffectKind(text))
		}
		return true
	})
	return all
}

// TestEffects renders every kind of effect, and reads it back as it was written.
func TestEffects(t *testing.T) {
	kinds, seen := effectKinds(t), map[string]store.EffectKind{}
	if len(kinds) < 100 {
		t.Fatalf("%d kinds", len(kinds))
	}
	for _, kind := range kinds {
		e := store.Effect{
			Kind: kind, Name: "NAME", Names: []string{"lb"}, Instance: "INSTANCE", Zone: "ZONE", Count: 2, Limit: 3,
			For: 5e9, Text: "TEXT",
		}
		text := Effect(e)
		if same, ok := seen[text]; ok || text == "" || effects[kind] == "" && text == string(kind) {
			t.Errorf("%s: %q (as %s)", kind, text, same)
		}
		seen[text] = kind
		written, err := json.Marshal(store.JournalEntry{Effect: e})
		var back store.JournalEntry
		if err != nil || json.Unmarshal(written, &back) != nil || !reflect.DeepEqual(back.Effect, e) {
			t.Errorf("%s comes back as %+v (%v)", kind, back.Effect, err)
		}
	}
	if text, err := json.Marshal(store.JournalEntry{}); err != nil || strings.Contains(string(text), "effect") {
		t.Errorf("an empty effect is written: %s (%v)", text, err)
	}
	two := store.Effect{
		Kind: store.EffectDeleting, Then: store.SlotEffect{Kind: store.EffectReplaced, Instance: "web-1-b"},
	}
	if text := Effect(two); text != "deleting; replacement web-1-b requested" {
		t.Errorf("got %q", text)
	}
	if text := Effect(FoldedEffect(two, false)); text != "deleting; replacement … requested" ||
		two.Then.Instance != "web-1-b" {
		t.Errorf("got %q of %+v", text, two.Then)
	}
	for want, e := range map[string]store.Effect{
		"slot 3 is given up: 4 failures": {Kind: store.EffectSlotWaits, Count: 3, Text: "4 failures", For: 5e9},
		"slot 3 flaps":                   {Kind: store.EffectSlotWaits, Count: 3},
		"slot 3 flaps and waits 5s":      {Kind: store.EffectSlotWaits, Count: 3, For: 5e9},
		"replacement requested":          {Kind: store.EffectReplaced},
		"protected":                      {Kind: store.EffectProtected, Name: store.ProtectRemoval},
		"protected, also from healing for 5s": {
			Kind: store.EffectProtected, Name: store.ProtectHeal, For: 5e9,
		},
		"joins load balancers a, b": {Kind: store.EffectJoins, Names: []string{"a", "b"}},
		"of_tomorrow":               {Kind: "of_tomorrow"},
	} {
		if text := Effect(e); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}
