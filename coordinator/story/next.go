package story

import "strings"

// Next is what an operator can do about a problem: one of several ways.
type Next []Remedy

// A Remedy is one way.
type Remedy struct {
	Text string
	Kind RemedyKind
}

// RemedyKind says what a remedy's text is.
type RemedyKind int

const (
	Advice     RemedyKind = iota // a sentence
	Command                      // a command line
	Inspection                   // a command line that shows what `leasehold explain` shows already
)

// IsCommand reports whether the text is a command line, complete but for names in capitals.
func (r Remedy) IsCommand() bool { return r.Kind != Advice }

func advise(text string) Next  { return Next{{text, Advice}} }
func run(command string) Next  { return Next{{command, Command}} }
func inspect(line string) Next { return Next{{line, Inspection}} }

// or adds another way.
func (n Next) or(other Next) Next { return append(n, other...) }

func (n Next) String() string {
	var all []string
	for _, r := range n {
		all = append(all, r.Text)
	}
	return strings.Join(all, " | ")
}

// MarshalText makes it one text in JSON and YAML.
func (n Next) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what MarshalText writes, as clients of the API do. Which commands only show
// something is not in it.
func (n *Next) UnmarshalText(text []byte) error {
	*n = nil
	for way := range strings.SplitSeq(string(text), " | ") {
		kind := Advice
		if strings.HasPrefix(way, "leasehold ") {
			kind = Command
		}
		*n = append(*n, Remedy{way, kind})
	}
	return nil
}
