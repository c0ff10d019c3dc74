package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/store"
)

// Code is the exit code: what kind of end it was.
type Code int

// The exit codes.
const (
	Done        Code = 0
	Failed      Code = 1
	Usage       Code = 2
	NotFound    Code = 3
	Conflict    Code = 4
	Unreachable Code = 5
	Differs     Code = 6
	TimedOut    Code = 7
	Interrupted Code = 130
)

// Failure is an end other than done, as the operator is told of it.
type Failure struct {
	Code Code
	What string // one line
	Next string // the command that helps
}

func (f *Failure) Error() string { return f.What }

func failure(code Code, next, format string, args ...any) *Failure {
	return &Failure{Code: code, What: fmt.Sprintf(format, args...), Next: next}
}

// misspelt is a text with mistakes, and what to do about it.
type misspelt struct {
	groupfile.Problems
	next string
	code Code // Failed, unless another is set
}

func (m *misspelt) Unwrap() error { return m.Problems }

// errDiffers ends a command with Differs and no message: a difference is no error.
var errDiffers = errors.New("differs")

// report tells the operator how a command ended, and returns its exit code.
func report(ctx context.Context, to output.Screen, err error) Code {
	var f *Failure
	var parse *kong.ParseError
	var known *services.Problem
	var files *authority.Problem
	var problems groupfile.Problems
	var text *misspelt
	var spoiled *store.UnreadableError
	switch {
	case err == nil:
		return Done
	case errors.Is(err, errDiffers):
		return Differs
	case errors.As(err, &f) && f.Code == Interrupted: // no error: the operator wanted it so
		_, _ = io.WriteString(to.W, output.OneLine(f.What)+"\n")
		writeNext(to, f.Next)
		return Interrupted
	case ctx.Err() != nil:
		if to.Terminal { // what follows must not stand behind a question or a ^C
			_, _ = io.WriteString(to.W, "\n")
		}
		return Interrupted
	case errors.As(err, &f):
	case errors.As(err, &parse):
		f = failure(Usage, helpCommand(parse), "%s", parse)
	case errors.As(err, &known):
		f = failure(Failed, known.Next, "%s", known.What)
	case errors.As(err, &files):
		f = failure(Failed, files.Next, "%s", files.What)
	case errors.As(err, &text):
		return max(text.code, reportProblems(to, text.Problems, text.next))
	case errors.As(err, &problems):
		return reportProblems(to, problems, "correct the file; docs/group-file.md describes its fields")
	case errors.As(err, &spoiled) && !errors.Is(err, store.ErrSchema):
		f = failure(Failed, "leasehold repair shows what is wrong with it and what would be written", "%s", err)
	case errors.Is(err, store.ErrSchema):
		f = failure(Failed, "leasehold version, and install the version that the coordinators run", "%s", err)
	default:
		f = failure(Failed, "leasehold status", "%s", err)
	}
	writeError(to, f.What)
	writeNext(to, f.Next)
	return f.Code
}

const maxProblems = 20

func reportProblems(to output.Screen, problems groupfile.Problems, next string) Code {
	for i, p := range problems {
		if i == maxProblems {
			writeError(to, fmt.Sprintf("and %d more (%s)", len(problems)-i, p.File))
			break
		}
		writeError(to, p.Error())
	}
	writeNext(to, next)
	return Failed
}

func writeError(to output.Screen, what string) {
	_, _ = io.WriteString(to.W, to.Alarm("error:")+" "+output.OneLine(strings.TrimSpace(what))+"\n")
}

func writeNext(to output.Screen, next string) {
	if next != "" {
		_, _ = io.WriteString(to.W, to.Dim("next:")+" "+output.OneLine(next)+"\n")
	}
}

// helpCommand is the help for as much of the command line as was understood.
func helpCommand(err *kong.ParseError) string {
	words := []string{"leasehold"}
	if err.Context != nil {
		for _, p := range err.Context.Path {
			if p.Command != nil {
				words = append(words, p.Command.Name)
			}
		}
	}
	return strings.Join(append(words, "--help"), " ")
}
