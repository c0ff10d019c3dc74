// Package settings checks a template's settings against the JSON Schema of their provider (PROV-3).
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/provider"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// where is the name of the schema, for its own references: nothing is fetched.
const where = "settings.json"

// Compile checks a schema. No schema is one that allows no settings.
func Compile(schema json.RawMessage) (*jsonschema.Schema, error) {
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type": "object", "additionalProperties": false}`)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("read the schema of the settings: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(where, doc); err != nil {
		return nil, fmt.Errorf("read the schema of the settings: %w", err)
	}
	compiled, err := c.Compile(where)
	if err != nil {
		return nil, fmt.Errorf("read the schema of the settings: %w", err)
	}
	return compiled, nil
}

// nothing loads no schema: a reference to a file or a URL is an error.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a schema may refer to itself alone", url)
}

// Problem is something wrong with a setting.
type Problem struct {
	Path string // as a group file has it: template.settings.disks[1].size
	What string
}

// Check returns what is wrong with settings, each as an ErrInvalid that names its path; nil if
// nothing is.
func Check(schema json.RawMessage, values map[string]any) error {
	problems, err := Problems(schema, values)
	errs := []error{err}
	for _, p := range problems {
		errs = append(errs, &provider.Error{Kind: provider.Invalid, Scope: p.Path, Message: p.What})
	}
	return errors.Join(errs...)
}

// Decode checks settings as Check does and then decodes them into a struct, by the names in its
// tags. What the settings do not set keeps its value in the struct: the provider's default.
func Decode(schema json.RawMessage, values map[string]any, into any) error {
	if err := Check(schema, values); err != nil || values == nil {
		return err
	}
	text, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	// A schema that allows what the struct has not is a mistake of the provider's.
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	return nil
}

// Problems returns what is wrong with settings, in order of path.
func Problems(schema json.RawMessage, values map[string]any) ([]Problem, error) {
	compiled, err := Compile(schema)
	if err != nil {
		return nil, err
	}
	// The schema's reader wants JSON's own types.
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	if values == nil {
		text = []byte("{}")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	var wrong *jsonschema.ValidationError
	if err := compiled.Validate(doc); !errors.As(err, &wrong) {
		return nil, err
	}
	var problems []Problem
	english := message.NewPrinter(language.English)
	for _, leaf := range leaves(wrong) {
		at, what := leaf.InstanceLocation, leaf.ErrorKind.LocalizedString(english)
		switch k := leaf.ErrorKind.(type) {
		case *kind.AdditionalProperties:
			if len(at) == 0 {
				what = unknownSettings(k.Properties, compiled)
			} else {
				what += described(compiled, at)
			}
		case *kind.FalseSchema:
			what = "may not be set" + described(compiled, at[:max(0, len(at)-1)])
		}
		problems = append(problems, Problem{pathOf(at), what})
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return problems, nil
}

// unknownSettings says which settings a provider does not have, and which it has.
func unknownSettings(names []string, schema *jsonschema.Schema) string {
	slices.Sort(names)
	text := "there is no setting " + strings.Join(names, ", ")
	if len(schema.Properties) == 0 {
		return text + "; the provider has none"
	}
	return text + "; the settings are " + strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", ")
}

// described returns the description of an object, which says what it may have.
func described(schema *jsonschema.Schema, at []string) string {
	for _, part := range at {
		if schema = schema.Properties[part]; schema == nil {
			return ""
		}
	}
	if schema.Description == "" {
		return ""
	}
	return ": it has " + schema.Description
}

// pathOf is a place in the settings as a group file has it.
func pathOf(location []string) string {
	path := "template.settings"
	for _, part := range location {
		if _, err := strconv.Atoi(part); err == nil {
			path += "[" + part + "]"
		} else {
			path += "." + part
		}
	}
	return path
}

// leaves are the causes of an error that have no further cause.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}
