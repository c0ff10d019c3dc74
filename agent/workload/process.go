package workload

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// stat is a part of /proc/<pid>/stat.
type stat struct {
	state string // Z: it has ended, and its parent has not waited for it
	group int
	start string // in ticks since boot; with the process ID it identifies the process
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, fmt.Errorf("read process: %w", err)
	}
	// The second field is the command in parentheses, which may contain any character.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("read process: /proc/%d/stat has %d fields", pid, len(fields))
	}
	group, err := strconv.Atoi(fields[2])
	if err != nil {
		return stat{}, fmt.Errorf("read process: %w", err)
	}
	return stat{state: fields[0], group: group, start: fields[19]}, nil
}

// kernelBoot identifies the kernel's boot; empty if the kernel does not say.
func kernelBoot() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// signalGroup sends a signal to every process of the group. An empty group is no error.
func signalGroup(group int, sig syscall.Signal) error {
	if group <= 1 {
		// To the kernel, 0 and 1 mean the agent's own group and all processes.
		return fmt.Errorf("signal process group: %d is not a workload's", group)
	}
	if err := syscall.Kill(-group, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process group %d: %w", group, err)
	}
	return nil
}

// groupLives reports whether any process of the group still runs. Zombies do not count: without a
// process that reaps orphans they would count for ever.
func groupLives(group int) bool {
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return false
	}
	lives, err := anyOf(group, func(int) bool { return true })
	return lives || err != nil
}

// groupHas reports whether a process that runs in the group was started with this variable.
func groupHas(group int, variable string) bool {
	has, err := anyOf(group, func(pid int) bool {
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		return err == nil && slices.Contains(strings.Split(string(environ), "\x00"), variable)
	})
	return has && err == nil
}

// anyOf reports whether any process that runs in the group is as asked.
func anyOf(group int, is func(pid int) bool) (bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && s.group == group && s.state != "Z" && s.state != "X" && is(pid) {
			return true, nil
		}
	}
	return false, nil
}
