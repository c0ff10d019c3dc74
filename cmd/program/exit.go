package program

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/story"
)

// Code is the exit code.
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
	Awaits      Code = 8 // an operator must act: the canaries are healthy, and the roll waits for a promotion
	Interrupted Code = 130
)

// Failure is an unsuccessful end, as the operator sees it.
type Failure struct {
	Code     Code
	What     string // one line
	Remedies story.Remedies
}

func (f *Failure) Error() string { return f.What }

// Fail creates a Failure with advice; "" is none.
func Fail(code Code, advice, format string, args ...any) *Failure {
	return &Failure{Code: code, What: fmt.Sprintf(format, args...), Remedies: story.Advise(advice)}
}

// Show prints the failure, and returns its exit code. An interrupt was intended, and is no error.
func (f *Failure) Show(to output.Screen) Code {
	if f.Code == Interrupted {
		_, _ = io.WriteString(to.W, output.OneLine(f.What)+"\n")
	} else {
		WriteError(to, f.What)
	}
	WriteNext(to, f.Remedies.String())
	return f.Code
}

// WriteError writes the line "error: …".
func WriteError(to output.Screen, what string) {
	_, _ = io.WriteString(to.W, to.Alarm("error:")+" "+output.OneLine(strings.TrimSpace(what))+"\n")
}

// WriteNext writes the line "next: …", if there is something to do.
func WriteNext(to output.Screen, next string) {
	if next != "" {
		_, _ = io.WriteString(to.W, to.Dim("next:")+" "+output.OneLine(next)+"\n")
	}
}

// Joined joins the lines of an error.
func Joined(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// HelpCommand returns the help command for as much of the command line as was understood.
func HelpCommand(program string, err *kong.ParseError) string {
	words := []string{program}
	if err.Context != nil {
		for _, p := range err.Context.Path {
			if p.Command != nil {
				words = append(words, p.Command.Name)
			}
		}
	}
	return strings.Join(append(words, "--help"), " ")
}
