package cli

import (
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/docs"
)

// showPromise prints the text of a rule.
func (inv *Invocation) showPromise(p docs.Promise) error {
	if done, err := inv.records(p); done {
		return err
	}
	var b strings.Builder
	output.WriteWrapped(&b, inv.screen(), p.ID+": ", p.Promise)
	if p.Status != "kept" {
		b.WriteString("(in this version: " + p.Status + ")\n")
	}
	return inv.print(&b)
}
