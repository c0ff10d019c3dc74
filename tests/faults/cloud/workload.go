package cloud

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/tests/faults/history"
)

// lookEvery is how often a machine's workload is checked.
const lookEvery = 250 * time.Millisecond

// workload is the process that the machine's agent has recorded as its workload. It may have ended.
func (m *machine) workload() (pid int, err error) {
	var record struct {
		PID int `json:"pid"`
	}
	data, err := os.ReadFile(filepath.Join(m.dir, "workload.json"))
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	return record.PID, err
}

// watchWorkload looks at the machine's files, and records when the workload of a machine starts,
// and when it ends while the machine stays up. The kernel says whether it runs; the agent only
// provides its process ID.
func (c *Cloud) watchWorkload(ctx context.Context, m *machine) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	runs := 0   // its process at the last check
	missed := 0 // checks in a row that did not see it: a process in the middle of exec is invisible
	files := &sightings{wrong: map[string]string{}}
	for {
		c.lookAtFiles(m, files)
		select {
		case <-ctx.Done():
			c.lookAtFiles(m, files)
			return
		case <-tick.C:
		}
		pid, err := m.workload()
		if err != nil || pid <= 1 || !c.signal(m, pid, 0) {
			pid = 0
		}
		if runs == 0 || pid == runs || c.signal(m, runs, 0) {
			missed = 0
		} else if missed++; missed > 1 || pid != 0 {
			c.mu.Lock()
			if ctx.Err() == nil { // otherwise it ended with the machine
				c.note(m, history.WorkloadEnded, "")
			}
			c.mu.Unlock()
			runs, missed = 0, 0
		}
		if pid != 0 && pid != runs {
			c.mu.Lock()
			c.note(m, history.WorkloadBegan, "")
			c.mu.Unlock()
			runs = pid
		}
	}
}
