package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/leasehold/leasehold/cmd/groupdiff"
)

// dryRun shows each change field by field and the plan that would follow. It writes nothing.
func (s *Session) dryRun(ctx context.Context, changes []change, files Files) error {
	for _, ch := range changes {
		if err := s.dryRunOne(ctx, ch); err != nil {
			return err
		}
	}
	if len(changes) == 1 && !changes[0].unchanged() {
		ch := changes[0]
		fmt.Fprintf(s.env.Stdout, "Nothing changed. Apply exactly this: leasehold group apply %s --if-revision %d%s\n", files.flags(), ch.was, confirmation(ch))
		return nil
	}
	fmt.Fprintln(s.env.Stdout, "Nothing changed.")
	return nil
}

func confirmation(ch change) string {
	if !ch.shrinks() {
		return ""
	}
	return " --confirm=" + ch.name
}

// dryRunOne shows one change, the revision on which it was computed, and what would follow.
func (s *Session) dryRunOne(ctx context.Context, ch change) error {
	fields := groupdiff.Between(ch.before, ch.after)
	switch {
	case ch.was == 0:
		fmt.Fprintf(s.env.Stdout, "%s: new, there is no such group\n", ch.name)
	case ch.unchanged():
		fmt.Fprintf(s.env.Stdout, "%s: unchanged, spec rev %d\n", ch.name, ch.was)
	default:
		fmt.Fprintf(s.env.Stdout, "%s: spec rev %d\n", ch.name, ch.was)
	}
	if err := writeChanges(s, fields, ch.was == 0); err != nil {
		return err
	}
	for _, w := range ch.after.Warnings() {
		s.warn("%s: %s", ch.name, w)
	}
	return s.showPlan(ctx, ch)
}

// writeChanges shows the fields that differ, aligned.
func writeChanges(s *Session, changes []groupdiff.Change, isNew bool) error {
	width := 0
	for _, c := range changes {
		width = max(width, len(c.Path))
	}
	var b strings.Builder
	scr := s.screen()
	for _, c := range changes {
		sign := c.Sign()
		switch sign {
		case "+":
			sign = scr.Good(sign)
		case "-":
			sign = scr.Alarm(sign)
		default:
			sign = scr.Notice(sign)
		}
		fmt.Fprintf(&b, "%s %-*s  %s", sign, width, c.Path, c)
		if !isNew && outdates(c) {
			b.WriteString("   makes instances outdated (ROLL-1)")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(s.env.Stdout, b.String())
	return err
}

// outdates says that a change of this field is one of the template.
func outdates(c groupdiff.Change) bool {
	for _, field := range []string{"provider", "template", "workload", "vars"} {
		if c.Path == field || strings.HasPrefix(c.Path, field+".") || strings.HasPrefix(c.Path, field+"[") {
			return true
		}
	}
	return false
}
