package cli

import (
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/docs"
)

// showPromise prints the text of a rule.
func (s *Session) showPromise(p docs.Promise) error {
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
