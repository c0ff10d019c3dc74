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
	firstPause   = time.Second      // before a part that ended is started again
	longestPause = 15 * time.Second // however often it ends
	steady       = time.Minute      // a part that ran for so long is started again after firstPause
	stopTime     = 20 * time.Second // how long a part may take to stop in order
	dumpTime     = 5 * time.Second  // how long a part that hangs may take to write its goroutines to the log
	// hangTicks is in how many steps the limit of a part that hangs is counted. Where all of the host
	// stood still, time has passed, but few steps.
	hangTicks = 8
)

// part is a child process that is kept running.
type part struct {
	name  string
	args  []string
	env   []string
	out   io.Writer // its standard output and error
	log   *slog.Logger
	hang  time.Duration // how long it may give no sign of life
	ready chan string   // gets the address when it serves for the first time; holds one
	turns chan struct{} // taken by the loop that supervises it

	served bool
}

// errHangs is why a part is ended that gives no sign of life.
var errHangs = errors.New("it did not answer")

// keep runs the part until ctx ends, and starts it again whenever it ends by itself. A part that
// ends before it has ever served is an error: something is set up wrongly.
func (p *part) keep(ctx context.Context) error {
	runtime.LockOSThread() // the kernel ends the part with this thread, which ends with this goroutine
	pause := firstPause
	for {
		began := time.Now()
		why, err := p.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to end
		case !p.served && why.What != "":
			return problem(why.Next, "%s", why.What)
		case !p.served:
			return problem("look at the log", "the %s ended while starting: %v", p.name, err)
		}
		if time.Since(began) > steady {
			pause = firstPause
		}
		p.log.Error("part of the server ended: it is started again", "part", p.name, "how", fmt.Sprint(err),
			"why", why.What, "next", why.Next, "in", pause)
		if !p.wait(ctx, pause) {
			return nil
		}
		pause = min(2*pause, longestPause)
	}
}

// wait waits, and reports whether the part is still wanted after that.
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

// turning reports whether the loop that supervises the part still turns.
func (p *part) turning(ctx context.Context) bool {
	select {
	case p.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// once runs the part until it ends. It is told to end by the end of its standard input. If the
// supervisor dies, the kernel kills it: the next supervisor starts one of its own.
func (p *part) once(ctx context.Context) (why word, err error) {
	self, err := os.Executable()
	if err != nil {
		return word{}, err
	}
	cmd := exec.Command(self, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = p.out, p.out
	// Ctrl-C is for the supervisor, which ends its parts in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return word{}, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return word{}, err
	}
	cmd.ExtraFiles = []*os.File{to}
	err = cmd.Start()
	_ = to.Close()
	if err != nil {
		_ = from.Close()
		return word{}, err
	}
	p.log.Info("part of the server started", "part", p.name, "pid", cmd.Process.Pid)
	alive := make(chan struct{}, 1)
	var hearing sync.WaitGroup
	hearing.Go(func() {
		hear(from, func(w word) {
			switch {
			case w.What != "":
				why = w
			case w.Ready != "" && !p.served:
				p.served = true
				p.ready <- w.Ready
			case w.Alive:
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
	_ = from.SetReadDeadline(time.Now().Add(time.Second)) // a child of the part may hold the other end
	hearing.Wait()
	_ = from.Close()
	return why, err
}

// watch returns once the part has ended. It ends the part when ctx ends, or when there was no sign
// of life for too long. Signs count from the first: how long a start may take is not known.
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
				_ = process.Signal(syscall.SIGABRT) // Go's programs write their goroutines
				return errors.Join(errHangs, p.killedAfter(dumpTime, process, ended))
			}
		case <-ctx.Done():
			_ = hold.Close()
			return p.killedAfter(stopTime, process, ended)
		}
	}
}

// killedAfter waits until the part has ended, and kills it after a time.
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
