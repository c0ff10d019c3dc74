package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The environment of this program when it is started in another role.
const (
	envRole   = "LEASEHOLD_DETECT_ROLE"
	envConfig = "LEASEHOLD_DETECT_CONFIG"

	roleFirst = "first" // the first process of the namespaces
	roleBench = "bench" // the one that measures
)

// serveRole runs the role of this process, if it has one.
func serveRole(ctx context.Context) (code int, mine bool) {
	var err error
	switch os.Getenv(envRole) {
	case "":
		return 0, false
	case roleFirst:
		code, err = beFirst()
	case roleBench:
		var cfg config
		if err = json.Unmarshal([]byte(os.Getenv(envConfig)), &cfg); err == nil {
			err = runBench(ctx, cfg, os.Stderr)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	return code, true
}

// runApart runs the bench in namespaces of its own, and returns when all processes in them have
// ended.
func runApart(ctx context.Context, cfg config, progress io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	told, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	defer ours.Close()
	first := exec.Command(self)
	first.Env = append(os.Environ(), envRole+"="+roleFirst, envConfig+"="+string(told))
	first.Stdout, first.Stderr = progress, progress
	first.ExtraFiles = []*os.File{theirs}
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Setpgid:    true, // Ctrl-C must reach only this process
	}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	first.SysProcAttr = attr
	if err := first.Start(); err != nil {
		return fmt.Errorf("make namespaces: %w: run it as root", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ours.Close() })
	defer stop()
	err = first.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	return nil
}

// lifeline is the descriptor of the pipe to the program that started the namespaces, in their first
// process.
const lifeline = 3

// beFirst is the first process of the namespaces: it starts the bench, adopts orphans, and ends
// with the bench or with the program that started it. The kernel kills all others with it.
func beFirst() (int, error) {
	unix.CloseOnExec(lifeline)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeline, "lifeline"))
		os.Exit(1) //nolint:forbidigo // there is no caller left to return to
	}()
	for _, m := range []struct {
		what, on, kind string
		flags          uintptr
	}{
		{on: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
		{what: "proc", on: "/proc", kind: "proc", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{what: "tmpfs", on: "/run", kind: "tmpfs"}, // ip keeps names of networks there
	} {
		if err := unix.Mount(m.what, m.on, m.kind, m.flags, ""); err != nil {
			return 1, fmt.Errorf("mount %s: %w: run it as root", m.on, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	env := []string{envRole + "=" + roleBench}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, envRole+"=") {
			env = append(env, v)
		}
	}
	bench, err := os.StartProcess(self, []string{self},
		&os.ProcAttr{Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 1, fmt.Errorf("start the bench: %w", err)
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for the bench: %w", err)
		case pid != bench.Pid:
		case status.Signaled():
			return 1, fmt.Errorf("the bench was ended by %s", status.Signal())
		default:
			return status.ExitStatus(), nil
		}
	}
}
