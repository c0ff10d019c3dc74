package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// keep brings a file to the wanted state.
func (m *Manager) keep(ctx context.Context, f *protocol.File, vars map[string]string) error {
	path, err := workload.ExpandText("path", f.GetPath(), vars, m.cfg.Facts)
	if err != nil {
		return err
	}
	where, err := find(path, m.cfg.Roots)
	if err != nil {
		return err
	}
	if f.GetSecret() && !m.hidden[path] {
		if content, err := read(where); err == nil { // left by an earlier run of the agent
			m.deps.Hide(f.GetPath(), content)
		}
		m.hidden[path] = true
	}
	if f.GetProblem() != "" {
		return errors.New(f.GetProblem())
	}
	uid, gid, err := ownerOf(f.GetOwner())
	if err != nil {
		return err
	}
	wanted := attributes{fs.FileMode(f.GetMode()).Perm(), uid, gid}
	now, err := look(where, m.known[f.GetPath()])
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.New(plain(err, path))
	}
	if there && bytes.Equal(now.sum[:], f.GetSha256()) && now.attrs.fits(wanted) {
		m.learn(f, now)
		return nil
	}
	last := m.memory.Files[f.GetPath()]
	mended := ""
	if last.Delivered && last.Version == f.GetVersion() {
		mended = "it had been removed on the machine, and was written again"
		if there {
			mended = "it had been changed on the machine, and was written again"
		}
	}
	content, err := m.fetch(ctx, f)
	if err != nil {
		return err
	}
	if f.GetSecret() {
		m.deps.Hide(f.GetPath(), content)
	}
	if follows := f.GetOnChange() == "reload" || f.GetOnChange() == "run"; follows || last.Follow {
		if err := m.note(f, func(r *memory) { r.Follow = follows }); err != nil {
			return errors.New(plain(errors.Unwrap(err), m.path))
		}
	}
	if err := replace(where, content, wanted, m.deps.At); err != nil {
		return errors.New(plain(err, path))
	}
	if now, err = look(where, found{}); err != nil {
		return errors.New(plain(err, path))
	}
	m.learn(f, now)
	if mended != "" {
		m.deps.Logger.Warn("file mended", "path", f.GetPath(), "why", mended)
	} else {
		m.deps.Logger.Info("file written", "path", f.GetPath(), "version", f.GetVersion(), "bytes", len(content))
	}
	m.writes[f.GetPath()] = write{time.Now(), mended}
	return nil
}

// learn remembers the stamp of a file that is as wanted, once the stamp is a second old: within a
// second a change may leave it the same.
func (m *Manager) learn(f *protocol.File, now found) {
	if time.Since(time.Unix(now.stamp.ctime.Unix())) > time.Second {
		m.known[f.GetPath()] = now
	} else {
		delete(m.known, f.GetPath())
	}
	if last := m.memory.Files[f.GetPath()]; last.Delivered && last.Version == f.GetVersion() {
		return
	}
	if err := m.note(f, func(r *memory) { r.Delivered, r.Version = true, f.GetVersion() }); err != nil {
		m.deps.Logger.Warn("delivery of a file is not remembered", "path", f.GetPath(), "error", err)
	}
}

// fetch requests the content piece by piece.
func (m *Manager) fetch(ctx context.Context, f *protocol.File) ([]byte, error) {
	if f.GetSize() > protocol.MaxFile {
		return nil, fmt.Errorf("it would have %d bytes: at most %d are allowed", f.GetSize(), protocol.MaxFile)
	}
	content := make([]byte, 0, f.GetSize())
	late := time.NewTimer(answerWait)
	defer late.Stop()
	select {
	case <-m.piece: // a late piece of an earlier fetch
	default:
	}
	for uint32(len(content)) < f.GetSize() {
		ask := &protocol.FetchFile{Path: f.GetPath(), Version: f.GetVersion(), Offset: uint32(len(content))}
		if err := m.ask(ctx, &protocol.AgentMessage{Kind: &protocol.AgentMessage_FetchFile{FetchFile: ask}}); err != nil {
			return nil, err
		}
		late.Reset(answerWait)
		for answered := false; !answered; {
			select {
			case p := <-m.piece:
				if p.GetPath() != ask.Path || p.GetVersion() != ask.Version || p.GetOffset() != ask.Offset {
					continue
				}
				if p.GetProblem() != "" || len(p.GetData()) == 0 || len(content)+len(p.GetData()) > int(f.GetSize()) {
					return nil, fmt.Errorf("its content was not sent: %s", p.GetProblem())
				}
				content, answered = append(content, p.GetData()...), true
			case <-late.C:
				return nil, errors.New("the coordinator did not send its content in time")
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	if sum := sha256.Sum256(content); !bytes.Equal(sum[:], f.GetSha256()) {
		return nil, errors.New("its content was damaged on the way")
	}
	return content, nil
}

// ask passes a request to the agent's loop, which sends it to the coordinator.
func (m *Manager) ask(ctx context.Context, what *protocol.AgentMessage) error {
	late := time.NewTimer(answerWait)
	defer late.Stop()
	select {
	case m.asks <- what:
		return nil
	case <-late.C:
		return errors.New("no coordinator can be asked")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// note writes to disk what a later run has to know of a file. It returns nil only if the disk has
// it, also if an earlier attempt has failed.
func (m *Manager) note(f *protocol.File, change func(*memory)) error {
	m.mu.Lock()
	was := m.memory.Files[f.GetPath()]
	now := was
	change(&now)
	if now == was && !m.unwritten {
		m.mu.Unlock()
		return nil
	}
	m.memory.Files[f.GetPath()] = now
	r := m.memory
	r.Files = maps.Clone(r.Files)
	m.mu.Unlock()
	return m.save(r)
}

// delivered records that a file is as wanted, and that the actions after its change were done.
func (m *Manager) delivered(f *protocol.File) {
	delete(m.tries, f.GetPath())
	last := m.writes[f.GetPath()]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(f, State{
		Path: f.GetPath(), State: Delivered, Why: last.mended, Version: f.GetVersion(), At: last.at,
		Ends: m.memory.Files[f.GetPath()].Issued.Ends,
	})
	if m.wanted.GetConfigHash() == m.memory.Config && !m.ready[f.GetPath()] {
		m.ready[f.GetPath()] = true
		signal(m.changed)
	}
}

// failed records that a file could not be brought to the wanted state, and returns when to try
// again.
func (m *Manager) failed(f *protocol.File, why error) time.Duration {
	t := m.tries[f.GetPath()]
	if t.version != f.GetVersion() {
		t = try{version: f.GetVersion()}
	}
	wait := min(maxRetry, retryFirst<<min(t.failures, 10))
	if t.why != why.Error() {
		m.deps.Logger.Warn("file is not as it is wanted", "path", f.GetPath(), "why", why.Error(), "again", wait.String())
	}
	t.failures, t.at, t.why = t.failures+1, time.Now().Add(wait), why.Error()
	m.tries[f.GetPath()] = t
	state := Error
	if m.gone(f.GetPath(), m.variables()) {
		state = Missing
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.states[f.GetPath()]
	m.set(f, State{
		Path: f.GetPath(), State: state, Why: why.Error(), Version: was.Version, At: was.At, Ends: was.Ends,
	})
	return wait
}

// set sets the state that is reported. m.mu must be held.
func (m *Manager) set(f *protocol.File, now State) {
	if m.states[f.GetPath()] != now {
		m.states[f.GetPath()] = now
		signal(m.changed)
	}
}

// follow runs the actions that follow changes of files, each once for all files. It returns when to
// look again.
func (m *Manager) follow(ctx context.Context, files []*protocol.File, vars map[string]string) time.Duration {
	done := map[string]error{}
	next := checkEvery
	for _, f := range files {
		action := strings.Join(append([]string{f.GetOnChange()}, f.GetRun()...), "\x00")
		err, tried := done[action]
		if !tried {
			err = m.act(ctx, f, vars)
			done[action] = err
		}
		if err != nil {
			next = min(next, m.failed(f, fmt.Errorf("it is written, but what follows failed: %w", err)))
			continue
		}
		if err := m.note(f, func(r *memory) { r.Follow = false }); err != nil {
			m.deps.Logger.Warn("what followed a file is not remembered, and is done again", "path", f.GetPath(), "error", err)
		}
		m.delivered(f)
	}
	return next
}

func (m *Manager) act(ctx context.Context, f *protocol.File, vars map[string]string) error {
	if f.GetOnChange() == "reload" {
		return m.deps.Reload()
	}
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	return m.deps.Command(ctx, f.GetRun(), vars)
}
