package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// onceOutput is how much of the output of a command that runs once is kept.
const onceOutput = 2 << 10

// lastWords is how long output is still read once its writers should be gone.
const lastWords = 100 * time.Millisecond

// RunOnce runs a command beside the workload, as it would run itself, and returns how it ended and
// the last of its output. When the context ends it is killed. Whatever it leaves running in its
// process group is killed in any case.
func (c Config) RunOnce(ctx context.Context, argv []string, vars map[string]string) (*Exit, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("no command")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer r.Close()
	cmd, rec, err := c.begin(ctx, argv, vars, w)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	var last tail
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&last, r) }) // ends with the last writer, or with the pipe
	ended := awaitEnd(ctx, rec.PID, rec.Start)
	// Its exit code has not been read yet, so the group's number is still its own.
	killed := signalGroup(rec.PID, syscall.SIGKILL)
	_ = cmd.Wait()                                   // what it says is in ProcessState
	_ = r.SetReadDeadline(time.Now().Add(lastWords)) // one that left its group may hold the other end for ever
	reading.Wait()
	exit := exitOf(cmd.ProcessState)
	exit.Output = c.Secrets.VeilEnd(last.kept)
	return exit, errors.Join(ended, killed)
}

// tail keeps the last of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-onceOutput):]...)
	if over := len(t.kept) - onceOutput; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}
