package story

import "strings"

// Remedies are what an operator can do about a problem. Each is a way of its own: one of them is
// enough.
type Remedies []Remedy

// A Remedy is one way to deal with a problem.
type Remedy struct {
	Kind RemedyKind `json:"kind"`
	Text string     `json:"text"`
}

// RemedyKind says what the text of a remedy is.
type RemedyKind string

const (
	// Advice is a sentence, which may contain commands.
	Advice RemedyKind = "advice"
	// Command is a command line, complete but for names in capitals.
	Command RemedyKind = "command"
	// Inspection is a command line that shows what `leasehold explain` shows as well: explain
	// leaves it out.
	Inspection RemedyKind = "inspection"
)

// RemedyKinds lists the kinds.
var RemedyKinds = []RemedyKind{Advice, Command, Inspection}

// IsCommand reports whether the text is a command line.
func (r Remedy) IsCommand() bool { return r.Kind == Command || r.Kind == Inspection }

// Advise returns a sentence as the only remedy; an empty text is none.
func Advise(text string) Remedies { return only(Advice, text) }

// Run returns a command as the only remedy.
func Run(command string) Remedies { return only(Command, command) }

// Inspect returns a command that shows what explain shows as the only remedy.
func Inspect(command string) Remedies { return only(Inspection, command) }

func only(kind RemedyKind, text string) Remedies {
	if text == "" {
		return nil
	}
	return Remedies{{kind, text}}
}

// Or adds other remedies.
func (r Remedies) Or(others Remedies) Remedies { return append(r, others...) }

// String joins the texts, for a terminal.
func (r Remedies) String() string {
	var texts []string
	for _, one := range r {
		texts = append(texts, one.Text)
	}
	return strings.Join(texts, "; or ")
}
