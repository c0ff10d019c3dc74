package certificate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/durable"
)

const (
	// diskWait is how long to wait for the disk before using papers that are not written yet.
	diskWait = time.Second
	// diskRetry is the pause after a failed write.
	diskRetry = 10 * time.Second
)

// Config names the machine.
type Config struct {
	Bootstrap provider.Bootstrap
	StateDir  string
}

// Deps are a Holder's dependencies.
type Deps struct {
	Logger *slog.Logger
	// Write replaces a file as a whole. Nil writes to the disk.
	Write func(path string, data []byte) error
	// Rand returns numbers in [0,1) for jitter; nil: math/rand/v2.
	Rand func() float64
}

// Status describes the credentials that are in force.
type Status struct {
	Joined bool      // there is a certificate; it may have expired
	Trust  string    // digest of the trusted authorities
	Issuer string    // fingerprint of the authority that signed the certificate
	Ends   time.Time // when the certificate expires
}

// Holder holds the machine's credentials. It is safe for concurrent use.
type Holder struct {
	cfg      Config
	deps     Deps
	log      *slog.Logger
	path     string
	identity identity.Identity

	dirty   chan struct{} // signals that draft is new
	changed chan struct{}

	mu         sync.Mutex
	draft      papers // the newest papers, written or not
	drafts     int    // counts drafts
	force      papers // the papers in use
	forced     int    // value of drafts for the papers in use
	generation uint64
	forcedNext chan struct{} // closed when force changes

	clock        clock
	held         time.Time // when the draft's certificate arrived; this and the next two by the coordinators' time
	heard        time.Time // when its trust first named this issuer
	stillForeign bool
	asked        time.Time // the last request for draft.asked
	jitter       float64
	logged       map[string]string // the last logged message, by topic
}

// Open reads the agent's file. A damaged file is moved aside, and the machine joins again if its
// token is still valid. A file that cannot be read is an error: its content may be intact, and a
// token can be used only once.
func Open(cfg Config, deps Deps) (*Holder, error) {
	b := cfg.Bootstrap
	switch {
	case cfg.StateDir == "" || deps.Logger == nil:
		return nil, errors.New("open certificate: a state directory and a logger are needed")
	case b.CA == "":
		return nil,
			errors.New("bootstrap document: ca is missing: without it the agent cannot authenticate a coordinator; " +
				"next: give the coordinators their certificate authority (leasehold pki init) and have the machine created again")
	}
	who := identity.Identity{Shard: b.Shard, Role: identity.Agent, Name: b.Instance}
	if err := who.Validate(); err != nil {
		return nil, fmt.Errorf("bootstrap document: %w", err)
	}
	trust, err := identity.TrustOfPEM([]byte(b.CA), "")
	if err != nil {
		return nil, fmt.Errorf("bootstrap document: ca: %w", err)
	}
	if deps.Write == nil {
		deps.Write = func(path string, data []byte) error { return durable.Replace(path, data, 0o600) }
	}
	if deps.Rand == nil {
		deps.Rand = rand.Float64
	}
	now := time.Now()
	p := &Holder{
		cfg: cfg, deps: deps, log: deps.Logger.With("instance", b.Instance),
		path: filepath.Join(cfg.StateDir, fileName), identity: who,
		dirty: make(chan struct{}, 1), changed: make(chan struct{}, 1), forcedNext: make(chan struct{}),
		held: now, heard: now, jitter: deps.Rand(), logged: map[string]string{},
	}
	if p.draft, err = p.read(); err != nil {
		return nil, err
	}
	if p.draft.key == nil {
		p.draft.trust = trust
	}
	p.clock = clock{reading: reading{sent: p.draft.issued, at: now}, kept: keptBy(p.draft, now)}
	if made, err := time.Parse(time.RFC3339, b.Made); err == nil && p.clock.sent.IsZero() {
		p.clock.sent = made
	}
	p.force = p.draft
	return p, nil
}

// read reads the file of an earlier run, or moves it aside.
func (h *Holder) read() (papers, error) {
	data, err := os.ReadFile(h.path)
	if errors.Is(err, os.ErrNotExist) {
		return papers{}, nil
	}
	if err != nil {
		return papers{}, fmt.Errorf("read certificate: %w; next: check the disk and start the agent again", err)
	}
	found, err := decode(data, h.identity.Shard, h.identity.Name)
	if err != nil {
		aside := h.path + ".aside"
		moved := os.Rename(h.path, aside)
		h.log.Warn("certificate is unusable and was moved aside: this machine must join again", "why", err, "aside", aside,
			"error", moved,
			"next", "if its join is refused, replace the instance")
		return papers{}, nil
	}
	if info, err := os.Stat(h.path); err == nil && info.Mode().Perm()&0o077 != 0 {
		h.log.Warn("key could be read by others than the agent; it is closed to them now", "path", h.path, "mode",
			info.Mode().Perm().String(),
			"error", os.Chmod(h.path, 0o600))
	}
	return found, nil
}

// Status returns what is in force, without waiting.
func (h *Holder) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.force.status()
}

func (p papers) status() Status {
	s := Status{Trust: p.trust.Digest()}
	if own := p.leaf(); own != nil {
		s.Joined, s.Issuer, s.Ends = true, p.issuer, own.NotAfter
	}
	return s
}

// Changed signals that Status has changed.
func (h *Holder) Changed() <-chan struct{} { return h.changed }

// revise makes next the newest papers. They come into force once Run has written them. h.mu must be
// held.
func (h *Holder) revise(next papers) {
	h.draft = next
	h.drafts++
	h.wake()
}

func (h *Holder) wake() {
	select {
	case h.dirty <- struct{}{}:
	default:
	}
}

// settled waits until the newest papers are in force.
func (h *Holder) settled(ctx context.Context) error {
	h.mu.Lock()
	want := h.drafts
	h.mu.Unlock()
	for {
		h.mu.Lock()
		have, forcedNext := h.forced, h.forcedNext
		h.mu.Unlock()
		if have >= want {
			return nil
		}
		select {
		case <-forcedNext:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Run writes new papers and puts them in force, until the context ends. It is called once.
func (h *Holder) Run(ctx context.Context) {
	again := time.NewTimer(diskRetry)
	defer again.Stop()
	written := 0 // the number of the papers on disk
	for {
		over := false
		select {
		case <-ctx.Done():
			over = true
		case <-h.dirty:
		case <-again.C:
		}
		next, n := h.newest()
		if n > written {
			if err := h.write(ctx, next, n); err == nil {
				written = n
			} else {
				again.Reset(diskRetry)
			}
		}
		if over {
			return
		}
	}
}

var errGivenUp = errors.New("the disk does not answer")

// write puts papers in force once they are written, or once writing has failed or takes too long.
func (h *Holder) write(ctx context.Context, next papers, n int) error {
	done := make(chan error, 1)
	go func() { done <- h.save(next) }()
	late := time.NewTimer(diskWait)
	defer late.Stop()
	select {
	case err := <-done:
		return h.wrote(err, next, n)
	case <-late.C:
	}
	if h.news("disk", "hangs") {
		h.log.Warn("certificate and trust are used before they are written: the disk is slow", "path", h.path)
	}
	h.enforce(next, n)
	for {
		select {
		case err := <-done:
			newest, latest := h.newest()
			if latest > n {
				h.wake()
			}
			return h.wrote(err, newest, latest)
		case <-h.dirty:
			h.enforce(h.newest())
		case <-ctx.Done():
			return errGivenUp // the goroutine ends when the disk answers
		}
	}
}

func (h *Holder) save(next papers) error {
	data, err := encode(next, h.identity.Shard, h.identity.Name)
	if err != nil {
		return err
	}
	return h.deps.Write(h.path, data)
}

// wrote logs the result of a write, and puts the papers in force in either case.
func (h *Holder) wrote(err error, next papers, n int) error {
	if err != nil {
		if h.news("disk", err.Error()) {
			h.log.Warn("certificate and trust are in use but could not be written: a restart of the agent would lose them",
				"path", h.path, "error", err, "next", "check the disk; it is tried again every "+diskRetry.String())
		}
	} else if h.forget("disk") {
		h.log.Info("certificate and trust are written again", "path", h.path)
	}
	h.enforce(next, n)
	return err
}

func (h *Holder) newest() (papers, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draft, h.drafts
}

func (h *Holder) enforce(next papers, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n <= h.forced {
		return
	}
	before := h.force
	h.force, h.forced = next, n
	close(h.forcedNext)
	h.forcedNext = make(chan struct{})
	if before.leaf() != next.leaf() {
		h.generation++
	}
	if before.status() != next.status() {
		select {
		case h.changed <- struct{}{}:
		default:
		}
	}
}

// news reports whether a message differs from the last one on its topic, and remembers it, so that
// the log has each state once.
func (h *Holder) news(topic, what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.logged[topic]
	h.logged[topic] = what
	return before != what
}

// forget ends a topic, and reports whether anything was logged about it.
func (h *Holder) forget(topic string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, logged := h.logged[topic]
	delete(h.logged, topic)
	return logged
}
