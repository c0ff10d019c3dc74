package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/leasehold/leasehold/cmd/supervised"
)

// UntilInterrupted returns a context that ends with the first terminating signal. A second one ends
// the process at once.
func UntilInterrupted() (context.Context, context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // ignored, as under nohup
		ends = append(ends, syscall.SIGHUP) // when its terminal closes, the program ends in order, too
	}
	return supervised.UntilTerminated(ends...)
}

// OutliveOutput lets a service continue when its output is closed, as in "leasehold dev
// head". Otherwise SIGPIPE would end it at once, and leave behind what it started. The signal is
// caught, not ignored, because programs that it starts would inherit that.
func OutliveOutput() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// IsTerminal reports whether a file is a terminal that shows more than plain text.
func IsTerminal(f *os.File) bool {
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Columns returns the width of a terminal; 0 if unknown.
func Columns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
