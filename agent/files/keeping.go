package files

import (
	"bytes"
	"context"
	"crypto/sha256"
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
	checkEvery  = 5 * time.Second // every file is looked at
	answerWait  = 10 * time.Second
	retryFirst  = time.Second // after a failure, doubled up to retryMost
	retryMost   = time.Minute
	commandWait = 30 * time.Second
)

// Config is where files may be.
type Config struct {
	// Roots are the directories below which files may be.
	Roots    []string
	StateDir string
	Instance string
	Facts    map[string]string // of the machine, for paths
}

// Deps are what a Manager works with.
type Deps struct {
	Logger *slog.Logger
	// Reload signals the workload that its files have changed, if it runs.
	Reload func() error
	// Command runs a command and waits for its end.
	Command func(ctx context.Context, run []string, vars map[string]string) error
	// Now is the coordinators' time: by it certificates are renewed, whatever the machine's clock
	// says.
	Now func() time.Time
	// Hide is told every content of a secret, and every key, before it is anywhere else. Hidden is
	// called when Hide knows the secrets of all files on the machine.
	Hide   func(path string, content []byte)
	Hidden func()
	// At is called before each step of replacing a file; nil: nothing is.
	At func(step string) error
}

// State is how a file is.
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
	path  string // of the state
	asks  chan *protocol.AgentMessage
	wake  chan struct{}
	piece chan *protocol.FilePiece

	changed  chan struct{}
	answered chan struct{} // a request for a certificate

	mu     sync.Mutex
	expect bool // there are files, of which no coordinator has told yet
	told   bool // what is wanted, by a coordinator
	wanted *protocol.Files
	vars   map[string]string
	states map[string]State // by path, as told
	// ready has the paths whose content was as it was wanted with this configuration
	ready  map[string]bool
	orders map[string]*order // certificates that were asked for, by path

	// of Run alone
	memory remembered
	known  map[string]found
	tries  map[string]try
	writes map[string]write
	hidden map[string]bool // by path on the machine
	said   bool            // that all were hidden
	held   map[string]held // certificates, by path
	jitter float64         // in [0,1): when certificates are renewed
}

// write is when and why a file was written last.
type write struct {
	at     time.Time
	mended string
}

// try is when a file that failed is tried again.
type try struct {
	failures int
	at       time.Time
	version  string
	why      string
}

// New starts nothing.
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

// Asks are what a coordinator is to be asked.
func (m *Manager) Asks() <-chan *protocol.AgentMessage {
	if m == nil {
		return nil
	}
	return m.asks
}

// Changed signals that a state is new; several changes may be told once.
func (m *Manager) Changed() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.changed
}

// Expect says whether there are files, until a coordinator tells which.
func (m *Manager) Expect(files bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expect = files
}

// Want says which files there are to be, and may be told the same again. An earlier answer may have
// been lost with its stream: files that failed are tried at once.
func (m *Manager) Want(files *protocol.Files, vars map[string]string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wanted.GetConfigHash() != files.GetConfigHash() {
		m.ready = map[string]bool{}
	}
	m.told, m.wanted, m.vars = true, files, maps.Clone(vars)
	signal(m.wake)
}

// Piece takes a piece that a coordinator has sent.
func (m *Manager) Piece(p *protocol.FilePiece) {
	if m == nil {
		return
	}
	select {
	case m.piece <- p:
	default: // no signal is pending
	}
}

// States are the states of all files, in the order in which they are wanted.
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

// Settled reports whether every file of a configuration has been as it is wanted.
func (m *Manager) Settled(config string) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.told || m.wanted.GetConfigHash() != config {
		return false
	}
	return !slices.ContainsFunc(m.wanted.GetFiles(), func(f *protocol.File) bool { return !m.ready[f.GetPath()] })
}

// Missing returns which files the workload waits for; "": none. Those that were delivered once and
// are there still are waited for no more, whatever has happened to them since.
func (m *Manager) Missing() string {
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.told {
		if !m.expect {
			return ""
		}
		if m.memory.Config == "" {
			return "no coordinator has told its files yet"
		}
		for path, f := range m.memory.Files {
			if !f.Delivered || m.gone(path) {
				return path + ": no coordinator has told its content yet"
			}
		}
		return ""
	}
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

// gone reports whether a remembered file is not there.
func (m *Manager) gone(path string) bool {
	real, err := workload.ExpandText("path", path, m.vars, m.cfg.Facts)
	if err != nil {
		return false // its variables are told with it
	}
	_, err = os.Lstat(real)
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

// pass looks at every file and brings about what is wanted. It returns when to look again.
func (m *Manager) pass(ctx context.Context) time.Duration {
	m.mu.Lock()
	told, wanted, vars := m.told, m.wanted, m.vars
	m.mu.Unlock()
	if !told {
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

// remember makes a configuration the one that is remembered.
func (m *Manager) remember(wanted *protocol.Files) {
	m.mu.Lock()
	kept := map[string]memory{}
	for _, f := range wanted.GetFiles() {
		kept[f.GetPath()] = m.memory.Files[f.GetPath()]
	}
	same := m.memory.Config == wanted.GetConfigHash() && maps.Equal(kept, m.memory.Files)
	m.memory.Config, m.memory.Files = wanted.GetConfigHash(), kept
	m.mu.Unlock()
	if same {
		return
	}
	if err := m.memory.write(m.path); err != nil {
		m.deps.Logger.Warn("files that are wanted are not remembered", "error", err)
	}
}

// keep makes a file as it is wanted, if it is not.
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
		if content, err := read(where); err == nil { // of an earlier run of the agent
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
	if err := m.note(
		f,
		func(r *memory) { r.Follow = f.GetOnChange() == "reload" || f.GetOnChange() == "run" },
	); err != nil {
		return errors.New(plain(errors.Unwrap(err), m.path))
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

// learn notes how a file is that is as it is wanted. Its stamp is believed once it is a second old:
// before that a change may leave it the same.
func (m *Manager) learn(f *protocol.File, now found) {
	if time.Since(time.Unix(now.stamp.ctime.Unix())) > time.Second {
		m.known[f.GetPath()] = now
	} else {
		delete(m.known, f.GetPath())
	}
	if err := m.note(f, func(r *memory) { r.Delivered, r.Version = true, f.GetVersion() }); err != nil {
		m.deps.Logger.Warn("delivery of a file is not remembered", "path", f.GetPath(), "error", err)
	}
}

// fetch asks for the content piece by piece.
func (m *Manager) fetch(ctx context.Context, f *protocol.File) ([]byte, error) {
	if f.GetSize() > protocol.MostFile {
		return nil, fmt.Errorf("it would have %d bytes: at most %d are allowed", f.GetSize(), protocol.MostFile)
	}
	content := make([]byte, 0, f.GetSize())
	late := time.NewTimer(answerWait)
	defer late.Stop()
	select {
	case <-m.piece: // that came too late for an earlier fetch
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

// ask has the agent's loop send something to the coordinator.
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

// note writes down what a later run has to know of a file.
func (m *Manager) note(f *protocol.File, change func(*memory)) error {
	m.mu.Lock()
	was := m.memory.Files[f.GetPath()]
	now := was
	change(&now)
	if now == was {
		m.mu.Unlock()
		return nil
	}
	m.memory.Files[f.GetPath()] = now
	r := m.memory
	r.Files = maps.Clone(r.Files)
	m.mu.Unlock()
	return r.write(m.path)
}

// delivered notes that a file is as it is wanted, and that what follows its change was done.
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

// failed notes that a file could not be made as it is wanted, and returns when it is tried again.
func (m *Manager) failed(f *protocol.File, why error) time.Duration {
	t := m.tries[f.GetPath()]
	if t.version != f.GetVersion() {
		t = try{version: f.GetVersion()}
	}
	wait := min(retryMost, retryFirst<<min(t.failures, 10))
	if t.why != why.Error() {
		m.deps.Logger.Warn("file is not as it is wanted", "path", f.GetPath(), "why", why.Error(), "again", wait.String())
	}
	t.failures, t.at, t.why = t.failures+1, time.Now().Add(wait), why.Error()
	m.tries[f.GetPath()] = t
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.states[f.GetPath()]
	now := State{Path: f.GetPath(), State: Error, Why: why.Error(), Version: was.Version, At: was.At, Ends: was.Ends}
	if real, err := workload.ExpandText("path", f.GetPath(), m.vars, m.cfg.Facts); err == nil {
		if _, err := os.Lstat(real); errors.Is(err, fs.ErrNotExist) {
			now.State = Missing
		}
	}
	m.set(f, now)
	return wait
}

// set makes a state the one that is told. m.mu must be held.
func (m *Manager) set(f *protocol.File, now State) {
	if m.states[f.GetPath()] != now {
		m.states[f.GetPath()] = now
		signal(m.changed)
	}
}

// follow does what follows the change of files, each once for all of them. It returns when to look
// again.
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

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
