package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// UntilInterrupted is a context that ends with the first signal to end the process. A second one
// ends the process at once, whatever it is doing.
func UntilInterrupted() (ctx context.Context, stop context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP) // a terminal that closes leaves nothing behind either
	}
	ctx, stop = signal.NotifyContext(context.Background(), ends...)
	go func() {
		<-ctx.Done()
		stop()
	}()
	return ctx, stop
}

// OutliveOutput lets a service run on when its output is closed, as in "leasehold dev | head". Otherwise the signal
// ends it at once, and what it started is left behind. The signal is taken and not ignored, because programs that it
// starts would inherit that.
func OutliveOutput() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// IsTerminal reports whether a file is a terminal that shows more than plain text.
func IsTerminal(f *os.File) bool {
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Columns is the width of a terminal, 0 if it is unknown.
func Columns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
