package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/leasehold/leasehold/provider/clip"
)

// The limits of a file, so that reading one always ends soon (SEC-5).
const (
	MaxBytes  = 1 << 20
	maxValues = 100_000 // the largest group has fewer than 20,000
	maxDepth  = 50      // of lists and mappings; a group has 6
	maxKey    = 300     // bytes; names of variables and headers have up to 100
)

// Reader reads one file and collects its problems.
type Reader struct {
	File     string // the file's name, for messages
	Problems Problems
	// Places holds the position of each part of a Value, by its path; nil: not needed.
	Places map[string]*yaml.Node

	lines [][]byte // the file's lines
}

// Wrong adds a problem at a node. Without a node it is about the whole file.
func (r *Reader) Wrong(at *yaml.Node, field, format string, args ...any) {
	p := Problem{File: r.File, Field: field, What: fmt.Sprintf(format, args...)}
	if at != nil {
		p.Line, p.Column = at.Line, at.Column
	}
	r.Problems = r.Problems.With(p)
}

// Documents parses a file into the roots of its documents, without empty ones. If there are more
// than most, tooMany is the problem. The error is that the file could not be read.
func (r *Reader) Documents(from io.Reader, most int, tooMany string) ([]*yaml.Node, error) {
	text, err := io.ReadAll(io.LimitReader(from, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.File, err)
	}
	if len(text) > MaxBytes {
		r.Wrong(nil, "", "the file is larger than %d KiB", MaxBytes>>10)
		return nil, nil
	}
	r.lines = bytes.Split(text, []byte("\n"))
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		r.Wrong(nil, "", "%s", err)
		return nil, nil
	}
	var roots []*yaml.Node
	left := maxValues
	for {
		var doc yaml.Node
		err := loader.Load(&doc)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			r.syntax(text, err)
			return nil, nil
		}
		if at, what := beyondBounds(&doc, &left, 0); what != "" {
			r.Wrong(at, "", "%s", what)
			return nil, nil
		}
		root := &doc
		if doc.Kind == yaml.DocumentNode {
			if len(doc.Content) == 0 {
				continue
			}
			root = doc.Content[0]
		}
		if IsNothing(root) {
			continue
		}
		if roots = append(roots, root); len(roots) > most {
			r.Wrong(root, "", "%s", tooMany)
			return nil, nil
		}
	}
}

// beyondBounds returns where a document exceeds the limits, and how; "" if it does not. It
// subtracts the values from left.
func beyondBounds(n *yaml.Node, left *int, depth int) (*yaml.Node, string) {
	if *left--; *left < 0 {
		return n, fmt.Sprintf("more than %d values in one file", maxValues)
	}
	if depth > maxDepth {
		return n, fmt.Sprintf("lists and fields are nested more than %d deep", maxDepth)
	}
	for i, part := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && len(part.Value) > maxKey {
			return part, fmt.Sprintf("a key of %d bytes: the longest allowed has %d", len(part.Value), maxKey)
		}
		if at, what := beyondBounds(part, left, depth+1); what != "" {
			return at, what
		}
	}
	return nil, ""
}

// bareVariable matches ${name} where YAML reads its brace as the beginning of a mapping.
var bareVariable = regexp.MustCompile(`[{\[,:]\s*\$\{`)

func (r *Reader) syntax(text []byte, err error) {
	var bad *yaml.LoadError
	if !errors.As(err, &bad) {
		r.Wrong(nil, "", "not YAML: %s", err)
		return
	}
	what := bad.Message
	lines := bytes.Split(text, []byte("\n"))
	if at := bad.Mark.Line - 1; at >= 0 && at < len(lines) && bareVariable.Match(lines[at]) {
		what += `: between braces or brackets, ${name} needs quotes: "${name}"`
	}
	r.Wrong(&yaml.Node{Line: bad.Mark.Line, Column: bad.Mark.Column}, "", "not YAML: %s", what)
}

// Within returns the place in the file of a line and a column of a text. It returns the text's node
// if line is 0 or the text's lines are not the file's.
func (r *Reader) Within(node *yaml.Node, line, column int) *yaml.Node {
	if line == 0 {
		return node
	}
	if node.Style&yaml.LiteralStyle == 0 {
		if node.Style == 0 && line == 1 && !bytes.ContainsRune([]byte(node.Value), '\n') {
			return &yaml.Node{Line: node.Line, Column: node.Column + column - 1}
		}
		return node
	}
	indent := -1 // indentation of the block
	for i := range strings.Count(node.Value, "\n") + 1 {
		if at := node.Line + i; at < len(r.lines) {
			text := bytes.TrimLeft(r.lines[at], " ")
			if spaces := len(r.lines[at]) - len(text); len(bytes.TrimSpace(text)) > 0 && (indent < 0 || spaces < indent) {
				indent = spaces
			}
		}
	}
	return &yaml.Node{Line: node.Line + line, Column: max(0, indent) + column}
}

const noAliases = "aliases and merge keys are not supported"

// Fields calls field for each key of a mapping that is a plain name and not a duplicate, with its
// value.
func (r *Reader) Fields(path string, mapping *yaml.Node, field func(key, value *yaml.Node)) {
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		switch seen := first[key.Value]; {
		case key.Kind == yaml.AliasNode || key.Tag == "!!merge":
			r.Wrong(key, path, noAliases)
		case key.Kind != yaml.ScalarNode:
			r.Wrong(key, path, "a key must be a name")
		case seen != nil:
			r.Wrong(key, Join(path, key.Value), "is a duplicate (first at line %d)", seen.Line)
		default:
			first[key.Value] = key
			if r.NoAlias(Join(path, key.Value), value) {
				field(key, value)
			}
		}
	}
}

// NoAlias reports whether a value is not an alias. An alias is a problem.
func (r *Reader) NoAlias(path string, value *yaml.Node) bool {
	if value.Kind == yaml.AliasNode {
		r.Wrong(value, path, noAliases)
		return false
	}
	return true
}

// IsNothing reports whether a node is absent or null.
func IsNothing(n *yaml.Node) bool {
	return n == nil || n.Kind == 0 || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// Shown formats a value for a message.
func Shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!str":
		return strconv.Quote(clip.Marked(n.Value, maxValue))
	default:
		return clip.Marked(n.Value, maxValue)
	}
}

// Join returns the path of a field within another.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
