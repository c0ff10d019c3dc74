package gateway

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/filetemplate"
)

// A session that begins while a view without users is refreshed keeps its view, or gets a new one:
// otherwise no later change of its peers would reach its files.
//
// proves FILE-1
func TestViewOfASessionThatBeginsDuringARefreshIsKept(t *testing.T) {
	of := viewOf{group: "web", settle: time.Second}
	g := &Gateway{sessions: map[string]*session{}, deps: Deps{Cache: cache.New(store.KeysOf("test"))}}
	p := &g.peers
	p.g, p.views = g, map[viewOf]*view{of: {list: []filetemplate.Peer{}, rendered: map[string]rendered{}}}
	p.watched.Store(of.group, true)
	with := func(id, group string) *session {
		s := &session{instance: id}
		s.wanted.files.record = &store.Instance{ID: id, Group: group}
		return s
	}
	other := with("db-0", "db")
	g.sessions["db-0"] = other

	other.wanted.mu.Lock() // so the refresh stops while it looks for the users
	refreshed, rendered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(refreshed)
		p.refresh(of, p.views[of])
	}()
	waitFor(t, func() bool { return running("peers).users") })
	g.mu.Lock()
	g.sessions["web-0"] = with("web-0", of.group)
	g.mu.Unlock()
	go func() {
		defer close(rendered)
		_, _, _ = p.render(of.group, of.settle, "", func([]filetemplate.Peer) ([]byte, error) { return nil, nil })
	}()
	waitFor(t, func() bool {
		select {
		case <-rendered:
			return true
		default:
			return running("peers).render", "sync.(*Mutex).Lock")
		}
	})
	other.wanted.mu.Unlock()
	<-refreshed
	<-rendered
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, watched := p.watched.Load(of.group); p.views[of] == nil || !watched {
		t.Errorf("the session has no view whose changes are watched: view %v, watched %v", p.views[of], watched)
	}
}

func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !so() {
		select {
		case <-deadline:
			t.Fatal("not within a minute")
		case <-time.After(time.Millisecond):
		}
	}
}

// running reports whether a goroutine is in all of these functions.
func running(functions ...string) bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		in := 0
		for _, f := range functions {
			if strings.Contains(stack, f) {
				in++
			}
		}
		if in == len(functions) {
			return true
		}
	}
	return false
}
