// Package gated starts processes that wait before they become their program.
//
// Such a process is this program at first, held back by a pipe. Two things need that:
//
//   - A workload is recorded before it runs: an agent that is killed in between would be followed
//     by one that starts a second. When the record is written the process is let go, and becomes
//     the workload, with the same process ID and start time. If the agent ends before, the pipe
//     breaks, and the process ends without having run anything.
//   - A disk that hangs blocks a process that executes a program on it. Go's runtime waits for
//     its child there and keeps a processor meanwhile: sooner or later all of the agent stands
//     still, reports as well. The agent executes only itself, which is in memory, and the new
//     process waits for the disk.
package gated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// name is the first argument of a process that waits.
	name = "leasehold-gated"
	// Its descriptors: where it is let go, and where it says why it could not become the program.
	gateFile, answerFile = 3, 4
)

func init() { //nolint:gochecknoinits // before anything else of the program that this is in
	if len(os.Args) > 2 && os.Args[0] == name {
		os.Exit(become(os.Args[1], os.Args[2:])) //nolint:forbidigo // it is no agent: it becomes another program
	}
}

// become waits to be let go, and makes this process the program at a path. It returns only if that
// is not to be, or fails.
func become(path string, argv []string) (code int) {
	syscall.CloseOnExec(gateFile)
	syscall.CloseOnExec(answerFile)
	gate, answer := os.NewFile(gateFile, "gate"), os.NewFile(answerFile, "answer")
	if _, err := io.ReadFull(gate, make([]byte, 1)); err != nil {
		return 0 // the agent has ended, or has changed its mind
	}
	err := syscall.Exec(path, argv, os.Environ())
	_, _ = fmt.Fprintf(answer, "exec %s: %s", path, err)
	return 127
}

// Process is one that waits.
type Process struct {
	gate, answer *os.File
}

// Start starts a command as a process that waits to become it. The command must have no extra
// files.
func Start(cmd *exec.Cmd) (_ *Process, err error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	var pipes [4]*os.File
	defer func() {
		for i, f := range pipes {
			if child := i == 0 || i == 3; f != nil && (child || err != nil) {
				_ = f.Close()
			}
		}
	}()
	if pipes[0], pipes[1], err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	if pipes[2], pipes[3], err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	cmd.Args = append([]string{name, cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
	cmd.ExtraFiles = []*os.File{pipes[0], pipes[3]}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{gate: pipes[1], answer: pipes[2]}, nil
}

// LetGo has the process become its program, and returns why it cannot: then it ends. If the disk
// holds that up, it may still become so when ctx has ended, and that is no error.
func (p *Process) LetGo(ctx context.Context) error {
	defer p.answer.Close()
	_, err := p.gate.Write([]byte{1})
	if err = errors.Join(err, p.gate.Close()); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = p.answer.SetReadDeadline(time.Unix(1, 0)) })()
	why, err := io.ReadAll(p.answer) // ends with exec
	if len(why) > 0 {
		return errors.New(string(why))
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("start process: %w", err)
	}
	return nil
}

// Drop has the process end without having run anything.
func (p *Process) Drop() {
	_ = errors.Join(p.gate.Close(), p.answer.Close()) // of pipes
}
