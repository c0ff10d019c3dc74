package supervised

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// listener has a context end with the first of some signals.
type listener struct {
	signals []os.Signal
	came    chan os.Signal
	settle  chan chan struct{} // closed once all that came is acted on
	end     context.CancelCauseFunc
	over    chan struct{} // closed when nothing is listened to any more
}

type listenerKey struct{}

// UntilTerminated returns a context that ends with the first of these signals. A second one ends
// the process at once.
func UntilTerminated(signals ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(context.Background())
	l := &listener{
		signals: signals, came: make(chan os.Signal, 1), settle: make(chan chan struct{}), end: end,
		over: make(chan struct{}),
	}
	l.listen()
	go l.run()
	return context.WithValue(ctx, listenerKey{}, l), sync.OnceFunc(func() {
		l.terminate(nil)
		close(l.over)
	})
}

func (l *listener) listen() { signal.Notify(l.came, l.signals...) }

func (l *listener) run() {
	for {
		select {
		case s := <-l.came:
			l.terminate(received{s})
		case settled := <-l.settle:
			select {
			case s := <-l.came:
				l.terminate(received{s})
			default:
			}
			close(settled)
		case <-l.over:
			return
		}
	}
}

// received is the cause with which a signal ends a context. To those that ask it is a cancellation,
// as with signal.NotifyContext.
type received struct{ os.Signal }

func (r received) Error() string { return r.String() + " signal received" }

func (received) Is(target error) bool { return target == context.Canceled }

func (l *listener) terminate(why error) {
	signal.Stop(l.came)
	l.end(why)
}

// BeforeExec stops listening to the signals of UntilTerminated, for a process that becomes another
// program. It returns ctx's error if a signal has arrived: the other program would not know of it,
// so the process must not become that program. A later signal ends the process at once. If the
// other program does not start, again listens as before.
func BeforeExec(ctx context.Context) (again func(), err error) {
	l, _ := ctx.Value(listenerKey{}).(*listener)
	if l == nil {
		return func() {}, ctx.Err()
	}
	signal.Stop(l.came)
	awaitHandlers()
	settled := make(chan struct{})
	select {
	case l.settle <- settled:
		<-settled
	case <-l.over:
	}
	return func() {
		if ctx.Err() == nil {
			l.listen()
		}
	}, ctx.Err()
}

// awaitHandlers returns after the signals that the kernel has given to a thread of this process are
// handled. signal.Stop waits for handlers that run, but not for a thread that was interrupted
// before its handler began: exec would end that thread, and the signal with it. Go's handlers block
// all signals, so a thread takes part in a call on all threads only after its handler's end. Now
// that nothing listens, that end is the end of the process.
//
// In a program with cgo there is no such call, and that moment remains.
func awaitHandlers() {
	_, _, _ = syscall.AllThreadsSyscall(syscall.SYS_GETPID, 0, 0, 0)
}
