package machines

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

// Resident is a running process of a machine.
type Resident struct {
	PID      int
	Shard    string
	Instance string
}

func (r Resident) String() string { return fmt.Sprintf("process %d of %s", r.PID, r.Instance) }

// Residents are all running processes of the machines of these shards. A process that has ended and waits for its parent to
// notice has no environment, so it is none.
func Residents(shards []string) []Resident {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		panic(err)
	}
	var out []Resident
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
				out = append(out, Resident{PID: pid, Shard: shard, Instance: instance})
			}
		}
	}
	return out
}

// Kill kills all processes of the machines of these shards, until there are none.
func Kill(shards []string) {
	for all := Residents(shards); len(all) > 0; all = Residents(shards) {
		for _, r := range all {
			_ = syscall.Kill(r.PID, syscall.SIGKILL)
		}
		<-time.After(10 * time.Millisecond) // the kernel takes a moment
	}
}

// Machine is the part of machine.json that tells which process the agent is.
type Machine struct {
	Shard string `json:"shard"`
	PID   int    `json:"pid"`
	Port  int    `json:"port"`
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

// Names are the machines that a directory holds.
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

// Shards are the shards that the machines in a directory belong to, and those that machines belonged to before.
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
