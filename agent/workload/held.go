package workload

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/agent/gated"
)

// heldProcess is one that waits to become a program.
type heldProcess struct {
	*gated.Process
	cmd *exec.Cmd
	rec record
}

// hold starts a process that becomes a program once it is let go, in its own process group. It
// writes its output to a file, so that it needs no agent. It returns an error if there is no such
// program, or if ctx ends while the disk is asked for it.
func (c Config) hold(ctx context.Context, argv []string, vars map[string]string, out *os.File) (*heldProcess, error) {
	cmd, err := command(ctx, argv)
	if err != nil {
		return nil, err
	}
	cmd.Dir = c.Dir
	cmd.Env = c.environment(vars)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := gated.Start(cmd)
	if err != nil {
		return nil, err
	}
	rec := record{Boot: c.Boot, Kernel: kernelBoot(), PID: cmd.Process.Pid}
	if s, err := readStat(rec.PID); err == nil {
		rec.Start = s.start
	}
	return &heldProcess{Process: p, cmd: cmd, rec: rec}, nil
}

// command looks for the program. A disk that hangs may block that.
func command(ctx context.Context, argv []string) (*exec.Cmd, error) {
	found := make(chan *exec.Cmd, 1)
	go func() { found <- exec.Command(argv[0], argv[1:]...) }()
	select {
	case cmd := <-found:
		return cmd, cmd.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// letGo has the process become the program. If the disk holds that up, it may still become so when
// ctx has ended.
func (h *heldProcess) letGo(ctx context.Context) error {
	err := h.LetGo(ctx)
	if err != nil {
		h.reap()
	}
	return err
}

// drop ends a process that was not let go.
func (h *heldProcess) drop() {
	h.Drop()
	h.reap()
}

func (h *heldProcess) reap() {
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
