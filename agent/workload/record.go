package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/leasehold/leasehold/provider/durable"
)

// record is what a later run of the agent must know of the workload.
type record struct {
	Boot   string `json:"boot"`   // the machine's boot in which the workload was started
	Kernel string `json:"kernel"` // the kernel's boot in which PID and Start are valid
	PID    int    `json:"pid"`    // also the ID of its process group
	Start  string `json:"start"`
	Exit   *Exit  `json:"exit,omitempty"` // it ended by itself
}

// readJSON reads a record, and reports whether there is one.
func readJSON(path string, to any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read workload record: %w", err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return false, fmt.Errorf("read workload record %s: %w", path, err)
	}
	return true, nil
}

// writeRecord replaces the file as a whole.
func writeRecord(path string, r any) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write workload record: %w", err)
	}
	return durable.Replace(path, data, 0o640)
}

// runs reports whether the recorded process still runs.
func (r record) runs() bool {
	if r.PID <= 1 || r.Kernel == "" || r.Kernel != kernelBoot() {
		return false
	}
	s, err := readStat(r.PID)
	return err == nil && s.start == r.Start && s.state != "Z" && s.state != "X"
}
