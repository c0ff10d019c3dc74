// Package manual writes a program's manual page from its grammar.
package manual

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Write writes the page of section 1 as roff. The same grammar gives the same bytes.
func Write(w io.Writer, app *kong.Application, version string) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" %q \"\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(app.Name), text(app.Name+" "+version),
		text(app.Name), text(app.Help))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", text(app.Name), text(strings.TrimPrefix(app.Summary(), app.Name)))
	flags(&b, "OPTIONS", app.Flags)
	leaves := app.Leaves(true)
	if len(leaves) > 0 {
		b.WriteString(".SH COMMANDS\n")
	}
	for _, leaf := range leaves {
		fmt.Fprintf(&b, ".SS %s\n%s\n", text(strings.TrimPrefix(leaf.FullPath(), app.Name+" ")), text(leaf.Help))
		for _, a := range leaf.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", text(a.Summary()), text(a.Help))
		}
		for _, f := range leaf.Flags {
			flag(&b, f)
		}
		if leaf.Detail != "" {
			b.WriteString(".PP\n.nf\n" + lines(leaf.Detail) + "\n.fi\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func flags(b *strings.Builder, title string, all []*kong.Flag) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, f := range all {
		flag(b, f)
	}
}

func flag(b *strings.Builder, f *kong.Flag) {
	if f.Hidden {
		return
	}
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", text(f.String()), text(f.Help))
	if len(f.Envs) > 0 {
		fmt.Fprintf(b, "Environment: %s.\n", text(strings.Join(f.Envs, ", ")))
	}
}

// text is a line that roff takes literally.
func text(s string) string { return lines(strings.Join(strings.Fields(s), " ")) }

// lines are lines that roff takes literally.
func lines(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(s)
	all := strings.Split(s, "\n")
	for i, line := range all {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			all[i] = `\&` + line
		}
	}
	return strings.Join(all, "\n")
}
