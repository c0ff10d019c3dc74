package filetemplate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// MaxBytes is how large a file may be.
const MaxBytes = 256 << 10

// maxSteps bounds the work of rendering: each value that is written is a step, and each round of a
// loop takes as many as the loop has bytes. That is far from what a list of ten thousand peers
// takes, and done within a second.
const maxSteps = 20_000_000

// Data is what a template is rendered from.
type Data struct {
	Vars  map[string]string
	Facts map[string]any
	Peers []Peer
}

// Peer is a healthy instance of the group.
type Peer struct {
	Instance string
	Slot     int // -1 for an instance on demand
	Zone     string
	Address  string // as the provider says: a host, or HOST:PORT
}

// Facts are the names of the facts that an instance has. The address is known once its machine is
// made.
var Facts = []string{"address", "group", "instance", "slot", "zone"}

// Error is what is wrong with a template, and where in it. Line and Column count from 1.
type Error struct {
	Line, Column int
	What         string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.What)
}

// Template is one that was parsed. It can be rendered by several goroutines at a time.
type Template struct {
	text  string
	t     *template.Template
	names []name
}

// name is a name that a template takes from .Vars or .Facts.
type name struct {
	of, name string
	at       parse.Pos
}

// Parse parses a template. The error is an *Error.
func Parse(text string) (*Template, error) {
	t, err := template.New("file").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, readError(err)
	}
	out := &Template{text: text, t: t}
	if t.Tree == nil || t.Root == nil { // a text of nothing
		return out, nil
	}
	for _, other := range t.Templates() {
		if other.Name() != t.Name() {
			return nil, out.errorAt(0, "define and block are not supported: write what they hold where it is used")
		}
	}
	if err := out.inspect(t.Root); err != nil {
		return nil, err
	}
	return out, nil
}

// UsesPeers reports whether the result depends on .Peers.
func (t *Template) UsesPeers() bool { return t.uses("Peers") }

// UsesFacts reports whether the result depends on .Facts, so that it differs from instance to
// instance.
func (t *Template) UsesFacts() bool { return t.uses("Facts") }

// UsesVar reports whether the result may depend on a variable. A template that uses .Vars as a
// whole may depend on all of them.
func (t *Template) UsesVar(variable string) bool {
	return slices.ContainsFunc(t.names, func(n name) bool {
		return n.of == "Vars" && (n.name == "" || n.name == variable)
	})
}

func (t *Template) uses(part string) bool {
	return slices.ContainsFunc(t.names, func(n name) bool { return n.of == part })
}

// Render renders the template. An error that comes from the template is an *Error.
func (t *Template) Render(d Data) ([]byte, error) {
	out := bounded{left: MaxBytes, steps: maxSteps}
	if err := t.t.Execute(&out, d); err != nil {
		return nil, readError(err)
	}
	return out.text.Bytes(), nil
}

// Check renders the template with made-up facts and peers, and looks whether every variable exists.
// The error is an *Error.
func (t *Template) Check(vars map[string]string, peers int) error {
	known := map[string][]string{"Vars": slices.Sorted(maps.Keys(vars)), "Facts": Facts}
	for _, n := range t.names {
		if n.name == "" || slices.Contains(known[n.of], n.name) {
			continue
		}
		return t.errorAt(n.at, fmt.Sprintf("there is no .%s.%s, there is %s", n.of, n.name, listed(known[n.of])))
	}
	_, err := t.Render(sample(vars, peers))
	return err
}

// Sample renders the template for an imagined instance without peers.
func (t *Template) Sample(vars map[string]string) ([]byte, error) { return t.Render(sample(vars, 0)) }

func listed(names []string) string {
	if len(names) == 0 {
		return "none at all"
	}
	return strings.Join(names, ", ")
}

// sample returns the data of an imagined instance.
func sample(vars map[string]string, peers int) Data {
	d := Data{Vars: vars, Facts: map[string]any{
		"address": "192.0.2.1:20001", "group": "group", "instance": "group-0-0000000", "slot": 0, "zone": "zone",
	}}
	for i := range peers {
		d.Peers = append(d.Peers, Peer{
			Instance: fmt.Sprintf("group-%d-0000000", i), Slot: i, Zone: "zone",
			Address: fmt.Sprintf("192.0.2.%d:20001", i%256),
		})
	}
	return d
}

// bounded is what a template writes, up to the bounds.
type bounded struct {
	text        bytes.Buffer
	left, steps int
}

var (
	errTooLarge = fmt.Errorf("the file becomes larger than %d KiB", MaxBytes>>10)
	errTooLong  = errors.New("it takes too many steps: loop over less")
)

// round is what inspect has every round of a loop begin with, as much of it as the round counts. It
// is not written.
var round = make([]byte, 64<<10)

// Write writes to the file, and counts the rounds of loops: one that writes nothing is bounded too.
func (b *bounded) Write(p []byte) (int, error) {
	counts := len(p) > 0 && &p[0] == &round[0]
	if counts {
		b.steps -= len(p)
	} else {
		b.steps--
	}
	switch {
	case b.steps < 0:
		return 0, errTooLong
	case counts:
		return len(p), nil
	}
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLarge
	}
	return b.text.Write(p)
}

// positions matches what text/template puts before an error: a name, a line, and where it is known
// a column.
var positions = regexp.MustCompile(`^template: file:(\d+):(?:(\d+):)? ?(?:executing "file" at <[^\n]*?>: )?`)

// readError takes the position out of an error of text/template.
func readError(err error) *Error {
	text := err.Error()
	e := &Error{Line: 1, Column: 1, What: text}
	if m := positions.FindStringSubmatch(text); m != nil {
		e.What = text[len(m[0]):]
		e.Line, _ = strconv.Atoi(m[1])
		if m[2] != "" {
			column, _ := strconv.Atoi(m[2])
			e.Column = column + 1 // text/template counts from 0
		}
	}
	switch {
	case errors.Is(err, errTooLarge):
		e.What = errTooLarge.Error()
	case errors.Is(err, errTooLong):
		e.What = errTooLong.Error()
	}
	e.What = strings.ReplaceAll(e.What, "map has no entry for key", "there is no")
	return e
}

// errorAt returns an error at a position of the text.
func (t *Template) errorAt(at parse.Pos, what string) *Error {
	before := t.text[:min(int(at), len(t.text))]
	line := 1 + strings.Count(before, "\n")
	return &Error{Line: line, Column: len(before) - strings.LastIndexByte(before, '\n'), What: what}
}
