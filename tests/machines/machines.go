package machines

import (
	"bytes"
	"encoding/json"
	"errors"
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

// Resident is a running process of a machine.
type Resident struct {
	PID      int
	Shard    string
	Instance string
}

func (r Resident) String() string { return fmt.Sprintf("process %d of %s", r.PID, r.Instance) }

// EnvTest marks every process of a machine that a test has made, with a name of the test, a slash
// and the instance. Processes inherit it from the agent.
const EnvTest = "LEASEHOLD_TEST_MACHINE"

// Carrier is a running process in whose environment a variable is set.
type Carrier struct {
	PID   int
	Value string
}

// Carriers returns all running processes that have a variable in their environment. A zombie has no
// environment, so it is not among them.
func Carriers(variable string) []Carrier {
	dir, err := os.Open("/proc")
	if err != nil {
		panic(err)
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		panic(err)
	}
	var out []Carrier
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if value, carries := Carries(pid, variable); carries {
			out = append(out, Carrier{pid, value})
		}
	}
	return out
}

// Carries reports whether a running process has a variable in its environment.
func Carries(pid int, variable string) (value string, carries bool) {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if name, value, _ := strings.Cut(string(v), "="); name == variable {
			return value, true
		}
	}
	return "", false
}

// Residents returns all running processes of the machines of these shards.
func Residents(shards []string) []Resident {
	var out []Resident
	for _, c := range Carriers(provider.EnvMachine) {
		if shard, instance, _ := strings.Cut(c.Value, "/"); slices.Contains(shards, shard) {
			out = append(out, Resident{PID: c.PID, Shard: shard, Instance: instance})
		}
	}
	return out
}

// Kill kills all processes of the machines of these shards, until none is left. Workloads that
// overwrite their environment, as nginx does, are found by the records of agents in a provider's
// directory.
func Kill(dir string, shards []string) {
	for _, group := range workloads(dir) {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
	for all := Residents(shards); len(all) > 0; all = Residents(shards) {
		for _, r := range all {
			_ = syscall.Kill(r.PID, syscall.SIGKILL)
		}
		<-time.After(10 * time.Millisecond) // the kernel takes a moment
	}
}

// KillMarked kills all processes that have a variable whose value has the prefix, until none is
// left. It looks once more after it found none, because a process in the middle of exec shows no
// environment.
func KillMarked(variable, prefix string) {
	for clean := 0; clean < 2; clean++ {
		for _, c := range Carriers(variable) {
			if strings.HasPrefix(c.Value, prefix) {
				clean = -1
				_ = syscall.Kill(c.PID, syscall.SIGKILL)
			}
		}
		<-time.After(10 * time.Millisecond) // the kernel takes a moment
	}
}

// Machine is the part of machine.json that says which process the agent is.
type Machine struct {
	Shard string `json:"shard"`
	PID   int    `json:"pid"`
	Port  int    `json:"port"`
}

// workloads returns the process groups of the workloads that run on the machines in a directory, as
// far as they are surely theirs: of the process that the agent has recorded, or of one whose first
// process has ended, since no other gets its number meanwhile.
func workloads(dir string) (groups []int) {
	kernel, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		panic(err)
	}
	for _, place := range []string{dir, filepath.Join(dir, ".deleted")} {
		records, err := filepath.Glob(filepath.Join(place, "*", provider.WorkloadFile))
		if err != nil {
			panic(err)
		}
		for _, path := range records {
			var w provider.WorkloadProcess
			data, err := os.ReadFile(path)
			if err != nil || json.Unmarshal(data, &w) != nil || w.PID <= 1 ||
				w.Kernel != strings.TrimSpace(string(kernel)) {
				continue
			}
			if start, runs := startOf(w.PID); !runs || start == w.Start {
				groups = append(groups, w.PID)
			}
		}
	}
	return groups
}

// startOf returns when a process was started, as the kernel counts it.
func startOf(pid int) (start string, runs bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// What is before the last parenthesis is its number and name, which may have any characters.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const field = 22 - 3 // the first one here is the third
	if len(fields) <= field {
		return "", false
	}
	return fields[field], true
}

// Read reads the record of a machine in a provider's directory.
func Read(dir, instance string) (Machine, error) {
	var m Machine
	data, err := os.ReadFile(filepath.Join(dir, instance, "machine.json"))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(data, &m)
}

// Names returns the machines in a directory.
func Names(dir string) []string {
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

// Shards returns the shards to which the machines in a directory belong, or belonged before.
func Shards(dir string) []string {
	var out []string
	add := func(shard string) {
		if shard != "" && !slices.Contains(out, shard) {
			out = append(out, shard)
		}
	}
	for _, name := range Names(dir) {
		if m, err := Read(dir, name); err == nil {
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
