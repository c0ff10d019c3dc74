package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/agent/contact"
)

const memorySchema = 1

// remembered is the agent's state file.
type remembered struct {
	Schema       int      `json:"schema"`
	Instance     string   `json:"instance"` // a copied disk must not speak with the epoch of the machine it came from
	Epoch        uint64   `json:"epoch"`
	Lease        int64    `json:"lease"`
	Coordinators []string `json:"coordinators"`
	Retired      bool     `json:"retired,omitempty"`
}

// readMemory returns what the former run of the agent of this instance left; nothing, if there was none.
func readMemory(path, instance string) (contact.Memory, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return contact.Memory{}, nil
	}
	if err != nil {
		return contact.Memory{}, fmt.Errorf("read agent state: %w", err)
	}
	var r remembered
	if err := json.Unmarshal(data, &r); err != nil {
		return contact.Memory{}, fmt.Errorf("read agent state %s: %w", path, err)
	}
	if r.Schema > memorySchema {
		return contact.Memory{}, fmt.Errorf("read agent state %s: schema %d is newer than this agent's %d", path, r.Schema, memorySchema)
	}
	if r.Instance != instance {
		return contact.Memory{}, fmt.Errorf("read agent state %s: it is of instance %s", path, r.Instance)
	}
	return contact.Memory{Epoch: r.Epoch, Lease: r.Lease, Replicas: r.Coordinators, Retired: r.Retired}, nil
}

// writeMemory replaces the file as a whole. It is not synced: what a power failure takes back, a replica tells.
func writeMemory(path, instance string, m contact.Memory) error {
	data, err := json.Marshal(remembered{
		Schema: memorySchema, Instance: instance,
		Epoch: m.Epoch, Lease: m.Lease, Coordinators: m.Replicas, Retired: m.Retired,
	})
	if err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(next, data, 0o640); err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	return nil
}
