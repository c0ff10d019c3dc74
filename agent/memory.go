package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/session"
	"github.com/leasehold/leasehold/provider/durable"
)

const memorySchema = 1

// remembered is the agent's state file.
type remembered struct {
	Schema       int      `json:"schema"`
	Instance     string   `json:"instance"` // the clone of a disk must not use the epoch of the machine that it was copied from
	Epoch        uint64   `json:"epoch"`
	Lease        int64    `json:"lease"`
	Coordinators []string `json:"coordinators"`
	// Retired is kept for an agent of an earlier release after a downgrade. Alone it proves
	// nothing: a coordinator of such a release called an instance retired if it merely had no
	// record of it (SAFE-14).
	Retired         bool   `json:"retired,omitempty"`
	RetiredRevision int64  `json:"retired_revision,omitempty"`
	RetiredPhase    string `json:"retired_phase,omitempty"`
	assignment
}

// assignment is what the replica wants, as far as the agent has applied it, and what the agent has
// done once and must not repeat.
type assignment struct {
	// ConfigHash is the hash of Run, Vars, Secrets and Checks; "": Run, Vars and Secrets are those
	// of the bootstrap document.
	ConfigHash string            `json:"config_hash,omitempty"`
	Run        []string          `json:"run,omitempty"`
	Vars       map[string]string `json:"vars,omitempty"`
	Secrets    map[string]string `json:"secrets,omitempty"` // names of secrets, by variable; values are never stored
	Checks     []json.RawMessage `json:"checks,omitempty"`  // as received
	Files      bool              `json:"files,omitempty"`   // the configuration has files
	Lifecycle  string            `json:"lifecycle,omitempty"`
	Notices    notice.Spec       `json:"notices,omitzero"`

	OnLeaseLost    string    `json:"on_lease_lost,omitempty"`
	OnLeaseLostRun []string  `json:"on_lease_lost_run,omitempty"`
	Lease          *stamp    `json:"lease_known,omitempty"` // if the group acts on its loss
	Restarted      string    `json:"restarted,omitempty"`   // token of the last completed restart
	Drained        string    `json:"drained,omitempty"`     // token of the last drain whose hook has ended
	Verdicts       *verdicts `json:"verdicts,omitempty"`

	// the instance's claim, sealed by a coordinator (SAFE-17); opaque to the agent
	Claim []byte `json:"claim,omitempty"`
}

// readMemory returns the state that the former run of this instance's agent left, or nothing if
// there was none.
func readMemory(path, instance string) (session.Memory, assignment, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return session.Memory{}, assignment{}, nil
	}
	if err != nil {
		return session.Memory{}, assignment{}, fmt.Errorf("read agent state: %w", err)
	}
	var r remembered
	if err := json.Unmarshal(data, &r); err != nil {
		return session.Memory{}, assignment{}, fmt.Errorf("read agent state %s: %w", path, err)
	}
	if r.Schema > memorySchema {
		return session.Memory{}, assignment{},
			fmt.Errorf("read agent state %s: schema %d is newer than this agent's %d", path, r.Schema, memorySchema)
	}
	if r.Instance != instance {
		return session.Memory{}, assignment{}, fmt.Errorf("read agent state %s: it is of instance %s", path, r.Instance)
	}
	if len(r.Claim) > protocol.MaxClaim {
		r.Claim = nil
	}
	m := session.Memory{Epoch: r.Epoch, Lease: r.Lease, Replicas: r.Coordinators}
	if c := (session.Condemnation{Revision: r.RetiredRevision, Phase: r.RetiredPhase}); r.Retired && c.Holds() {
		m.Condemned = c
	}
	return m, r.assignment, nil
}

// stateFile is a content of the state file that is waiting to be written.
type stateFile struct {
	memory     session.Memory
	assignment assignment
	novel      bool          // the assignment is new, and no replica will send it again
	done       chan struct{} // closed after the attempt to write
}

// State is written before it is reported. But the disk may hang or be slow, and that must neither
// cost the lease nor let the machine run without one.
const (
	// diskWait is how long the loop waits for the disk, in total if several writes follow each
	// other, as when an agent is welcomed.
	diskWait = time.Second
	// After waiting for the disk the loop waits again only when diskRest times that duration has
	// passed.
	diskRest = 20
)

// stateWriter writes the state file outside the loop. Only the last content counts.
type stateWriter struct {
	save    func(stateFile) error
	log     *slog.Logger
	pending chan stateFile
	ended   chan struct{}
	late    <-chan struct{} // closed when the write that was late is done; nil: no write is late

	slow   bool          // as logged last
	waited time.Duration // time waited for the disk recently
	at     time.Time     // when waited was last updated
}

func newStateWriter(save func(stateFile) error, log *slog.Logger) *stateWriter {
	return &stateWriter{save: save, log: log, pending: make(chan stateFile, 1), ended: make(chan struct{})}
}

// write queues a content and waits until it is written, unless the disk is known to hang or be
// slow. Only the loop calls it.
func (s *stateWriter) write(p stateFile) {
	p.done = make(chan struct{})
	select {
	case old := <-s.pending: // the write of it has not begun
		p.novel, p.done = p.novel || old.novel, old.done
	default:
	}
	s.pending <- p
	select {
	case <-s.late:
		s.late = nil
	default:
	}
	if s.late != nil {
		return
	}
	began := time.Now()
	s.waited = max(0, s.waited-began.Sub(s.at)/diskRest)
	if !await(p.done, diskWait-s.waited) {
		s.late = p.done
	}
	s.at = time.Now()
	s.waited += s.at.Sub(began)
	s.note(s.late != nil)
}

// note logs when the disk becomes slow and when it recovers.
func (s *stateWriter) note(slow bool) {
	switch {
	case slow && !s.slow:
		s.log.Warn("state is not written in time: the disk is slow")
	case !slow && s.slow:
		s.log.Info("state is written in time again")
	}
	s.slow = slow
}

// await reports whether done was closed in time.
func await(done <-chan struct{}, most time.Duration) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// run writes until close.
func (s *stateWriter) run() {
	defer close(s.ended)
	for p := range s.pending {
		err := s.save(p)
		switch {
		case err == nil:
		case p.novel:
			s.log.Warn("wanted state could not be written: a restart of the agent would lose it", "error", err)
		default:
			s.log.Debug("state is not kept", "error", err)
		}
		close(p.done)
	}
}

// close ends run once everything is written, and waits as write does. It reports whether everything
// is written.
func (s *stateWriter) close() bool {
	close(s.pending)
	written := await(s.ended, diskWait)
	s.note(!written)
	return written
}

// writeMemory replaces the file atomically and durably.
func writeMemory(path, instance string, m session.Memory, d assignment) error {
	data, err := json.Marshal(remembered{
		Schema: memorySchema, Instance: instance,
		Epoch: m.Epoch, Lease: m.Lease, Coordinators: m.Replicas,
		Retired: m.Condemned.Holds(), RetiredRevision: m.Condemned.Revision, RetiredPhase: m.Condemned.Phase, assignment: d,
	})
	if err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	return durable.Replace(path, data, 0o640)
}
