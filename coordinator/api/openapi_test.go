package api

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// proves WEB-4: the description has every field of the table that the reference is made from, each
// with a schema of its type, and every operation that is served
func TestOpenAPIIsTheTable(t *testing.T) {
	for _, f := range store.Fields {
		if _, known := typeOf(f.Type); !known {
			t.Errorf("%s: the type %q has no schema: add it to types", f.Path, f.Type)
		}
		at := groupSchema()
		for _, step := range strings.Split(f.Path, ".") {
			name, many := strings.CutSuffix(step, "[]")
			properties, _ := at["properties"].(object)
			next, there := properties[name].(object)
			if !there {
				t.Fatalf("%s: is not in the schema", f.Path)
			}
			if at = next; many {
				at = next["items"].(object)
			}
		}
		if about, _ := at["description"].(string); !strings.Contains(about, strings.TrimSpace(f.Doc)) {
			t.Errorf("%s: its description is %q", f.Path, about)
		}
	}
	h, end := New(Deps{})
	defer end()
	for path, operations := range OpenAPI()["paths"].(object) {
		for method := range operations.(object) {
			r := request(strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path))
			if _, pattern := h.mux.Handler(r); pattern != strings.ToUpper(method)+" "+path {
				t.Errorf("%s %s is described, and %q serves it", method, path, pattern)
			}
		}
	}
	if _, err := json.Marshal(OpenAPI()); err != nil {
		t.Error(err)
	}
}

// An answer never has a closed list of values: an older client, made from this description, can
// read the values that a later release adds. Parameters may have one.
//
// proves WEB-4
func TestAnswersHaveNoClosedLists(t *testing.T) {
	kinds := 0
	var look func(at string, x any)
	look = func(at string, x any) {
		switch x := x.(type) {
		case object:
			if _, closed := x["enum"]; closed {
				t.Errorf("%s: a closed list", at)
			}
			if reflect.DeepEqual(x["examples"], story.RemedyKinds) {
				kinds++
			}
			for name, below := range x {
				look(at+"."+name, below)
			}
		case []object:
			for _, below := range x {
				look(at, below)
			}
		}
	}
	for path, operations := range OpenAPI()["paths"].(object) {
		for method, operation := range operations.(object) {
			look(method+" "+path, operation.(object)["responses"])
		}
	}
	for name, schema := range OpenAPI()["components"].(object)["schemas"].(object) {
		if name != "Group" { // what a client sends: a spec
			look(name, schema)
		}
	}
	if kinds == 0 {
		t.Error("no answer documents the kinds of remedies")
	}
}

// A spec as GET answers it fits the schema, and so does a document of each kind.
func TestDocumentsFitTheirSchemas(t *testing.T) {
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = "web", "process", 3
	g.Workload.Run = []string{"./web"}
	g.Checks = []store.Check{{HTTP: &store.HTTPCheck{Port: "8080"}}}
	g.Files = []store.File{{Path: "/etc/x", Text: new(string)}}
	g.Complete()
	health := 50
	for name, document := range map[string]any{
		"GroupFile": fileOf(g), "Row": Row{Name: "web", Health: &health},
		"Problem": Problem{Status: 404, Remedies: story.Run("leasehold status")},
		"Report":  review.Of(review.Input{}),
		"Result":  Result{Revision: 3, Plan: json.RawMessage("{}")}, "Events": Events{Entries: []Event{{Name: "x"}}},
		"Shard": Shard{Groups: []Row{{}}},
		"Story": Story{Now: &Instance{}, Load: []view.Load{}, Blocked: []Blocked{{}}, Events: []Event{{}}},
	} {
		c := jsonschema.NewCompiler()
		text, err := json.Marshal(OpenAPI())
		if err != nil {
			t.Fatal(err)
		}
		all, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err == nil {
			err = c.AddResource("https://leasehold/openapi.json", all)
		}
		if err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile("https://leasehold/openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err = json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err == nil {
			err = schema.Validate(value)
		}
		if name == "Shard" { // nil problems are null here, and never in an answer
			continue
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// The page about the API names every path.
func TestPageNamesEveryPath(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for path := range paths() {
		path = strings.TrimPrefix(path, Root)
		path = strings.NewReplacer("{group}", "GROUP", "{instance}", "INSTANCE", "{action}", "ACTION",
			"{zone}", "ZONE").Replace(path)
		if !strings.Contains(string(text), "`"+path+"`") {
			t.Errorf("docs/api.md lacks %s", path)
		}
	}
}
