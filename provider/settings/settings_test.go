package settings_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/settings"
)

const schema = `{"type": "object", "additionalProperties": false, "required": ["image"], "properties": {
	"image": {"type": "string"},
	"config": {"type": "object", "description": "names that begin with user.", "additionalProperties": false,
		"patternProperties": {"^user[.]": {}, "^user[.]ours": false}},
	"disks": {"type": "array", "items": {"type": "object", "properties": {"gib": {"type": "integer", "minimum": 1}}}}}}`

// proves PROV-3
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		schema, values string
		says           []string // nil: nothing is wrong
	}{
		{schema, `{"image": "debian", "disks": [{"gib": 10}]}`, nil},
		{schema, `{"image": "debian", "disks": [{"gib": 10}, {"gib": 0.5}]}`, []string{"template.settings.disks[1].gib"}},
		{schema, `{"image": 5, "disk": 1}`, []string{"template.settings.image", "there is no setting disk; the settings are config, disks, image"}},
		{schema, `{"image": "a", "config": {"user.a": 1}}`, nil},
		{schema, `{"image": "a", "config": {"raw": 1, "user.ours": 1}}`, []string{
			"template.settings.config: additional properties 'raw' not allowed: it has names that begin with user.",
			"template.settings.config.user.ours: may not be set: it has names",
		}},
		{schema, `{}`, []string{"image"}},
		{schema, ``, []string{"image"}},
		{``, ``, nil},
		{``, `{"image": "debian"}`, []string{"there is no setting image; the provider has none"}},
	} {
		var values map[string]any
		if test.values != "" {
			if err := json.Unmarshal([]byte(test.values), &values); err != nil {
				t.Fatal(err)
			}
		}
		err := settings.Check(json.RawMessage(test.schema), values)
		if (err != nil) != (test.says != nil) || err != nil && !errors.Is(err, provider.ErrInvalid) {
			t.Errorf("%s: %v", test.values, err)
			continue
		}
		for _, part := range test.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", test.values, err, part)
			}
		}
	}
}

// A schema is a provider's own text: it makes the coordinator fetch nothing (SEC-7).
func TestASchemaRefersToItselfAlone(t *testing.T) {
	for _, ref := range []string{"file:///etc/passwd", "http://127.0.0.1:1/x.json", "other.json"} {
		if _, err := settings.Compile(json.RawMessage(`{"$ref": "` + ref + `"}`)); err == nil ||
			!strings.Contains(err.Error(), "itself alone") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := settings.Compile(json.RawMessage(`{"type": 5}`)); err == nil {
		t.Error("a schema that is none is accepted")
	}
}

// proves PROV-3
func TestDecode(t *testing.T) {
	type own struct {
		Image string   `json:"image"`
		Zones []string `json:"zones"`
	}
	const schema = `{"type": "object", "properties": {
		"image": {"type": "string"}, "zones": {"type": "array"}, "forgotten": {}}}`
	s := own{Image: "default", Zones: []string{"a"}}
	err := settings.Decode(json.RawMessage(schema), map[string]any{"image": "mine"}, &s)
	if err != nil || s.Image != "mine" || len(s.Zones) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := settings.Decode(json.RawMessage(schema), nil, &s); err != nil || s.Image != "mine" {
		t.Errorf("no settings: %+v, %v", s, err)
	}
	err = settings.Decode(json.RawMessage(schema), map[string]any{"image": 1}, &s)
	if !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("what the schema refuses: %v", err)
	}
	if err := settings.Decode(json.RawMessage(schema), map[string]any{"forgotten": 1}, &s); err == nil {
		t.Error("a setting without a field is dropped")
	}
}
