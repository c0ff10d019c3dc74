package groupfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"go.yaml.in/yaml/v4"
)

// Write returns the group as a file that Read accepts: every field that is set, without those that
// no file can set.
func Write(g store.Group) ([]byte, error) {
	g.OperatorState = store.OperatorState{}
	return write(g.Name, store.Encode(g))
}

// WriteOverride returns the overrides of a static group as a file that Judge accepts.
func WriteOverride(o store.Override) ([]byte, error) {
	o.OperatorState = store.OperatorState{}
	return write(o.Name, store.Encode(o))
}

func write(name string, record []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Load(record, &node); err != nil {
		return nil, fmt.Errorf("write group %s: %w", name, err)
	}
	root := node.Content[0]
	kept := root.Content[:0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value == "schema" || value.Kind == yaml.MappingNode && len(value.Content) == 0 {
			continue
		}
		kept = append(kept, key, value)
	}
	root.Content = kept
	block(root)
	var b bytes.Buffer
	dumper, err := yaml.NewDumper(&b, yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write group %s: %w", name, err)
	}
	if err := dumper.Dump(&node); err != nil {
		return nil, fmt.Errorf("write group %s: %w", name, err)
	}
	if err := dumper.Close(); err != nil {
		return nil, fmt.Errorf("write group %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// block replaces JSON's style by block mappings, multi-line texts in block style, and other lists
// on one line.
func block(n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && hasLines(n):
		n.Style = yaml.LiteralStyle
	case n.Kind == yaml.ScalarNode, n.Kind == yaml.SequenceNode && hasLines(n):
		n.Style = 0
	case n.Kind == yaml.SequenceNode || len(n.Content) == 0:
		n.Style = yaml.FlowStyle
	default:
		n.Style = 0
	}
	for _, c := range n.Content {
		block(c)
	}
}

// hasLines reports whether there is a text of several lines in a node.
func hasLines(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "\n") || slices.ContainsFunc(n.Content, hasLines)
}

// ReadStored reads the spec in groups/<name> for changing it. Unlike store.ReadGroup it accepts a
// spec that is not valid, and returns its flags that commands set. A newer schema stays an error.
func ReadStored(value []byte) (g store.Group, valid error, err error) {
	g, valid = store.ReadGroup(value)
	if valid == nil {
		return g, nil, nil
	}
	var head struct {
		Schema int    `json:"schema"`
		Name   string `json:"name"`
		store.OperatorState
	}
	if json.Unmarshal(value, &head) == nil {
		if head.Schema > store.Schema {
			return store.Group{}, valid, valid
		}
		g.OperatorState = head.OperatorState
	}
	return g, valid, nil
}
