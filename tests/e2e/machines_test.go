package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// resident is a running process of a machine.
type resident struct {
	pid      int
	shard    string
	instance string
}

func (r resident) String() string { return fmt.Sprintf("process %d of %s", r.pid, r.instance) }

// residents are all running processes of the machines of these shards. A process that has ended and waits for its parent to
// notice has no environment, so it is none.
func residents(shards []string) []resident {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		panic(err)
	}
	var out []resident
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			marker, ok := strings.CutPrefix(string(v), provider.EnvMachine+"=")
			if !ok {
				continue
			}
			if shard, instance, _ := strings.Cut(marker, "/"); slices.Contains(shards, shard) {
				out = append(out, resident{pid: pid, shard: shard, instance: instance})
			}
		}
	}
	return out
}

// killMachines kills all processes of the machines of these shards, until there are none.
func killMachines(shards []string) {
	for all := residents(shards); len(all) > 0; all = residents(shards) {
		for _, r := range all {
			_ = syscall.Kill(r.pid, syscall.SIGKILL)
		}
		<-time.After(10 * time.Millisecond) // the kernel takes a moment
	}
}

// machine is the part of machine.json that tells which process the agent is.
type machine struct {
	Shard string `json:"shard"`
	PID   int    `json:"pid"`
}

func readMachine(dir, instance string) (machine, error) {
	var m machine
	data, err := os.ReadFile(filepath.Join(dir, instance, "machine.json"))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(data, &m)
}

// machineNames are the machines that a directory holds.
func machineNames(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, e.Name())
		}
	}
	return out
}

// shardsOf are the shards that the machines in a directory belong to, and those that machines belonged to before.
func shardsOf(dir string) []string {
	var out []string
	add := func(shard string) {
		if shard != "" && !slices.Contains(out, shard) {
			out = append(out, shard)
		}
	}
	for _, name := range machineNames(dir) {
		if m, err := readMachine(dir, name); err == nil {
			add(m.Shard)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, ".deleted"))
	if err != nil {
		return out
	}
	for _, e := range entries {
		_, shard, _ := strings.Cut(e.Name(), "@")
		add(shard)
	}
	return out
}
