package certificate

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider"
)

var us = identity.Identity{Shard: "s1", Role: identity.Agent, Name: "web-0-a"}

const month = 30 * 24 * time.Hour

// holder is a machine with a certificate that runs.
type holder struct {
	*Holder
	t    *testing.T
	log  *journal
	ca   *identitytest.Authority
	stop func()
}

// hold opens the certificate in a directory and runs it.
func hold(t *testing.T, ca *identitytest.Authority, dir string, change func(*Config, *Deps)) *holder {
	t.Helper()
	h := &holder{t: t, log: &journal{}, ca: ca}
	cfg := Config{StateDir: dir, Bootstrap: provider.Bootstrap{
		Instance: us.Name, Shard: us.Shard, JoinToken: "token", CA: string(identitytest.Trust(ca).PEM()),
	}}
	deps := Deps{Logger: slog.New(slog.NewJSONHandler(h.log, nil)), Rand: func() float64 { return 0 }}
	if change != nil {
		change(&cfg, &deps)
	}
	p, err := Open(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	h.Holder = p
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	h.stop = func() {
		cancel()
		<-done
	}
	return h
}

// answer returns what a coordinator gives for a request.
func (h *holder) answer(request []byte, lifetime time.Duration) *protocol.Certificate {
	h.t.Helper()
	return certificate(h.ca.Issue(h.t, request, us, lifetime), identitytest.Trust(h.ca))
}

func certificate(leaf []byte, trust identity.Trust) *protocol.Certificate {
	return &protocol.Certificate{Chain: [][]byte{leaf}, Trust: told(trust)}
}

func told(t identity.Trust) *protocol.Trust {
	return &protocol.Trust{Authorities: t.DER(), Issuer: t.Issuer}
}

// join joins, or fails the test.
func (h *holder) join(lifetime time.Duration) {
	h.t.Helper()
	if err := h.Join(h.t.Context(), func(_ context.Context, r *protocol.JoinRequest) (*protocol.Certificate, error) {
		return h.answer(r.GetRequest(), lifetime), nil
	}); err != nil {
		h.t.Fatalf("join: %v", err)
	}
}

// refuse returns a coordinator that refuses to let anyone join.
func refuse(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error) {
	return nil, status.Error(codes.PermissionDenied, "join refused")
}

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// count returns how many lines have the text; a line is its message and attributes as JSON.
func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for line := range strings.Lines(j.text.String()) {
		if json.Valid([]byte(line)) && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (j *journal) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// bubble runs a test in time that passes at once.
func bubble(t *testing.T, tell func(t *testing.T, ca *identitytest.Authority, dir string)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { tell(t, identitytest.New(t, "agents"), dir) })
}
