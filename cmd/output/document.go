package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// JSON writes one indented document. A json.RawMessage in it, such as a stored record, keeps its
// fields and their order.
func JSON(w io.Writer, document any) error {
	raw, err := encode(document)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return fmt.Errorf("indent json: %w", err)
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// Document prints a result as --output asks for it: as JSON or YAML. In other formats it prints
// nothing, and reports that.
func Document(w io.Writer, format string, document any) (done bool, err error) {
	switch format {
	case "json":
		return true, JSON(w, document)
	case "yaml":
		return true, YAML(w, document)
	default:
		return false, nil
	}
}

// JSONLine writes one document as one line, for streams of documents.
func JSONLine(w io.Writer, document any) error {
	raw, err := encode(document)
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// YAML writes one document, with the fields of its JSON form in the same order.
func YAML(w io.Writer, document any) error {
	raw, err := encode(document)
	if err != nil {
		return err
	}
	text, err := YAMLOf(raw)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// YAMLOf converts one JSON document to YAML. JSON is YAML already: only its style changes.
func YAMLOf(raw []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Load(raw, &node); err != nil {
		return nil, fmt.Errorf("turn json into yaml: %w", err)
	}
	plain(&node)
	text, err := yaml.Dump(&node, yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write yaml: %w", err)
	}
	return text, nil
}

// plain removes JSON's quotes and brackets. The writer quotes what would otherwise read as another
// type, because the tag says that it is a string.
func plain(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}

func encode(document any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document); err != nil {
		return nil, fmt.Errorf("write json: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
