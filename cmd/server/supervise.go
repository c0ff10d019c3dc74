package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	firstPause   = time.Second      // pause before a part that ended is started again
	longestPause = 15 * time.Second // the longest such pause
	steady       = time.Minute      // a part that ran for this long is started again after firstPause
	stopTime     = 20 * time.Second // time for a part to stop in order
	dumpTime     = 5 * time.Second  // time for a hanging part to write its goroutines to the log
	// hangTicks is the number of steps in which the time limit for a hanging part is counted. If
	// the whole host was frozen, time has passed but few steps were counted.
	hangTicks = 8
)

// part is a supervised child process.
type part struct {
	name  string
	args  []string
	env   []string
	out   io.Writer // its standard output and error
	log   *slog.Logger
	hang  time.Duration                // longest time without a sign of life
	ready chan string                  // receives the address when the part first serves; capacity 1
	turns chan struct{}                // taken by the loop that supervises it
	ended func(part, why, next string) // records that it ended by itself

	served bool
}

// errHangs is the cause for ending a part that gives no sign of life.
var errHangs = errors.New("it did not answer")

// keep runs the part until ctx ends, and restarts it whenever it ends by itself. A part that ends
// before it has ever served is an error: its configuration is wrong.
func (p *part) keep(ctx context.Context) error {
	runtime.LockOSThread() // the kernel kills the part with this thread, so the goroutine keeps it
	pause := firstPause
	for {
		began := time.Now()
		why, err := p.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was asked to end
		case !p.served && why.What != "":
			return problem(why.Next, "%s", why.What)
		case !p.served:
			return problem("look at the log", "the %s ended while starting: %v", p.name, err)
		}
		if why.What == "" && killedByAnother(err) {
			why.What, why.Next = "it may have run out of memory", "look for \"out of memory\" in the kernel's log: journalctl -k"
		}
		if time.Since(began) > steady {
			pause = firstPause
		}
		p.log.Error("part of the server ended: it is started again", "part", p.name, "how", fmt.Sprint(err),
			"why", why.What, "next", why.Next, "in", pause)
		how := fmt.Sprint(err)
		if why.What != "" {
			how += ": " + why.What
		}
		p.ended(p.name, how, why.Next)
		if !p.wait(ctx, pause) {
			return nil
		}
		pause = min(2*pause, longestPause)
	}
}

// killedByAnother reports whether a part was killed, and not by its supervisor. The kernel kills
// what runs out of memory.
func killedByAnother(err error) bool {
	var exit *exec.ExitError
	if errors.Is(err, errHangs) || !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// wait pauses, and reports whether the part is still wanted afterwards.
func (p *part) wait(ctx context.Context, pause time.Duration) bool {
	over := time.After(pause)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.turns:
		case <-over:
			return true
		}
	}
}

// turning reports whether the loop that supervises the part makes progress.
func (p *part) turning(ctx context.Context) bool {
	select {
	case p.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// once runs the part until it ends. Closing its standard input asks it to end. If the supervisor
// dies, the kernel kills the part, and the next supervisor starts its own.
func (p *part) once(ctx context.Context) (why message, err error) {
	self, err := os.Executable()
	if err != nil {
		return message{}, err
	}
	cmd := exec.Command(self, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = p.out, p.out
	// Ctrl-C must reach the supervisor alone, which ends its parts in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return message{}, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return message{}, err
	}
	cmd.ExtraFiles = []*os.File{to}
	err = cmd.Start()
	_ = to.Close()
	if err != nil {
		_ = from.Close()
		return message{}, err
	}
	p.log.Info("part of the server started", "part", p.name, "pid", cmd.Process.Pid)
	alive := make(chan struct{}, 1)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		receive(from, func(m message) {
			switch {
			case m.What != "":
				why = m
			case m.Ready != "" && !p.served:
				p.served = true
				p.ready <- m.Ready
			case m.Alive:
				select {
				case alive <- struct{}{}:
				default:
				}
			}
		})
	})
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = p.watch(ctx, cmd.Process, hold, alive, ended)
	_ = from.SetReadDeadline(time.Now().Add(time.Second)) // a child of the part may hold the other end open
	receiving.Wait()
	_ = from.Close()
	return why, err
}

// watch returns once the part has ended. It ends the part when ctx ends or when there was no sign
// of life for too long. The limit applies from the first sign: the duration of a start is not
// bounded.
func (p *part) watch(ctx context.Context, process *os.Process, hold io.Closer, alive <-chan struct{},
	ended <-chan error,
) error {
	tick := time.NewTicker(p.hang / hangTicks)
	defer tick.Stop()
	missed := -1 // -1: no sign yet
	for {
		select {
		case err := <-ended:
			return err
		case <-p.turns:
		case <-alive:
			missed = 0
		case <-tick.C:
			if missed < 0 {
				continue
			}
			if missed++; missed > hangTicks {
				p.log.Error("part of the server does not answer: it is ended", "part", p.name, "for", p.hang)
				_ = process.Signal(syscall.SIGABRT) // Go programs then write their goroutines
				return errors.Join(errHangs, p.killedAfter(dumpTime, process, ended))
			}
		case <-ctx.Done():
			_ = hold.Close()
			return p.killedAfter(stopTime, process, ended)
		}
	}
}

// killedAfter waits until the part has ended, and kills it after a timeout.
func (p *part) killedAfter(patience time.Duration, process *os.Process, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		p.log.Error("part of the server does not stop: it is killed", "part", p.name, "after", patience)
		_ = process.Kill()
		return <-ended
	}
}
