package notice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider/clip"
)

const (
	defaultEvery    = 2 * time.Second
	defaultPatience = 3 * time.Second // metadata services are on the machine's own host
	// firstPatience is the first timeout for a source that the first request switches on: Azure's
	// takes up to two minutes.
	firstPatience = 130 * time.Second
)

// Notice says that the machine will end.
type Notice struct {
	Kind string    // what is to happen, in the source's words
	Why  string    // for people
	Seen time.Time // when it was first seen
	Ends time.Time // when the machine ends, by our own monotonic clock; zero: unknown
}

// The sources.
const (
	AWS   = "aws"
	GCP   = "gcp"
	Azure = "azure"
	File  = "file"
)

// Evacuating is the kind of notice with which the machine's operator asks to empty it, which may
// take its time (DRAIN-3).
const Evacuating = "evacuating"

// Spec says where notices come from. The zero value watches nothing.
type Spec struct {
	Source   string `json:"source"`             // one of the sources
	File     string `json:"file,omitempty"`     // path of source file
	Endpoint string `json:"endpoint,omitempty"` // instead of the cloud's own address, such as http://127.0.0.1:8080
	Kind     string `json:"kind,omitempty"`     // kind of a notice file that names none; empty: "notice"
	Instance string `json:"instance,omitempty"` // a notice file that names another instance is no notice
}

// Config is valid as its zero value.
type Config struct {
	Every    time.Duration // interval; 0: 2s
	Patience time.Duration // timeout of one request; 0: 3s
}

// Deps are a Watcher's dependencies.
type Deps struct {
	Logger *slog.Logger
}

// sighting is a notice as a source shows it.
type sighting struct {
	id        string // unique within its source
	kind, why string
	left      time.Duration // time left until the machine ends
	timed     bool          // left is known
}

// source is polled by one goroutine. A nil sighting without an error means that there is no notice.
type source interface {
	look(ctx context.Context) (*sighting, error)
	// slowAtFirst reports whether the first answer may take minutes.
	slowAtFirst() bool
}

// Watcher watches one source at a time.
type Watcher struct {
	cfg         Config
	log         *slog.Logger
	changed     chan struct{}
	specChanged chan struct{} // signals that spec has changed

	mu     sync.Mutex
	spec   Spec
	cut    context.CancelFunc // cancels the request under way
	id     string             // of latest
	latest *Notice
}

// New returns a Watcher that watches nothing until Watch is called.
func New(cfg Config, deps Deps) (*Watcher, error) {
	if deps.Logger == nil {
		return nil, errors.New("new notice watcher: no logger")
	}
	if cfg.Every <= 0 {
		cfg.Every = defaultEvery
	}
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	return &Watcher{
		cfg: cfg, log: deps.Logger, changed: make(chan struct{}, 1), specChanged: make(chan struct{}, 1),
		cut: func() {},
	}, nil
}

// Watch sets the source to watch. Setting the same again changes nothing; the notice of another
// source is dropped.
func (w *Watcher) Watch(spec Spec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if spec == w.spec {
		return
	}
	w.spec = spec
	w.cut()
	w.keep(nil)
	select {
	case w.specChanged <- struct{}{}:
	default:
	}
}

// Latest returns the present notice, nil if there is none. The caller must not modify it.
func (w *Watcher) Latest() *Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest
}

// Changed signals that Latest has changed.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Run watches until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(w.cfg.Every)
	defer tick.Stop()
	client := newClient()
	defer client.CloseIdleConnections()
	for {
		w.mu.Lock()
		spec := w.spec
		select {
		case <-w.specChanged: // the answer belongs to this spec
		default:
		}
		w.mu.Unlock()
		if spec == (Spec{}) {
			select {
			case <-ctx.Done():
				return
			case <-w.specChanged:
				continue
			}
		}
		src, err := newSource(spec, client)
		if err != nil {
			w.log.Warn("interruption notices are not watched for", "error", err)
		}
		if !w.follow(ctx, spec, src, tick.C) {
			return
		}
	}
}

// follow polls one source until another is configured (true) or ctx ends. A nil source only waits
// for that.
func (w *Watcher) follow(ctx context.Context, spec Spec, src source, tick <-chan time.Time) bool {
	failing, answered := false, false
	for {
		if src != nil {
			within := w.cfg.Patience
			if !answered && src.slowAtFirst() {
				within = firstPatience
			}
			err := w.look(ctx, spec, src, within)
			switch {
			case ctx.Err() != nil:
				return false
			case err == nil && failing:
				w.log.Info("interruption notices are watched for again", "source", spec.Source)
			case err != nil && !failing && !errors.Is(err, errOutdated):
				w.log.Warn("interruption notices cannot be looked for", "source", spec.Source, "error", err)
			}
			failing, answered = err != nil, answered || err == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.specChanged:
			return true
		case <-tick:
		}
	}
}

// errOutdated means that another source has been configured.
var errOutdated = errors.New("another source is to be watched")

func (w *Watcher) look(ctx context.Context, spec Spec, src source, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	w.mu.Lock()
	if w.spec != spec {
		w.mu.Unlock()
		return errOutdated
	}
	w.cut = cancel
	w.mu.Unlock()
	found, err := src.look(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = func() {}
	switch {
	case w.spec != spec:
		return errOutdated
	case err != nil:
		return err
	}
	w.keep(found)
	return nil
}

// keep takes what was seen. w.mu must be held.
func (w *Watcher) keep(found *sighting) {
	switch {
	case found == nil && w.latest == nil, found != nil && w.latest != nil && found.id == w.id:
		return
	case found == nil:
		w.id, w.latest = "", nil
		w.log.Info("the interruption notice is gone")
	default:
		n := Notice{
			Kind: clip.Start(found.kind, protocol.MaxName), Why: clip.Start(found.why, protocol.MaxText),
			Seen: time.Now(),
		}
		if found.timed {
			n.Ends = n.Seen.Add(max(0, found.left))
		}
		w.id, w.latest = found.id, &n
		w.log.Warn("a notice says that this machine will end", "kind", n.Kind, "why", n.Why, "in", found.left.String(),
			"known", found.timed)
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func newSource(spec Spec, client *http.Client) (source, error) {
	at := func(otherwise string) metadata {
		m := metadata{client: client, base: otherwise}
		if spec.Endpoint != "" {
			m.base = spec.Endpoint
		}
		return m
	}
	switch spec.Source {
	case AWS:
		return &aws{metadata: at("http://169.254.169.254")}, nil
	case GCP:
		return &gcp{metadata: at("http://metadata.google.internal")}, nil
	case Azure:
		return &azure{metadata: at("http://169.254.169.254")}, nil
	case File:
		if spec.File == "" {
			return nil, errors.New("source file: no file is named")
		}
		return file{path: spec.File, kind: spec.Kind, instance: spec.Instance}, nil
	default:
		return nil, fmt.Errorf("source %q is not known to this agent: upgrade it, or choose aws, gcp, azure or file",
			spec.Source)
	}
}
