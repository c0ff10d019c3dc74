package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	firstPause   = time.Second      // before a part that ended is started again
	longestPause = 15 * time.Second // however often it ends
	steady       = time.Minute      // a part that ran for so long is started again after firstPause
	stopTime     = 20 * time.Second // how long a part may take to stop in order
)

// part is a child process that is kept running.
type part struct {
	name  string
	args  []string
	env   []string
	out   io.Writer // its standard output and error
	log   *slog.Logger
	ready chan string // gets the address when it serves for the first time; holds one

	served bool
}

// keep runs the part until ctx ends, and starts it again whenever it ends by itself. A part that
// ends before it has ever served is an error: something is set up wrongly.
func (p *part) keep(ctx context.Context) error {
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
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// once runs the part until it ends. It is told to end by the end of its standard input, which also
// comes when the supervisor dies.
func (p *part) once(ctx context.Context) (why word, err error) {
	self, err := os.Executable()
	if err != nil {
		return word{}, err
	}
	cmd := exec.Command(self, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the supervisor, which ends its parts in order
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
	var hearing sync.WaitGroup
	hearing.Go(func() {
		hear(from, func(w word) {
			if w.What != "" {
				why = w
			} else if w.Ready != "" && !p.served {
				p.served = true
				p.ready <- w.Ready
			}
		})
	})
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = hold.Close()
		select {
		case err = <-ended:
		case <-time.After(stopTime):
			p.log.Error("part of the server does not stop: it is killed", "part", p.name, "after", stopTime)
			_ = cmd.Process.Kill()
			err = <-ended
		}
	}
	_ = from.SetReadDeadline(time.Now().Add(time.Second)) // a child of the part may hold the other end
	hearing.Wait()
	_ = from.Close()
	return why, err
}
