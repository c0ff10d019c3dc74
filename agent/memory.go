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
	Instance     string   `json:"instance"` // a copied disk must not speak with the epoch of the machine it came from
	Epoch        uint64   `json:"epoch"`
	Lease        int64    `json:"lease"`
	Coordinators []string `json:"coordinators"`
	// Retired is for an agent of an earlier release, after a downgrade. By itself it says nothing:
	// a coordinator of such a release called an instance retired that it merely had no record of
	// (SAFE-14).
	Retired         bool   `json:"retired,omitempty"`
	RetiredRevision int64  `json:"retired_revision,omitempty"`
	RetiredPhase    string `json:"retired_phase,omitempty"`
	duty
}

// duty is what the agent was told to be, as far as it has taken it over, and what it has done once
// and must not do again.
type duty struct {
	// ConfigHash is the hash of Run, Vars, Secrets and Checks; "": all but the last belong to the
	// bootstrap document.
	ConfigHash string            `json:"config_hash,omitempty"`
	Run        []string          `json:"run,omitempty"`
	Vars       map[string]string `json:"vars,omitempty"`
	Secrets    map[string]string `json:"secrets,omitempty"` // their names, by variable; their values are never here
	Checks     []json.RawMessage `json:"checks,omitempty"`  // as they were told
	Files      bool              `json:"files,omitempty"`   // the configuration has files
	Lifecycle  string            `json:"lifecycle,omitempty"`
	Notices    notice.Spec       `json:"notices,omitzero"`

	OnLeaseLost    string    `json:"on_lease_lost,omitempty"`
	OnLeaseLostRun []string  `json:"on_lease_lost_run,omitempty"`
	Lease          *stamp    `json:"lease_known,omitempty"` // where anything is done on its loss
	Restarted      string    `json:"restarted,omitempty"`   // token of the last restart that was carried out
	Drained        string    `json:"drained,omitempty"`     // token of the last drain whose hook has ended
	Verdicts       *verdicts `json:"verdicts,omitempty"`

	// what the instance is, as a coordinator sealed it (SAFE-17); it means nothing to the agent
	Claim []byte `json:"claim,omitempty"`
}

// readMemory returns what the former run of the agent of this instance left; nothing, if there was
// none.
func readMemory(path, instance string) (session.Memory, duty, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return session.Memory{}, duty{}, nil
	}
	if err != nil {
		return session.Memory{}, duty{}, fmt.Errorf("read agent state: %w", err)
	}
	var r remembered
	if err := json.Unmarshal(data, &r); err != nil {
		return session.Memory{}, duty{}, fmt.Errorf("read agent state %s: %w", path, err)
	}
	if r.Schema > memorySchema {
		return session.Memory{}, duty{},
			fmt.Errorf("read agent state %s: schema %d is newer than this agent's %d", path, r.Schema, memorySchema)
	}
	if r.Instance != instance {
		return session.Memory{}, duty{}, fmt.Errorf("read agent state %s: it is of instance %s", path, r.Instance)
	}
	if len(r.Claim) > protocol.MostClaim {
		r.Claim = nil
	}
	m := session.Memory{Epoch: r.Epoch, Lease: r.Lease, Replicas: r.Coordinators}
	if c := (session.Condemnation{Revision: r.RetiredRevision, Phase: r.RetiredPhase}); r.Retired && c.Holds() {
		m.Condemned = c
	}
	return m, r.duty, nil
}

// page is what is to be in the state file.
type page struct {
	memory session.Memory
	duty   duty
	novel  bool          // the duty is new, and no replica says it again
	done   chan struct{} // closed when it was tried
}

// What is told is to be written before it is reported. But the disk may hang or be slow, and no
// lease must be lost, nor the machine go on without one, for that.
const (
	// diskWait is for how long the loop waits for the disk, for all pages together if they follow each
	// other: several are written when an agent is welcomed.
	diskWait = time.Second
	// diskRest is in how much time as much patience as it has used comes back, as a multiple.
	diskRest = 20
)

// scribe writes the state file apart from the loop. Only the last page counts.
type scribe struct {
	save  func(page) error
	log   *slog.Logger
	pages chan page
	ended chan struct{}
	late  <-chan struct{} // closed when that is written which was not in time; nil: all was

	slow   bool          // as the log has it
	waited time.Duration // for the disk of late
	at     time.Time     // when that was counted last
}

func newScribe(save func(page) error, log *slog.Logger) *scribe {
	return &scribe{save: save, log: log, pages: make(chan page, 1), ended: make(chan struct{})}
}

// write has a page written, and waits for that, unless the disk is known to hang or to be slow. It
// is called by the loop alone.
func (s *scribe) write(p page) {
	p.done = make(chan struct{})
	select {
	case old := <-s.pages: // it was not begun
		p.novel, p.done = p.novel || old.novel, old.done
	default:
	}
	s.pages <- p
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

// note logs when the disk begins to be slow, and when it is so no more.
func (s *scribe) note(slow bool) {
	switch {
	case slow && !s.slow:
		s.log.Warn("state is not written in time: the disk is slow")
	case !slow && s.slow:
		s.log.Info("state is written in time again")
	}
	s.slow = slow
}

// await reports whether something was done in time.
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
func (s *scribe) run() {
	defer close(s.ended)
	for p := range s.pages {
		err := s.save(p)
		switch {
		case err == nil:
		case p.novel:
			s.log.Warn("what this agent was told is not kept: one that is restarted would not know it", "error", err)
		default:
			s.log.Debug("state is not kept", "error", err)
		}
		close(p.done)
	}
}

// close ends run once everything is written, and waits for that as write does.
func (s *scribe) close() {
	close(s.pages)
	s.note(!await(s.ended, diskWait))
}

// writeMemory replaces the file as a whole, for good.
func writeMemory(path, instance string, m session.Memory, d duty) error {
	data, err := json.Marshal(remembered{
		Schema: memorySchema, Instance: instance,
		Epoch: m.Epoch, Lease: m.Lease, Coordinators: m.Replicas,
		Retired: m.Condemned.Holds(), RetiredRevision: m.Condemned.Revision, RetiredPhase: m.Condemned.Phase, duty: d,
	})
	if err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	return durable.Replace(path, data, 0o640)
}
