package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
)

// act is an action that removes machines of a group.
type act struct{ group, what string }

// confirmAll is confirm for several acts. Without a terminal it names all that are not confirmed.
func (inv *Invocation) confirmAll(ctx context.Context, given []string, acts []act) error {
	acts = slices.DeleteFunc(slices.Clone(acts), func(a act) bool { return slices.Contains(given, a.group) })
	if len(acts) < 2 || inv.env.StdinTerminal {
		for _, a := range acts {
			if err := inv.confirm(ctx, nil, a.group, a.what); err != nil {
				return err
			}
		}
		return nil
	}
	var whats, flags []string
	for _, a := range acts {
		whats, flags = append(whats, a.what), append(flags, "--confirm="+a.group)
	}
	return failure(Usage, "run the same command with "+strings.Join(flags, " "),
		"%s: these must be confirmed, and there is no terminal to ask on; nothing was changed", strings.Join(whats, "; "))
}

// confirm makes sure that an action that removes machines is intended: by --confirm=NAME, or by the
// name typed on a terminal. Without a terminal it does not ask, and refuses the action.
func (inv *Invocation) confirm(ctx context.Context, given []string, name, act string) error {
	if slices.Contains(given, name) {
		return nil
	}
	if inv.api != nil {
		return unconfirmed(name, act)
	}
	if len(given) > 0 {
		return failure(Usage, "run the same command with --confirm="+name,
			"%s: --confirm names %s, not %s; nothing was changed", act, strings.Join(given, ", "), name)
	}
	if !inv.env.StdinTerminal {
		return failure(Usage, "run the same command with --confirm="+name,
			"%s: this must be confirmed, and there is no terminal to ask on; nothing was changed", act)
	}
	fmt.Fprintf(inv.env.Stderr, "%s\ntype %s to continue: ", act, name)
	if inv.answers == nil {
		inv.answers = bufio.NewReader(inv.env.Stdin)
	}
	typed := make(chan string, 1)
	go func() { // outlives this call only if ctx ends before input: a terminal read cannot be canceled
		line, _ := inv.answers.ReadString('\n') // an incomplete line is not the name
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-typed:
		if answer != name {
			return failure(Failed, "run the same command again, and type "+name,
				"%s: not confirmed; nothing was changed", act)
		}
		return nil
	}
}
