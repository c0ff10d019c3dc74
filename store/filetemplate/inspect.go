package filetemplate

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"text/template"
	"text/template/parse"
)

// maxQuoted is the longest text that quote takes: a result that is quoted again and again grows.
const maxQuoted = 4096

// functions are those that a template may use beside allowed.
var functions = template.FuncMap{
	"host": func(address string) string {
		if host, _, err := net.SplitHostPort(address); err == nil {
			return host
		}
		return address
	},
	"port": func(address string) (string, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return "", fmt.Errorf("%q has no port", address)
		}
		return port, nil
	},
	"quote": func(text string) (string, error) {
		if len(text) > maxQuoted {
			return "", fmt.Errorf("a text of %d bytes is too long to be quoted", len(text))
		}
		return strconv.Quote(text), nil
	},
}

// allowed are the functions of text/template that neither reach outside nor make large texts:
// printf and its like can make a text of any length from a short one.
var allowed = []string{
	"and", "or", "not", "len", "index", "slice", "eq", "ne", "lt", "le", "gt", "ge", "break",
	"continue",
}

// inspect looks at every node below one: it refuses what is not allowed, notes names, and has loops
// counted.
func (t *Template) inspect(node parse.Node) *Error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, part := range n.Nodes {
			if err := t.inspect(part); err != nil {
				return err
			}
		}
	case *parse.ActionNode:
		return t.inspectPipe(n.Pipe)
	case *parse.IfNode:
		return t.inspectBranch(&n.BranchNode)
	case *parse.WithNode:
		return t.inspectBranch(&n.BranchNode)
	case *parse.RangeNode:
		count := round[:min(len(n.String()), len(round))]
		err := t.inspectBranch(&n.BranchNode)
		n.List.Nodes = slices.Insert(n.List.Nodes, 0,
			parse.Node(&parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos, Text: count}))
		return err
	case *parse.TemplateNode:
		return t.errorAt(n.Pos, "template is not supported: write what it holds where it is used")
	}
	return nil
}

func (t *Template) inspectBranch(n *parse.BranchNode) *Error {
	if err := t.inspectPipe(n.Pipe); err != nil {
		return err
	}
	if err := t.inspect(n.List); err != nil {
		return err
	}
	if n.ElseList != nil {
		return t.inspect(n.ElseList)
	}
	return nil
}

func (t *Template) inspectPipe(pipe *parse.PipeNode) *Error {
	if pipe == nil {
		return nil
	}
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			if err := t.inspectArg(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Template) inspectArg(arg parse.Node) *Error {
	switch n := arg.(type) {
	case *parse.IdentifierNode:
		if _, own := functions[n.Ident]; !own && !slices.Contains(allowed, n.Ident) {
			return t.errorAt(n.Pos, fmt.Sprintf("function %s is not supported", n.Ident))
		}
	case *parse.PipeNode:
		return t.inspectPipe(n)
	case *parse.FieldNode:
		t.note(n.Ident, n.Pos)
	case *parse.VariableNode:
		t.note(n.Ident[1:], n.Pos)
	case *parse.ChainNode:
		t.note(n.Field, n.Pos)
		return t.inspectArg(n.Node)
	}
	return nil
}

// note notes where a name is taken from. In a loop .Vars is a field of something else, which
// rendering finds.
func (t *Template) note(path []string, at parse.Pos) {
	for i, part := range path {
		if part != "Vars" && part != "Facts" && part != "Peers" {
			continue
		}
		n := name{of: part, at: at}
		if part != "Peers" && i+1 < len(path) {
			n.name = path[i+1]
		}
		t.names = append(t.names, n)
	}
}
