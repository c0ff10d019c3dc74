package process

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/provider/durable"
)

const (
	locksDir   = ".locks"
	newDir     = ".new"
	trashDir   = ".trash"
	deletedDir = ".deleted"

	recordFile    = "machine.json"
	bootstrapFile = "bootstrap.json"
	logFile       = "agent.log"
	workDir       = "work"

	recordSchema = 1
)

// step is how far a machine's present boot has come, as recorded. What List says is worked out from
// it and from what runs.
type step string

const (
	stepStarting step = "starting" // intent: the agent may or may not have been forked
	stepStarted  step = "started"  // PID and Start are the agent's
	stepFailed   step = "failed"   // it could not be forked; Why says why
	stepStopping step = "stopping" // Stop was asked for
	stepStopped  step = "stopped"  // Stop has made sure that nothing runs
)

// record is machine.json.
type record struct {
	Schema   int       `json:"schema"`
	Instance string    `json:"instance"`
	Shard    string    `json:"shard"`
	Group    string    `json:"group"`
	Zone     string    `json:"zone"`
	Port     int       `json:"port"`
	Created  time.Time `json:"created"`

	State    step   `json:"state"`
	Halted   bool   `json:"halted,omitempty"` // stopped by Halt: Resume starts it again
	Why      string `json:"why,omitempty"`
	Boot     int    `json:"boot"`      // counts the boots
	BootID   string `json:"boot_id"`   // of the present one
	HostBoot string `json:"host_boot"` // the kernel's boot ID under which Begun, PID and Start hold
	Begun    int64  `json:"begun_ms"`  // when the start was intended, in milliseconds since the kernel booted
	PID      int    `json:"pid,omitempty"`
	Start    uint64 `json:"start,omitempty"` // the process's start time, /proc/<pid>/stat field 22
	Exit     *exit  `json:"exit,omitempty"`
}

// exit is how an agent ended, where that could be learnt.
type exit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

func (e *exit) String() string {
	switch {
	case e == nil:
		return "the agent ended, and how is not known"
	case e.Signal != "":
		return "the agent was ended by signal " + e.Signal
	default:
		return "the agent ended with exit code " + strconv.Itoa(e.Code)
	}
}

func (r record) marker() string  { return r.Shard + "/" + r.Instance }
func (r record) address() string { return loopback + ":" + strconv.Itoa(r.Port) }

// errAbsent: there is no such machine, or it is another shard's.
var errAbsent = errors.New("machine is absent")

func (p *Provider) machineDir(instance string) string { return filepath.Join(p.dir, instance) }

// find reads the record of a shard's machine, or says errAbsent.
func (p *Provider) find(shard, instance string) (record, error) {
	r, err := p.read(instance)
	if err == nil && r.Shard != shard {
		return record{}, errAbsent
	}
	return r, err
}

// read reads a record. It says errAbsent only when the whole directory is gone: a directory without
// a record is damage, and no reason to say that there is no machine.
func (p *Provider) read(instance string) (record, error) {
	dir := p.machineDir(instance)
	path := filepath.Join(dir, recordFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
			return record{}, errAbsent
		}
		// It may have been renamed away and back; only a second look at both tells.
		data, err = os.ReadFile(path)
	}
	var r record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Instance != instance {
		err = fmt.Errorf("it is the record of %q", r.Instance)
	}
	if err == nil && r.Schema > recordSchema {
		return record{}, fmt.Errorf("read machine %s: schema %d is newer than %d: upgrade this program", instance,
			r.Schema, recordSchema)
	}
	if err != nil {
		return record{}, fmt.Errorf("read machine %s: %w: repair %s, or end its processes and remove %s", instance, err,
			path, dir)
	}
	return r, nil
}

func (p *Provider) write(r record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write machine %s: %w", r.Instance, err)
	}
	if err := durable.Replace(filepath.Join(p.machineDir(r.Instance), recordFile), append(data, '\n'),
		0o600); err != nil {
		return fmt.Errorf("write machine %s: %w", r.Instance, err)
	}
	return nil
}

// instances are the names of all machines' directories.
func (p *Provider) instances() ([]string, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func newBootID() string { return rand.Text() }
