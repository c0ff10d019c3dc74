package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// Times of the manager.
const (
	checkEvery  = 5 * time.Second // interval for looking at every file
	answerWait  = 10 * time.Second
	retryFirst  = time.Second // pause after a failure, doubled up to maxRetry
	maxRetry    = time.Minute
	commandWait = 30 * time.Second
	backWait    = time.Second // limit for the disk, before a coordinator has sent the list of files
)

// Config says where files may be.
type Config struct {
	// Roots are the directories below which files may be.
	Roots    []string
	StateDir string
	Instance string
	Facts    map[string]string // facts of the machine, for paths
}

// Deps are a Manager's dependencies.
type Deps struct {
	Logger *slog.Logger
	// Reload signals the workload, if it runs, that its files have changed.
	Reload func() error
	// Command runs a command and waits for its end.
	Command func(ctx context.Context, run []string, vars map[string]string) error
	// Now returns the coordinators' time, by which certificates are renewed even if the machine's
	// clock is wrong.
	Now func() time.Time
	// Hide receives every secret content and every key before it is used anywhere else. Hidden is
	// called once Hide has received the secrets of all files on the machine.
	Hide   func(path string, content []byte)
	Hidden func()
	// At is called before each step of replacing a file, and before looking for one; nil: never.
	At func(step string) error
}

// State is the state of a file.
type State struct {
	Path, State, Why, Version string
	At                        time.Time
	Ends                      time.Time // of a certificate
}

// The values of State.State.
const (
	Delivered = "delivered"
	Missing   = "missing"
	Error     = "error"
)

// Manager keeps files. Its methods can be called at any time, also on a nil Manager, which has no
// files.
type Manager struct {
	cfg   Config
	deps  Deps
	path  string // signals a change of the state
	asks  chan *protocol.AgentMessage
	wake  chan struct{}
	piece chan *protocol.FilePiece

	changed  chan struct{}
	answered chan struct{} // a request for a certificate

	mu       sync.Mutex
	expect   bool // there are files, but no coordinator has sent their list yet
	received bool // the wanted files, from a coordinator
	wanted   *protocol.Files
	vars     map[string]string // copy on write
	states   map[string]State  // by path, as received
	// ready has the paths whose content was as wanted with this configuration
	ready  map[string]bool
	orders map[string]*order // requested certificates, by path
	back   *pastLook         // the look under way; nil: none

	// Run alone writes memory, with mu held. Run reads it without mu, all others with it.
	memory remembered
	// unwritten is set while the state file lacks a change of memory, because the last write failed.
	// It is used by Run alone.
	unwritten bool

	// The following fields are used by Run alone.
	known  map[string]found
	tries  map[string]try
	writes map[string]write
	hidden map[string]bool // by path on the machine
	said   bool            // all secrets were passed to Hide
	held   map[string]held // certificates, by path
	jitter float64         // in [0,1): jitter of renewals
}

// write is when and why a file was last written.
type write struct {
	at     time.Time
	mended string
}

// try is when to try a failed file again.
type try struct {
	failures int
	at       time.Time
	version  string
	why      string
}

// New returns a Manager and starts nothing.
func New(cfg Config, deps Deps) (*Manager, error) {
	if deps.Logger == nil || deps.Reload == nil || deps.Command == nil || deps.Hide == nil || deps.Hidden == nil ||
		deps.Now == nil ||
		cfg.StateDir == "" {
		return nil, errors.New("new manager of files: a logger, a state directory and what follows changes are needed")
	}
	for i, root := range cfg.Roots {
		if !filepath.IsAbs(root) {
			return nil, fmt.Errorf("files root %q: it must be an absolute path", root)
		}
		cfg.Roots[i] = filepath.Clean(root)
	}
	if deps.At == nil {
		deps.At = func(string) error { return nil }
	}
	m := &Manager{
		cfg: cfg, deps: deps, path: filepath.Join(cfg.StateDir, "files.json"),
		asks: make(chan *protocol.AgentMessage), wake: make(chan struct{}, 1), piece: make(chan *protocol.FilePiece, 1),
		changed: make(chan struct{}, 1), states: map[string]State{}, ready: map[string]bool{},
		known: map[string]found{}, tries: map[string]try{}, writes: map[string]write{}, hidden: map[string]bool{},
		orders: map[string]*order{}, held: map[string]held{}, jitter: rand.Float64(), answered: make(chan struct{}, 1),
	}
	var err error
	if m.memory, err = readState(m.path, cfg.Instance); err != nil {
		deps.Logger.Warn("state of files is not known", "error", err)
	}
	return m, nil
}

// Roots returns the directories below which files may be.
func (m *Manager) Roots() []string {
	if m == nil {
		return nil
	}
	return slices.Clone(m.cfg.Roots)
}

// Asks returns requests for a coordinator.
func (m *Manager) Asks() <-chan *protocol.AgentMessage {
	if m == nil {
		return nil
	}
	return m.asks
}

// Changed signals that a state has changed. One signal may stand for several changes.
func (m *Manager) Changed() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.changed
}

// Expect says whether there are files, until a coordinator sends their list.
func (m *Manager) Expect(files bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expect = files
}

// Want sets the wanted files. Setting the same again changes nothing, except that files that failed
// are tried at once: an earlier answer may have been lost with its stream.
func (m *Manager) Want(files *protocol.Files, vars map[string]string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wanted.GetConfigHash() != files.GetConfigHash() {
		m.ready = map[string]bool{}
	}
	m.received, m.wanted, m.vars = true, files, maps.Clone(vars)
	signal(m.wake)
}

// Reconnected drops unanswered requests for certificates, so that they are sent again: the answers
// went to a stream that has ended.
func (m *Manager) Reconnected() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, o := range m.orders {
		if o.key != nil && o.answer == nil {
			delete(m.orders, path)
		}
	}
	signal(m.wake)
}

// Piece takes a piece of content from a coordinator.
func (m *Manager) Piece(p *protocol.FilePiece) {
	if m == nil {
		return
	}
	select {
	case m.piece <- p:
	default: // no signal is pending
	}
}

// States returns the states of all files, in the order of the configuration.
func (m *Manager) States() []State {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []State
	for _, f := range m.wanted.GetFiles() {
		s, looked := m.states[f.GetPath()]
		if !looked {
			s = State{Path: f.GetPath(), State: Missing, Why: "it was not looked at yet"}
		}
		out = append(out, s)
	}
	return out
}

// Settled reports whether every file of a configuration has been as wanted.
func (m *Manager) Settled(config string) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.received || m.wanted.GetConfigHash() != config {
		return false
	}
	return !slices.ContainsFunc(m.wanted.GetFiles(), func(f *protocol.File) bool { return !m.ready[f.GetPath()] })
}

// Missing returns the files that the workload waits for; "": none. A file that was delivered once
// and still exists is not waited for, whatever has happened to it since.
func (m *Manager) Missing() string {
	why, _ := m.missing(func(look func() string) (string, bool) { return look(), true })
	return why
}

// MissingSoon is Missing for a report, which waits only briefly for the disk. It returns false if
// the disk has not answered, so that the missing files are unknown.
func (m *Manager) MissingSoon() (why string, known bool) { return m.missing(m.lookSoon) }

// missing asks the disk only before a coordinator has sent the list of files.
func (m *Manager) missing(ask func(look func() string) (string, bool)) (why string, known bool) {
	if m == nil {
		return "", true
	}
	m.mu.Lock()
	received, expect, vars := m.received, m.expect, m.vars
	config, remembered := m.memory.Config, maps.Clone(m.memory.Files)
	m.mu.Unlock()
	switch {
	case received:
		return m.undelivered(), true
	case !expect:
		return "", true
	case config == "":
		return "no coordinator has sent its files yet", true
	}
	const untold = ": no coordinator has sent its content yet"
	for path, f := range remembered {
		if !f.Delivered {
			return path + untold, true
		}
	}
	return ask(func() string {
		for path := range remembered {
			if m.gone(path, vars) {
				return path + untold
			}
		}
		return ""
	})
}

// pastLook is a look for the files that an earlier run of the agent has left.
type pastLook struct {
	began time.Time
	over  chan struct{}
	found string // set when it has ended
}

// lookSoon returns the result of a look, or false if the disk does not answer in time. Only one
// look runs at a time.
func (m *Manager) lookSoon(look func() string) (found string, known bool) {
	m.mu.Lock()
	l := m.back
	if l == nil {
		l = &pastLook{began: time.Now(), over: make(chan struct{})}
		m.back = l
		go func() { // ends when the disk answers
			l.found = look()
			m.mu.Lock()
			defer m.mu.Unlock()
			m.back = nil
			close(l.over)
		}()
	}
	m.mu.Unlock()
	late := time.NewTimer(time.Until(l.began.Add(backWait)))
	defer late.Stop()
	select {
	case <-l.over:
		return l.found, true
	case <-late.C:
		return "", false
	}
}

// undelivered returns which files of the coordinator's list the workload waits for.
func (m *Manager) undelivered() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var why []string
	for _, f := range m.wanted.GetFiles() {
		s, looked := m.states[f.GetPath()]
		switch {
		case !looked:
			why = append(why, f.GetPath()+": it was not looked at yet")
		case s.State == Missing:
			why = append(why, f.GetPath()+": "+s.Why)
		case s.State == Error && !m.memory.Files[f.GetPath()].Delivered:
			why = append(why, f.GetPath()+": "+s.Why)
		}
	}
	return strings.Join(why, "; ")
}

func (m *Manager) variables() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vars
}

// gone reports whether a file does not exist. m.mu must not be held: the disk may hang, and the
// agent's reports wait for that lock.
func (m *Manager) gone(path string, vars map[string]string) bool {
	real, err := workload.ExpandText("path", path, vars, m.cfg.Facts)
	if err != nil {
		return false // the coordinator's list brings its variables
	}
	if err = m.deps.At("look for it"); err == nil {
		_, err = os.Lstat(real)
	}
	return errors.Is(err, fs.ErrNotExist)
}

// Run keeps the files until the context ends.
func (m *Manager) Run(ctx context.Context) {
	if m == nil {
		return
	}
	timer := time.NewTimer(checkEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
			m.tries = map[string]try{}
		case <-m.answered:
		case <-timer.C:
		}
		timer.Reset(m.pass(ctx))
	}
}

// pass looks at every file and brings it to the wanted state. It returns when to look again.
func (m *Manager) pass(ctx context.Context) time.Duration {
	m.mu.Lock()
	received, wanted, vars := m.received, m.wanted, m.vars
	m.mu.Unlock()
	if !received {
		return checkEvery
	}
	m.remember(wanted)
	next := checkEvery
	var follow []*protocol.File
	for _, f := range wanted.GetFiles() {
		if ctx.Err() != nil {
			return next
		}
		if t, failed := m.tries[f.GetPath()]; failed && t.version == f.GetVersion() && time.Now().Before(t.at) {
			next = min(next, time.Until(t.at))
			continue
		}
		keep := m.keep
		if f.GetCertificate() != nil {
			keep = m.keepCertificate
		}
		var wait waits
		switch err := keep(ctx, f, vars); {
		case errors.As(err, &wait):
			next = min(next, time.Until(wait.until))
			continue
		case err != nil:
			next = min(next, m.failed(f, err))
			continue
		}
		if m.memory.Files[f.GetPath()].Follow {
			follow = append(follow, f)
			continue
		}
		m.delivered(f)
	}
	if !m.said {
		m.said = true
		m.deps.Hidden()
		signal(m.changed)
	}
	next = min(next, m.follow(ctx, follow, vars))
	return max(next, 10*time.Millisecond)
}

// remember records the configuration in the state file, and what an earlier write did not.
func (m *Manager) remember(wanted *protocol.Files) {
	m.mu.Lock()
	kept := map[string]memory{}
	for _, f := range wanted.GetFiles() {
		kept[f.GetPath()] = m.memory.Files[f.GetPath()]
	}
	same := m.memory.Config == wanted.GetConfigHash() && maps.Equal(kept, m.memory.Files)
	m.memory.Config, m.memory.Files = wanted.GetConfigHash(), kept
	m.mu.Unlock()
	if same && !m.unwritten {
		return
	}
	logged := m.unwritten
	if err := m.save(m.memory); err != nil && !logged {
		m.deps.Logger.Warn("files that are wanted are not remembered", "error", err)
	}
}

// save writes the state file. After a failure each pass tries again.
func (m *Manager) save(r remembered) error {
	err := r.write(m.path)
	m.unwritten = err != nil
	return err
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
