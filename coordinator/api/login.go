package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/store"
)

// The bounds of wrong passwords: etcd spends some 50 ms of a processor on each.
const (
	wrongEvery = 2 * time.Second // from one address
	wrongBurst = 5
	mostFrom   = 1024        // addresses that are remembered
	knownFor   = time.Minute // a user that may read is not asked for again
	mostKnown  = 256
)

// logins remembers who gave wrong passwords, and who gave right ones for reads. It keeps digests,
// with a key that no other process has.
type logins struct {
	key []byte

	mu    sync.Mutex
	wrong map[string]*rate.Limiter
	known map[[sha256.Size]byte]time.Time
}

func newLogins() *logins {
	l := &logins{
		key: make([]byte, 32), wrong: map[string]*rate.Limiter{}, known: map[[sha256.Size]byte]time.Time{},
	}
	_, _ = rand.Read(l.key) // it never fails: see crypto/rand
	return l
}

func (l *logins) digest(user, password string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, l.key)
	_, _ = mac.Write([]byte(user + "\x00" + password)) // a hash takes all
	copy(sum[:], mac.Sum(nil))
	return sum
}

// tries returns the limit of wrong passwords from an address.
func (l *logins) tries(remote string) *rate.Limiter {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.wrong[host]
	if limit == nil {
		if len(l.wrong) >= mostFrom {
			clear(l.wrong)
		}
		limit = rate.NewLimiter(rate.Every(wrongEvery), wrongBurst)
		l.wrong[host] = limit
	}
	return limit
}

// login opens an Editor for the user that a request names.
func (h *Handler) login(ctx context.Context, r *http.Request) (Editor, func(), error) {
	user, password, shown := r.BasicAuth()
	if !shown || user == "" || password == "" {
		return nil, nil, &Problem{
			Status: http.StatusUnauthorized, Detail: "an edit needs a user of etcd and its password (Authorization: Basic)",
			Next: "leasehold auth add NAME --role operator --passwords FILE",
		}
	}
	tries := h.logins.tries(r.RemoteAddr)
	if tries.Tokens() < 1 {
		return nil, nil, &Problem{Status: http.StatusTooManyRequests, Detail: "too many wrong passwords from this address"}
	}
	select {
	case h.edits <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, &Problem{Status: http.StatusServiceUnavailable, Detail: "too many edits at once"}
	}
	editor, leave, err := h.Login(ctx, user, password)
	if err != nil {
		<-h.edits
		if errors.Is(err, store.ErrLogin) {
			tries.Allow()
			return nil, nil, &Problem{Status: http.StatusUnauthorized, Detail: "etcd knows no such user with that password"}
		}
		return nil, nil, err
	}
	return editor, func() { leave(); <-h.edits }, nil
}

// Knows reports whether a request for a read names a user of etcd who may read the shard.
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
	if len(h.logins.known) >= mostKnown {
		clear(h.logins.known)
	}
	h.logins.known[digest] = now.Add(knownFor)
	return true
}
