package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
)

// Code is the exit code.
type Code = program.Code

// The exit codes.
const (
	Done        = program.Done
	Failed      = program.Failed
	Usage       = program.Usage
	NotFound    = program.NotFound
	Conflict    = program.Conflict
	Unreachable = program.Unreachable
	Differs     = program.Differs
	TimedOut    = program.TimedOut
	Awaits      = program.Awaits
	Interrupted = program.Interrupted
)

// Failure is an unsuccessful end, as the operator sees it.
type Failure = program.Failure

// failure has advice as its remedy; "" is none.
func failure(code Code, advice, format string, args ...any) *Failure {
	return program.Fail(code, advice, format, args...)
}

// failureRun is failure whose remedy is a command.
func failureRun(code Code, command, format string, args ...any) *Failure {
	return failureWith(code, story.Run(command), format, args...)
}

// failureWith is failure with any remedies.
func failureWith(code Code, remedies story.Remedies, format string, args ...any) *Failure {
	return &Failure{Code: code, What: fmt.Sprintf(format, args...), Remedies: remedies}
}

// misspelt is an invalid text, and the next step.
type misspelt struct {
	yamlfile.Problems
	next string
	code Code // default: Failed
}

func (m *misspelt) Unwrap() error { return m.Problems }

// errDiffers ends a command with Differs and no message: a difference is no error.
var errDiffers = errors.New("differs")

// report prints how a command ended, and returns its exit code.
func report(ctx context.Context, to output.Screen, err error) Code {
	var f *Failure
	var parse *kong.ParseError
	var known *services.Problem
	var files *pki.Problem
	var problems yamlfile.Problems
	var text *misspelt
	var spoiled *store.UnreadableError
	var local *fs.PathError
	switch {
	case err == nil:
		return Done
	case errors.Is(err, errDiffers):
		return Differs
	case errors.Is(err, services.ErrReported):
		return Failed
	case errors.As(err, &f) && f.Code == Interrupted:
		return f.Show(to)
	case ctx.Err() != nil:
		if to.Terminal { // the message must not follow a question or a ^C on its line
			_, _ = io.WriteString(to.W, "\n")
		}
		return Interrupted
	case errors.As(err, &f):
	case errors.As(err, &parse):
		// The parser names the kind of each value; of some it knows no better word.
		text := strings.Replace(parse.Error(), "expected value value", "expected a value", 1)
		f = failure(Usage, helpCommand(parse), "%s", text)
	case errors.As(err, &known):
		f = failure(Failed, known.Next, "%s", known.What)
	case errors.As(err, &files):
		f = failure(Failed, files.Next, "%s", files.What)
	case errors.As(err, &text):
		return max(text.code, reportProblems(to, text.Problems, text.next))
	case errors.As(err, &problems):
		return reportProblems(to, problems, "correct the file; docs/group-file.md describes its fields")
	case errors.As(err, &spoiled) && !errors.Is(err, store.ErrSchema):
		f = failure(Failed, "leasehold repair "+nameOf(spoiled.Key)+" shows what would be written", "%s", err)
	case durable.Full(err):
		f = failure(Failed, "free space on that disk, or write to another", "%s", err)
	case errors.As(err, &local):
		f = failure(Failed, "check the file, its directory and their permissions", "%s", err)
	case errors.Is(err, store.ErrSchema):
		f = failure(Failed, "leasehold version, and install the version that the coordinators run", "%s", err)
	default:
		f = failure(Failed, "leasehold status", "%s", err)
	}
	return f.Show(to)
}

// nameOf returns a key without the prefix of its shard, as commands accept it.
func nameOf(key string) string {
	rest, ok := strings.CutPrefix(key, store.Root)
	if _, name, found := strings.Cut(rest, "/"); ok && found {
		return name
	}
	return key
}

const maxProblems = 20

func reportProblems(to output.Screen, problems yamlfile.Problems, next string) Code {
	for i, p := range problems {
		if i == maxProblems {
			program.WriteError(to, fmt.Sprintf("and %d more (%s)", len(problems)-i, p.File))
			break
		}
		program.WriteError(to, p.Error())
	}
	program.WriteNext(to, next)
	return Failed
}

// helpCommand returns the help command for as much of the command line as was understood.
func helpCommand(err *kong.ParseError) string { return program.HelpCommand("leasehold", err) }
