package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	osexec "os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/agent/secrets"
)

const (
	maxAnswer = 1 << 20  // bytes of an answer
	maxLong   = 16 << 20 // of a long one
	maxStderr = 64 << 10 // of the log that is kept of a call
	maxLines  = 20       // of a call's log that are passed on
	// lastWords is how long a program may take to end after SIGTERM, and its pipes to close.
	lastWords = 2 * time.Second
)

// MaxTimeout bounds a call whose context has no deadline.
const MaxTimeout = 10 * time.Minute

// Call is one call of a program.
type Call struct {
	Method   string
	Shard    string // the shard's tag; absent in calls without a shard
	Balancer string // the balancer's name, for a balancer's program
	Instance string
	Params   any // nil: none
	// Aside: the call does not count towards the concurrency, so that calls that hang cannot block
	// it.
	Aside bool
	// Long: its answer may have 16 MiB instead of 1 MiB.
	Long bool
	// Bare: the program gets no secrets.
	Bare bool
	// Hidden are values among the parameters, by name, that the program may repeat in a message and
	// that must not be shown. Its secrets are hidden without being named here.
	Hidden map[string]string
}

// Veiled is a result with texts of the program's for people. They go to the status and the journal,
// so they show no secrets.
type Veiled interface {
	Veil(veil func(text string) string)
}

// request is the program's input.
type request struct {
	API      int               `json:"api"`
	Method   string            `json:"method"`
	Deadline string            `json:"deadline"` // RFC 3339: the program is killed then
	Config   map[string]any    `json:"config"`
	Secrets  map[string]string `json:"secrets"`
	Shard    string            `json:"shard,omitempty"`
	Balancer string            `json:"balancer,omitempty"`
	Instance string            `json:"instance,omitempty"`
	Params   any               `json:"params"`
}

// Call runs the program once and decodes its result. Errors that the program reports are
// *provider.Error; after any other error nothing is known.
func (p *Program) Call(ctx context.Context, c Call, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	places := p.places
	if c.Aside {
		places = p.aside
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return ctx.Err()
	}
	r := request{
		API: p.api, Method: c.Method, Config: p.config.Config, Secrets: map[string]string{}, Shard: c.Shard,
		Balancer: c.Balancer, Instance: c.Instance, Params: c.Params,
	}
	if !c.Bare {
		var err error
		if r.Secrets, err = p.secrets(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, MaxTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	r.Deadline = deadline.UTC().Format(time.RFC3339Nano)
	if r.Config == nil {
		r.Config = map[string]any{}
	}
	if r.Params == nil {
		r.Params = struct{}{}
	}
	input, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	most := maxAnswer
	if c.Long {
		most = maxLong
	}
	out, heard, ended := p.run(ctx, input, most)
	hidden := maps.Clone(r.Secrets)
	maps.Copy(hidden, c.Hidden)
	veil := secrets.NewVeil(hidden)
	said := veil(string(heard)) // it may trace its commands, or print its input when it fails
	p.tell(c, said)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the program was killed, since its time was up: %w%s", err, lastLine(said))
	}
	return read(out, most, ended, said, veil, result)
}

// read decodes an answer. A result counts only if the program exited with status 0. Errors show no
// secrets: they go to the journal and to the status.
func read(out []byte, most int, ended error, said string, veil func(string) string, result any) error {
	if len(out) > most {
		return fmt.Errorf("the program's answer is longer than %d bytes", most)
	}
	var a answer
	decoder := json.NewDecoder(bytes.NewReader(out))
	err := decoder.Decode(&a)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after it")
		}
	}
	switch {
	case err == nil && a.Error != nil && a.Result == nil:
		a.Error.Code, a.Error.Scope, a.Error.Message = veil(a.Error.Code), veil(a.Error.Scope), veil(a.Error.Message)
		return a.Error.err()
	case ended != nil:
		return fmt.Errorf("the program ended without an answer: %w%s", ended, lastLine(said))
	case err != nil:
		return fmt.Errorf("the program's answer cannot be read: %w%s", err, lastLine(said))
	case a.Error != nil || a.Result == nil:
		return errors.New("the program's answer has neither a result nor an error, or both")
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("the program's result cannot be read: %w", err)
	}
	if shown, is := result.(Veiled); is {
		shown.Veil(veil)
	}
	return nil
}

// run starts the program in a session of its own and returns its output, at most one byte more than
// allowed. It kills what remains of its process group.
func (p *Program) run(ctx context.Context, input []byte, most int) (out, said []byte, err error) {
	var stdout, stderr bounded
	stdout.most, stderr.most = most+1, maxStderr
	cmd := osexec.CommandContext(ctx, p.command.path, p.command.args...)
	cmd.Dir, cmd.Env = p.command.dir, p.command.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: p.command.as}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = lastWords
	// A program that writes too much is killed at once.
	stdout.full = func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err = cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start the program: %w", err)
	}
	// Its remaining processes are killed before its process ID is released and could be reused.
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	err = cmd.Wait()
	if errors.Is(err, osexec.ErrWaitDelay) {
		// The program has ended, and a process that it started still held its output. Its answer is
		// complete.
		err = nil
	}
	return stdout.bytes(), stderr.bytes(), err
}

// tell copies the program's standard error to the coordinator's log.
func (p *Program) tell(c Call, said string) {
	for i, line := range strings.Split(strings.TrimSpace(said), "\n") {
		if line == "" || i == maxLines {
			break
		}
		p.config.Logger.Info("program", "call", c.Method, "instance", c.Instance, "says", Clip(line))
	}
}

// lastLine is the end of what the program wrote to its standard error, for the error.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": it says: " + Clip(last)
	}
	return ""
}

// bounded keeps the first bytes that are written to it, and drops the rest.
type bounded struct {
	most int
	full func()
	buf  bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(room, len(p))])
		if b.buf.Len() == b.most && b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}

func (b *bounded) bytes() []byte { return b.buf.Bytes() }
