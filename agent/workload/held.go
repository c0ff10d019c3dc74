package workload

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

// A workload is recorded before it runs: an agent that is killed in between would be followed by
// one that starts a second workload. So the process first runs this program, which a pipe holds
// back. When the record is written the process is released and becomes the workload, with the same
// process ID and start time. If the agent ends before that, the pipe breaks and the process ends
// without having run anything.

const (
	// heldName is the first argument of a held process.
	heldName = "leasehold-held-workload"
	// Its descriptors: the pipe that releases it, and the pipe for the reason why it could not
	// become the workload.
	heldGate, heldAnswer = 3, 4
)

func init() { //nolint:gochecknoinits // before anything else of whichever program this is
	if len(os.Args) > 2 && os.Args[0] == heldName {
		os.Exit(become(os.Args[1], os.Args[2:])) //nolint:forbidigo // it is no agent: it becomes a workload
	}
}

// become waits to be released, and then executes the program at a path. It returns only if it was
// not released or exec failed.
func become(path string, argv []string) (code int) {
	syscall.CloseOnExec(heldGate)
	syscall.CloseOnExec(heldAnswer)
	gate, answer := os.NewFile(heldGate, "gate"), os.NewFile(heldAnswer, "answer")
	if _, err := io.ReadFull(gate, make([]byte, 1)); err != nil {
		return 0 // the agent has ended, or has changed its mind
	}
	err := syscall.Exec(path, argv, os.Environ())
	_, _ = fmt.Fprintf(answer, "exec %s: %s", path, err)
	return 127
}

// held is a process that waits to become the workload.
type held struct {
	cmd    *exec.Cmd
	rec    record
	gate   *os.File
	answer *os.File
}

// hold starts a process that becomes a program once it is released. It returns an error if there is
// no such program.
func (c Config) hold(argv []string, vars map[string]string, out *os.File) (_ *held, err error) {
	program := exec.Command(argv[0])
	if program.Err != nil {
		return nil, program.Err
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
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{heldName, program.Path}, argv...)
	cmd.ExtraFiles = []*os.File{pipes[0], pipes[3]}
	rec, err := c.start(cmd, vars, out)
	if err != nil {
		return nil, err
	}
	return &held{cmd: cmd, rec: rec, gate: pipes[1], answer: pipes[2]}, nil
}

// letGo makes the process become the workload. If the disk delays that, it may still happen after
// ctx has ended.
func (h *held) letGo(ctx context.Context) error {
	defer h.answer.Close()
	_, err := h.gate.Write([]byte{1})
	if err = errors.Join(err, h.gate.Close()); err != nil {
		h.reap()
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = h.answer.SetReadDeadline(time.Unix(1, 0)) })()
	why, err := io.ReadAll(h.answer) // exec closes it
	if len(why) > 0 {
		h.reap()
		return errors.New(string(why))
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("start process: %w", err)
	}
	return nil
}

// drop ends a process that was not released.
func (h *held) drop() {
	_ = errors.Join(h.gate.Close(), h.answer.Close()) // errors of closing pipes
	h.reap()
}

func (h *held) reap() {
	_ = signalGroup(h.rec.PID, syscall.SIGKILL) // it has run nothing
	_ = h.cmd.Wait()
}

// awaitRecord waits briefly until the disk has the record: a disk that hangs prevents no start. It
// reports whether ctx has not ended.
func (r *Runner) awaitRecord(ctx context.Context) bool {
	late := time.NewTimer(diskWait)
	defer late.Stop()
	if written := r.records.written(); written != nil {
		select {
		case <-written:
		case <-late.C:
			r.log.Warn("workload is started before it is recorded: the disk is slow")
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}
