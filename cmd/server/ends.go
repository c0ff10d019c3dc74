package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
)

// longestWhy is how much is kept of why a part ended, and of what the operator can do, in bytes.
const longestWhy = 300

// maxPending bounds how many ends wait for the disk.
const maxPending = 100

// ends records in the data directory which parts ended by themselves, for the replica, which
// announces it. A record that cannot be written or read costs no more than that. add never waits
// for a disk that hangs; begin does, as everything at a start.
type ends struct {
	mu      sync.Mutex
	pending []store.PartEnds
	writing bool
	done    sync.WaitGroup // of the writer

	place Place
	log   *slog.Logger
	now   func() time.Time
}

// add records an end.
func (e *ends) add(part, why, next string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pending) == maxPending {
		e.log.Warn("status will not know that a part of the server ended: the disk hangs", "part", part)
		return
	}
	e.pending = append(e.pending, store.PartEnds{
		Part: part, Last: e.now().UTC().Truncate(time.Second), Why: cut(why), Next: cut(next),
	})
	if !e.writing {
		e.writing = true
		e.done.Go(e.write)
	}
}

// write records all that is pending.
func (e *ends) write() {
	for {
		e.mu.Lock()
		all := e.pending
		e.pending, e.writing = nil, len(all) > 0
		e.mu.Unlock()
		if len(all) == 0 {
			return
		}
		ended := e.place.ended()
		for _, end := range all {
			ended = store.EndedAgain(ended, end)
		}
		text, err := json.MarshalIndent(ended, "", "  ")
		if err == nil {
			err = durable.Replace(e.place.ends(), append(text, '\n'), 0o600)
		}
		if err != nil {
			e.log.Warn("status will not know that a part of the server ended", "part", all[0].Part, "error", err)
		}
	}
}

// begin notes that a supervisor runs here, until over is called. If the note of an earlier one is
// still there, that one did not end in order, and its end is recorded. A note from an earlier boot
// of the machine proves nothing: the machine may have lost its power. The directory's lock is held:
// no other supervisor runs.
func (e *ends) begin() (over func()) {
	file := e.place.running()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return func() {}
	}
	if before, err := os.ReadFile(file); err == nil && bytes.Equal(before, boot) {
		e.add(supervisor, "it was killed, crashed, or did not stop in time",
			"on that host: journalctl -u leasehold-server, and journalctl -k for \"out of memory\"")
	}
	if err := os.WriteFile(file, boot, 0o600); err != nil {
		e.log.Debug("status will not know if this process is killed", "error", err)
	}
	return func() { _ = os.Remove(file) }
}

// supervisor is what ends of the supervisor, and with it of both parts, are recorded as.
const supervisor = "server"

func (p Place) running() string { return p.file("running") }

func (p Place) ends() string { return p.file("ended.json") }

// ended returns which parts ended by themselves.
func (p Place) ended() (all []store.PartEnds) {
	text, err := os.ReadFile(p.ends())
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

func cut(text string) string { return clip.Start(reason.OneLine(text), longestWhy) }
