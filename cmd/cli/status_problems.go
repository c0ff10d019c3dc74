package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/story"
)

// problem is something that an operator should know, with the next step.
type problem = story.Problem

// joined joins the lines of an error.
func joined(err error) string { return program.Joined(err) }

// writeProblems prints the problems and their number.
func writeProblems(scr output.Screen, found []problem) error {
	var b strings.Builder
	if len(found) == 0 {
		b.WriteString("no problems\n")
	} else {
		b.WriteString(scr.Alarm(counted(len(found), "problem", "problems")) + "\n")
	}
	for _, p := range found {
		rule := ""
		if p.Rule != "" {
			rule = p.Rule + ": "
		}
		// a key written by hand may have any name
		about := fmt.Sprintf("%.60s", output.OneLine(p.About))
		output.WriteWrapped(&b, scr, "  "+about+"  ", rule+p.What)
		if len(p.Remedies) > 0 {
			fmt.Fprintf(&b, "  %s  next: %s\n", strings.Repeat(" ", len(about)), output.OneLine(p.Remedies.String()))
		}
	}
	_, err := io.WriteString(scr.W, b.String())
	return err
}
