package cli

import (
	"regexp"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/docs"
)

// promise is a rule that Leasehold keeps, from docs/rules.md.
type promise struct {
	ID      string `json:"id"`
	Promise string `json:"promise"`
	Status  string `json:"status"` // kept, partly or later
}

var promiseRow = regexp.MustCompile(`(?m)^\| ([A-Z]+-\d+) \| (.+) \| (\S+) \|$`)

// promises returns all of them, in the order of the document.
func promises() []promise {
	var all []promise
	for _, row := range promiseRow.FindAllStringSubmatch(docs.Rules, -1) {
		all = append(all, promise{ID: row[1], Promise: row[2], Status: row[3]})
	}
	return all
}

func promiseOf(id string) (promise, bool) {
	for _, p := range promises() {
		if p.ID == id {
			return p, true
		}
	}
	return promise{}, false
}

// showPromise prints the text of a rule.
func (s *Session) showPromise(p promise) error {
	if done, err := s.records(p); done {
		return err
	}
	var b strings.Builder
	output.WriteWrapped(&b, s.screen(), p.ID+": ", p.Promise)
	if p.Status != "kept" {
		b.WriteString("(in this version: " + p.Status + ")\n")
	}
	return s.print(&b)
}
