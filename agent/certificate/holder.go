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
	// diskWait is how long to wait for the disk before using what is not written yet.
	diskWait = time.Second
	// diskRetry is the pause after a failed write.
	diskRetry = 10 * time.Second
)

// Config names the machine.
type Config struct {
	Bootstrap provider.Bootstrap
	StateDir  string
}

// Deps are what a Holder works with.
type Deps struct {
	Logger *slog.Logger
	// Write replaces a file as a whole. Nil writes to the disk.
	Write func(path string, data []byte) error
	// Rand returns numbers in [0,1) for jitter. Nil is math/rand/v2.
	Rand func() float64
}

// Standing describes the credentials that are in force.
type Standing struct {
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

	dirty   chan struct{} // draft is new
	changed chan struct{}

	mu         sync.Mutex
	draft      papers // the newest, written or not
	drafts     int    // grows with it
	force      papers // what is used
	forced     int    // as drafts was for it
	generation uint64
	turn       chan struct{} // closed when force changes

	clock  clock
	held   time.Time // since when the draft's certificate is had; this and the next two by the coordinators' time
	heard  time.Time // since when its trust names this issuer
	circle bool
	asked  time.Time // the last request over draft.asked
	jitter float64
	told   map[string]string // what the log says already, by topic
}

// Open reads the agent's file. An unusable file is moved aside, and the machine joins again if its
// token is still valid. One that the disk does not give is an error: it may be as good as ever, and
// a token counts once.
func Open(cfg Config, deps Deps) (*Holder, error) {
	b := cfg.Bootstrap
	switch {
	case cfg.StateDir == "" || deps.Logger == nil:
		return nil, errors.New("open certificate: a state directory and a logger are needed")
	case b.CA == "":
		return nil,
			errors.New("bootstrap document: ca is missing: the agent speaks to no coordinator that it cannot know; " +
				"next: give the coordinators their certificate authority (leasehold pki init) and have the machine made anew")
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
		dirty: make(chan struct{}, 1), changed: make(chan struct{}, 1), turn: make(chan struct{}),
		held: now, heard: now, jitter: deps.Rand(), told: map[string]string{},
	}
	if p.draft, err = p.read(); err != nil {
		return nil, err
	}
	if p.draft.key == nil {
		p.draft.trust = trust
	}
	p.clock = clock{told: p.draft.issued, at: now}
	if made, err := time.Parse(time.RFC3339, b.Made); err == nil && p.clock.told.IsZero() {
		p.clock.told = made
	}
	p.force = p.draft
	return p, nil
}

// read reads the file of an earlier run, or moves it aside.
func (p *Holder) read() (papers, error) {
	data, err := os.ReadFile(p.path)
	if errors.Is(err, os.ErrNotExist) {
		return papers{}, nil
	}
	if err != nil {
		return papers{}, fmt.Errorf("read certificate: %w; next: see to the disk and start the agent again", err)
	}
	found, err := decode(data, p.identity.Shard, p.identity.Name)
	if err != nil {
		aside := p.path + ".aside"
		moved := os.Rename(p.path, aside)
		p.log.Warn("certificate is of no use and put aside: this machine has to join again", "why", err, "aside", aside,
			"error", moved,
			"next", "if its join is refused, replace the instance")
		return papers{}, nil
	}
	if info, err := os.Stat(p.path); err == nil && info.Mode().Perm()&0o077 != 0 {
		p.log.Warn("key could be read by others than the agent; it is closed to them now", "path", p.path, "mode",
			info.Mode().Perm().String(),
			"error", os.Chmod(p.path, 0o600))
	}
	return found, nil
}

// Standing returns what is in force, without waiting.
func (p *Holder) Standing() Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.force.standing()
}

func (p papers) standing() Standing {
	s := Standing{Trust: p.trust.Digest()}
	if own := p.leaf(); own != nil {
		s.Joined, s.Issuer, s.Ends = true, p.issuer, own.NotAfter
	}
	return s
}

// Changed signals that Standing has changed.
func (p *Holder) Changed() <-chan struct{} { return p.changed }

// revise makes next the newest papers. They come into force once Run has written them. p.mu must be
// held.
func (p *Holder) revise(next papers) {
	p.draft = next
	p.drafts++
	p.wake()
}

func (p *Holder) wake() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// settled waits until the papers that are newest now are in force.
func (p *Holder) settled(ctx context.Context) error {
	p.mu.Lock()
	want := p.drafts
	p.mu.Unlock()
	for {
		p.mu.Lock()
		have, turn := p.forced, p.turn
		p.mu.Unlock()
		if have >= want {
			return nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Run writes new papers and puts them in force, until the context ends. It is called once.
func (p *Holder) Run(ctx context.Context) {
	again := time.NewTimer(diskRetry)
	defer again.Stop()
	written := 0 // the number of the papers on disk
	for {
		over := false
		select {
		case <-ctx.Done():
			over = true
		case <-p.dirty:
		case <-again.C:
		}
		next, n := p.newest()
		if n > written {
			if err := p.write(ctx, next, n); err == nil {
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
func (p *Holder) write(ctx context.Context, next papers, n int) error {
	done := make(chan error, 1)
	go func() { done <- p.save(next) }()
	late := time.NewTimer(diskWait)
	defer late.Stop()
	select {
	case err := <-done:
		return p.wrote(err, next, n)
	case <-late.C:
	}
	if p.news("disk", "hangs") {
		p.log.Warn("certificate and trust are used before they are written: the disk is slow", "path", p.path)
	}
	p.enforce(next, n)
	for {
		select {
		case err := <-done:
			newest, latest := p.newest()
			if latest > n {
				p.wake()
			}
			return p.wrote(err, newest, latest)
		case <-p.dirty:
			p.enforce(p.newest())
		case <-ctx.Done():
			return errGivenUp // the goroutine ends when the disk answers
		}
	}
}

func (p *Holder) save(next papers) error {
	data, err := encode(next, p.identity.Shard, p.identity.Name)
	if err != nil {
		return err
	}
	return p.deps.Write(p.path, data)
}

// wrote logs the result of a write, and puts the papers in force in either case.
func (p *Holder) wrote(err error, next papers, n int) error {
	if err != nil {
		if p.news("disk", err.Error()) {
			p.log.Warn("certificate and trust are used, but not kept: an agent that is restarted now could not go on with them",
				"path", p.path, "error", err, "next", "see to the disk; it is tried again every "+diskRetry.String())
		}
	} else if p.forget("disk") {
		p.log.Info("certificate and trust are written again", "path", p.path)
	}
	p.enforce(next, n)
	return err
}

func (p *Holder) newest() (papers, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draft, p.drafts
}

func (p *Holder) enforce(next papers, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n <= p.forced {
		return
	}
	before := p.force
	p.force, p.forced = next, n
	close(p.turn)
	p.turn = make(chan struct{})
	if before.leaf() != next.leaf() {
		p.generation++
	}
	if before.standing() != next.standing() {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// news reports whether a message differs from the last one on its topic, and remembers it, so that
// the log has each state once.
func (p *Holder) news(topic, what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.told[topic]
	p.told[topic] = what
	return before != what
}

// forget ends a topic, and reports whether anything was logged about it.
func (p *Holder) forget(topic string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, told := p.told[topic]
	delete(p.told, topic)
	return told
}
