package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// Override is what groups/<name> may say of a group that is defined in static/<name>: REC-6. What
// is in force is the merge.
type Override struct {
	Schema   int               `json:"schema"`
	Name     string            `json:"name"`
	Size     *int              `json:"size,omitempty"`
	Template OverrideTemplate  `json:"template,omitzero"`
	Vars     map[string]string `json:"vars,omitempty"` // added to the static group's, or in their place
	OperatorState
}

// OverrideTemplate is the part of a template that may be overridden.
type OverrideTemplate struct {
	InstanceType *string `json:"instance_type,omitempty"`
}

// ReadOverride reads an override. Anything that a static group's override may not say is an error.
func ReadOverride(value []byte) (Override, error) {
	var o Override
	if err := checkSchema(value); err != nil {
		return o, err
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return o,
			fmt.Errorf("%w: the group is static, and only size, template.instance_type and vars can be set beside it (REC-6)",
				err)
	}
	return o, nil
}

// Over returns the static group with the override on it.
func (o Override) Over(static Group) Group {
	g := static
	if o.Size != nil {
		g.Size = *o.Size
	}
	if o.Template.InstanceType != nil {
		g.Template.InstanceType, g.Template.InstanceTypes = *o.Template.InstanceType, nil
	}
	if len(o.Vars) > 0 {
		g.Vars = maps.Clone(static.Vars)
		if g.Vars == nil {
			g.Vars = map[string]string{}
		}
		maps.Copy(g.Vars, o.Vars)
	}
	deleting := g.Deleting || o.Deleting
	g.OperatorState = o.OperatorState
	g.Deleting = deleting
	return g
}

// ReadStatic reads a spec in static/ as ReadGroup does, but does not check placeholders: an
// override may fill them.
func ReadStatic(value []byte) (Group, error) {
	g, err := decodeGroup(value)
	if err != nil {
		return g, err
	}
	return g, errors.Join(g.fieldErrors()...)
}

// ReadInForce reads the spec in force from the values of a group in static/ and groups/; nil where
// there is no such key.
func ReadInForce(static, dynamic []byte) (Group, error) {
	if static == nil {
		return ReadGroup(dynamic)
	}
	g, err := ReadStatic(static)
	if err != nil {
		return g, fmt.Errorf("static: %w", err)
	}
	if dynamic == nil {
		return g, g.Validate()
	}
	o, err := ReadOverride(dynamic)
	if err != nil {
		return g, err
	}
	if o.Name != g.Name {
		return g, fmt.Errorf("the override's name is %q, the static group's %q", o.Name, g.Name)
	}
	g = o.Over(g)
	return g, g.Validate()
}

// Beside is what was set beside a static group when its spec was accepted last.
type Beside struct {
	Revision Revision `json:"revision"` // of groups/<name>
	Override Override `json:"override"`
}

// LostBeside returns the override of a static group that has vanished, so that it stays in force
// (SAFE-10); nil if there is none. An operator who wants the file alone writes an override that
// sets nothing. dynamic is the revision of groups/<name>.
func (s Status) LostBeside(static Group, dynamic Revision) *Beside {
	if dynamic != 0 || s.Accepted == nil || static.Deleting {
		return nil
	}
	return s.Beside
}

// Missing describes that it has vanished, and what to do.
func (b Beside) Missing(inForce Group) string {
	return fmt.Sprintf("what was set beside the static group at revision %d is missing from groups/%s; "+
		"leasehold group scale %s %d has it back, leasehold group apply -f FILE sets something else",
		b.Revision, inForce.Name, inForce.Name, inForce.Size)
}
