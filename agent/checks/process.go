package checks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/agent/protocol"
)

// kernelName is the length to which the kernel cuts a program's name.
const kernelName = 15

// newProcessProbe returns a probe that passes if the process runs.
func newProcessProbe(c *protocol.ProcessCheck) probe {
	if c.GetPidFile() != "" {
		return func(context.Context) Result { return byPIDFile(c.GetPidFile()) }
	}
	var last string // where it was found last: looking there first saves a search of all processes
	return func(ctx context.Context) Result {
		if last != "" && isCalled(last, c.GetName()) {
			return ""
		}
		var why Result
		last, why = find(ctx, c.GetName())
		return why
	}
}

func byPIDFile(file string) Result {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Result(file + " does not exist")
	}
	if err != nil {
		return Result(err.Error())
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return Result(err.Error())
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(word))
	if err != nil || pid < 1 {
		return Result(fmt.Sprintf("%s holds no process ID", file))
	}
	if _, runs := stat(strconv.Itoa(pid)); !runs {
		return Result(fmt.Sprintf("process %d from %s does not run", pid, file))
	}
	return ""
}

// find looks for a program among all processes.
func find(ctx context.Context, name string) (pid string, why Result) {
	proc, err := os.Open("/proc")
	if err != nil {
		return "", Result(err.Error())
	}
	defer proc.Close()
	for {
		some, err := proc.Readdirnames(256)
		for _, pid := range some {
			if pid[0] >= '1' && pid[0] <= '9' && isCalled(pid, name) {
				return pid, ""
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return "", Result(fmt.Sprintf("no process is called %q", name))
		case err != nil:
			return "", Result(err.Error())
		case ctx.Err() != nil:
			return "", timedOut
		}
	}
}

// isCalled reports whether the process runs and has this name: by the kernel, which cuts long
// names, or, where it was cut, by its command line.
func isCalled(pid, name string) bool {
	comm, runs := stat(pid)
	if !runs || comm != name[:min(len(name), kernelName)] {
		return false
	}
	if len(name) <= kernelName {
		return true
	}
	line, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil {
		return false
	}
	words := bytes.SplitN(line, []byte{0}, 3)
	for _, word := range words[:min(2, len(words))] { // a script's name follows its interpreter's
		if path.Base(string(word)) == name {
			return true
		}
	}
	return false
}

// stat returns the kernel's name of a process and whether it runs. A zombie does not run.
func stat(pid string) (comm string, runs bool) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", false
	}
	from, to := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')') // the name may contain any character
	if from < 0 || to < from || to+2 >= len(data) {
		return "", false
	}
	state := data[to+2]
	return string(data[from+1 : to]), state != 'Z' && state != 'X'
}
