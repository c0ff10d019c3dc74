package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/tests/ports"
)

// addresses are for replicas' metrics. Other suites use other ports.
var addresses = ports.Between(8000, 10000)

// Vital is one resource usage of a process, or of etcd as a whole, at one moment.
type Vital struct {
	Of      string // "replica a", "member m0", "agent web-1-x", "etcd"
	Process int    // 0: of none
	What    string
	Value   float64
}

// The resources.
const (
	Memory      = "memory" // bytes that are a process's own
	HeapInUse   = "heap in use"
	HeapGoal    = "heap goal" // twice what lived when garbage was collected last
	Goroutines  = "goroutines"
	Descriptors = "file descriptors"
	Threads     = "threads"
	State       = "state on disk" // bytes in a machine's own directory
	DataInUse   = "data in use"   // bytes of a member's database
	DataFile    = "data file"     // bytes of the file that it is in
	Revisions   = "revisions kept"
	Keys        = "keys"
	KeysOf      = "keys below " // and a kind
	Leases      = "leases"
	Processes   = "processes" // of all machines
)

// The names of metrics of a replica, and of a member of etcd.
var (
	ofReplica = map[string]string{
		"go_memstats_heap_inuse_bytes": HeapInUse, "go_memstats_next_gc_bytes": HeapGoal,
		"go_goroutines": Goroutines,
	}
	ofEtcd = map[string]string{
		"etcd_debugging_mvcc_current_revision": Revisions,
		"etcd_debugging_mvcc_compact_revision": compacted, "go_goroutines": Goroutines,
	}
)

// compacted is the revision before which etcd keeps nothing.
const compacted = "compacted"

// Vitals returns the present usage of all processes.
func (c *Cluster) Vitals() (all []Vital, err error) {
	err = c.Patiently(func(ctx context.Context) error {
		all, err = c.vitals(ctx)
		return err
	})
	return all, err
}

func (c *Cluster) vitals(ctx context.Context) ([]Vital, error) {
	var all []Vital
	var failures []error
	add := func(of string, process int, told map[string]float64, err error) {
		if err != nil {
			failures = append(failures, fmt.Errorf("vitals of %s: %w", of, err))
		}
		for what, value := range told {
			all = append(all, Vital{Of: of, Process: process, What: what, Value: value})
		}
	}
	for _, id := range c.ReplicaIDs() {
		of, pid := "replica "+id, c.Replica(id).PID()
		told, err := used(pid)
		add(of, pid, told, err)
		told, err = scrape(ctx, c.numbers[id], ofReplica)
		add(of, pid, told, err)
	}
	for i, st := range c.ops.Status(ctx) {
		of, pid := "member "+st.Member, c.Member(i).PID()
		told, err := used(pid)
		add(of, pid, told, err)
		add(of, pid, map[string]float64{DataInUse: float64(st.InUse), DataFile: float64(st.Size)},
			errors.Join(st.Silent, st.Sick))
		told, err = scrape(ctx, c.Clients[i], ofEtcd)
		told[Revisions] -= told[compacted]
		delete(told, compacted)
		add(of, pid, told, err)
		if i == 0 {
			add("etcd", 0, map[string]float64{Keys: float64(st.Keys)}, nil)
		}
	}
	kinds := map[string]float64{}
	for _, kv := range c.Witness.Now().KVs {
		kind, _, _ := c.Keys.Split(kv.Key)
		kinds[KeysOf+kind]++
	}
	add("etcd", 0, kinds, nil)
	leases, err := c.Witness.Leases(ctx)
	add("etcd", 0, map[string]float64{Leases: float64(len(leases))}, err)
	processes := 0
	for _, pids := range c.Cloud.Processes() {
		processes += len(pids)
	}
	add("machines", 0, map[string]float64{Processes: float64(processes)}, nil)
	for _, id := range c.Cloud.Running() {
		pid := c.Cloud.PID(id)
		told, err := used(pid)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended meanwhile
		}
		add("agent "+id, pid, told, err)
		size, err := c.stateOf(id)
		add("agent "+id, pid, map[string]float64{State: size}, err)
	}
	return all, errors.Join(failures...)
}

// used reads a process's usage from the kernel.
func used(pid int) (map[string]float64, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return nil, err
	}
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return nil, err
	}
	told := map[string]float64{Descriptors: float64(len(open))}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		value, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		switch name {
		case "RssAnon":
			told[Memory] = value * 1024
		case "Threads":
			told[Threads] = value
		}
	}
	if told[Memory] == 0 {
		return nil, fs.ErrNotExist // it has ended, which was not noticed yet
	}
	return told, nil
}

// scrape reads metrics from an address, under this package's names.
func scrape(ctx context.Context, address string, names map[string]string) (told map[string]float64, err error) {
	told = map[string]float64{}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return told, err
	}
	req.Close = true // the test's own connection must not be counted
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return told, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return told, fmt.Errorf("%s says %s", req.URL, answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if ours, wanted := names[name]; wanted {
			if told[ours], err = strconv.ParseFloat(text, 64); err != nil {
				return told, fmt.Errorf("%s: %s: %w", req.URL, name, err)
			}
		}
	}
	if len(told) < len(names) {
		return told, fmt.Errorf("%s tells %v only, and not all of %v", req.URL, told, names)
	}
	return told, lines.Err()
}

// stateOf returns the size of a machine's state on disk.
func (c *Cluster) stateOf(id string) (size float64, err error) {
	err = filepath.WalkDir(filepath.Join(c.Dir, "machines", id), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			info, gone := entry.Info()
			if gone == nil {
				size += float64(info.Size())
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return size, err
}
