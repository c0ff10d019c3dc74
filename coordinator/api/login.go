package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// Limits of wrong passwords: etcd spends some 50 ms of a processor on each.
const (
	wrongEvery = 2 * time.Second // from one address
	wrongBurst = 5
	maxFrom    = 1024        // addresses that are remembered
	knownFor   = time.Minute // how long the right to read is remembered
	maxKnown   = 256
)

// logins remembers which addresses sent wrong passwords, and which logins may read. It keeps
// digests, with a key that no other process has.
type logins struct {
	key []byte

	mu    sync.Mutex
	wrong map[string]*source
	known map[[sha256.Size]byte]time.Time
}

func newLogins() *logins {
	l := &logins{
		key: make([]byte, 32), wrong: map[string]*source{}, known: map[[sha256.Size]byte]time.Time{},
	}
	_, _ = rand.Read(l.key) // never fails: see crypto/rand
	return l
}

func (l *logins) digest(user, password string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, l.key)
	_, _ = mac.Write([]byte(user + "\x00" + password)) // a hash accepts everything
	copy(sum[:], mac.Sum(nil))
	return sum
}

// source limits the wrong passwords from one address. A login counts as wrong until etcd has
// answered: otherwise many concurrent ones would all be within the limit.
type source struct {
	limit *rate.Limiter

	mu      sync.Mutex
	pending int
	ended   chan struct{} // closed and replaced when a login ends
}

// from returns the source of an address. If there are too many sources, those without a recent
// wrong password are forgotten, and new addresses share one.
func (l *logins) from(remote string) *source {
	name := guard.SourceOf(remote)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.wrong[name]; s != nil {
		return s
	}
	if len(l.wrong) >= maxFrom {
		maps.DeleteFunc(l.wrong, func(_ string, s *source) bool { return s.idle() })
	}
	if len(l.wrong) >= maxFrom {
		if s := l.wrong[""]; s != nil {
			return s
		}
		name = ""
	}
	s := &source{limit: rate.NewLimiter(rate.Every(wrongEvery), wrongBurst), ended: make(chan struct{})}
	l.wrong[name] = s
	return s
}

func (s *source) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending == 0 && s.limit.Tokens() >= wrongBurst
}

// begin waits until a login may begin. It fails if there were too many wrong passwords, or if ctx
// ends.
func (s *source) begin(ctx context.Context) error {
	for {
		s.mu.Lock()
		tokens, pending, ended := s.limit.Tokens(), s.pending, s.ended
		if tokens-float64(pending) >= 1 {
			s.pending++
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		if pending == 0 {
			return &Problem{Status: http.StatusTooManyRequests, Detail: "too many wrong passwords from this address"}
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return &Problem{Status: http.StatusServiceUnavailable, Detail: "too many logins at once from this address"}
		}
	}
}

// end records the outcome of a login.
func (s *source) end(wrong bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	if wrong {
		s.limit.Allow()
	}
	close(s.ended)
	s.ended = make(chan struct{})
}

// login opens an Editor for the user of a request.
func (h *Handler) login(ctx context.Context, r *http.Request) (Editor, func(), error) {
	user, password, shown := r.BasicAuth()
	if !shown || user == "" || password == "" {
		return nil, nil, &Problem{
			Status: http.StatusUnauthorized, Detail: "an edit needs a user of etcd and its password (Authorization: Basic)",
			Remedies: story.Run("leasehold auth add NAME --role operator --passwords FILE"),
		}
	}
	tries := h.logins.from(r.RemoteAddr)
	if err := tries.begin(ctx); err != nil {
		return nil, nil, err
	}
	select {
	case h.edits <- struct{}{}:
	case <-ctx.Done():
		tries.end(false)
		return nil, nil, &Problem{Status: http.StatusServiceUnavailable, Detail: "too many edits at once"}
	}
	editor, leave, err := h.Login(ctx, user, password)
	tries.end(errors.Is(err, store.ErrLogin))
	if err != nil {
		<-h.edits
		if errors.Is(err, store.ErrLogin) {
			return nil, nil, &Problem{Status: http.StatusUnauthorized, Detail: "etcd knows no such user with that password"}
		}
		return nil, nil, err
	}
	return editor, func() { leave(); <-h.edits }, nil
}

// Knows reports whether a request to read names a user of etcd that may read the shard.
func (h *Handler) Knows(r *http.Request) bool {
	user, password, shown := r.BasicAuth()
	if !shown {
		return false
	}
	digest, now := h.logins.digest(user, password), time.Now()
	h.logins.mu.Lock()
	until, known := h.logins.known[digest]
	h.logins.mu.Unlock()
	if known && now.Before(until) {
		return true
	}
	ctx, cancel := context.WithTimeout(r.Context(), editTime)
	defer cancel()
	editor, leave, err := h.login(ctx, r)
	if err != nil {
		return false
	}
	defer leave()
	if !editor.MayRead(ctx) {
		return false
	}
	h.logins.mu.Lock()
	defer h.logins.mu.Unlock()
	if len(h.logins.known) >= maxKnown {
		clear(h.logins.known)
	}
	h.logins.known[digest] = now.Add(knownFor)
	return true
}
