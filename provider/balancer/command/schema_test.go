package command_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leasehold/leasehold/provider/balancer/command"
)

// valid checks a JSON text against a part of the protocol's schema.
func valid(t *testing.T, part, text string) error {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(command.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("protocol.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("protocol.json" + part)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return compiled.Validate(value)
}

// The page and the schema agree.
//
// proves PROV-2
func TestThePageOfTheProtocol(t *testing.T) {
	page, err := os.ReadFile("../../../docs/balancers/exec.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Split(string(page), "```json\n")[1:]
	if len(shown) != 2 {
		t.Fatalf("the page shows %d blocks", len(shown))
	}
	request, _, _ := strings.Cut(shown[0], "```")
	answers, _, _ := strings.Cut(shown[1], "```")
	for _, text := range append(strings.Split(strings.TrimSpace(answers), "\n"), request) {
		if err := valid(t, "", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for part, text := range map[string]string{
		"#/$defs/description": named,
		"#/$defs/listing": `{"complete": true, "targets": [{"name": "a", "foreign": 1, "members": [{"instance": "i",
			"address": "10.0.0.1", "port": 80, "state": "ready", "health": "up"}]}, {"name": "b", "error": "it burns"}]}`,
	} {
		if err := valid(t, part, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if valid(t, "", `{"result": {}, "error": {"code": "capacity"}}`) == nil ||
		valid(t, "#/$defs/listing", `{"targets": []}`) == nil {
		t.Error("what is wrong is taken")
	}
}
