package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/agent/contact"
	"github.com/leasehold/leasehold/agent/notice"
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
	duty
}

// duty is what the agent was told to be, as far as it has taken it over, and what it has done once and must not do again.
type duty struct {
	// ConfigHash is that of Run, Vars and Checks; "": the first two are those of the bootstrap document.
	ConfigHash string            `json:"config_hash,omitempty"`
	Run        []string          `json:"run,omitempty"`
	Vars       map[string]string `json:"vars,omitempty"`
	Checks     []json.RawMessage `json:"checks,omitempty"` // as they were told
	Lifecycle  string            `json:"lifecycle,omitempty"`
	Notices    notice.Spec       `json:"notices,omitzero"`

	OnLeaseLost    string    `json:"on_lease_lost,omitempty"`
	OnLeaseLostRun []string  `json:"on_lease_lost_run,omitempty"`
	Lease          *stamp    `json:"lease_known,omitempty"` // where anything is done on its loss
	Restarted      string    `json:"restarted,omitempty"`   // token of the last restart that was carried out
	Drained        string    `json:"drained,omitempty"`     // token of the last drain whose hook has ended
	Verdicts       *verdicts `json:"verdicts,omitempty"`
}

// readMemory returns what the former run of the agent of this instance left; nothing, if there was none.
func readMemory(path, instance string) (contact.Memory, duty, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return contact.Memory{}, duty{}, nil
	}
	if err != nil {
		return contact.Memory{}, duty{}, fmt.Errorf("read agent state: %w", err)
	}
	var r remembered
	if err := json.Unmarshal(data, &r); err != nil {
		return contact.Memory{}, duty{}, fmt.Errorf("read agent state %s: %w", path, err)
	}
	if r.Schema > memorySchema {
		return contact.Memory{}, duty{}, fmt.Errorf("read agent state %s: schema %d is newer than this agent's %d", path, r.Schema, memorySchema)
	}
	if r.Instance != instance {
		return contact.Memory{}, duty{}, fmt.Errorf("read agent state %s: it is of instance %s", path, r.Instance)
	}
	return contact.Memory{Epoch: r.Epoch, Lease: r.Lease, Replicas: r.Coordinators, Retired: r.Retired}, r.duty, nil
}

// writeMemory replaces the file as a whole. It is synced where its duty is new: what a power failure takes back of the rest, a
// replica tells.
func writeMemory(path, instance string, m contact.Memory, d duty, sync bool) error {
	data, err := json.Marshal(remembered{
		Schema: memorySchema, Instance: instance,
		Epoch: m.Epoch, Lease: m.Lease, Coordinators: m.Replicas, Retired: m.Retired, duty: d,
	})
	if err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := writeFile(next, data, sync); err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	return nil
}

func writeFile(path string, data []byte, sync bool) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
